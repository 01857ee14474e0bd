"""The calls that are asked whether they wait, and the tensors and modules that they use.

Each call is a line of Python, and its text is also its name in the answers. A line uses the names
of :data:`INPUTS`, which are made anew for each call.
"""

import ast
import math
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import torch

# In this order: an expression may use the names above it.
INPUTS = {
    "x": "torch.randn(64, 64, device='cuda')",
    "y": "torch.randn(64, 64, device='cuda')",
    "v": "torch.randn(64, device='cuda')",
    "m": "torch.randn(64, 64, device='cuda') > 0",
    "row_mask": "torch.arange(64, device='cuda') % 3 == 0",
    "row_values": "torch.randn(22, 64, device='cuda')",
    "mask_values": "torch.randn(int(m.sum()), device='cuda')",
    "i": "torch.arange(64, device='cuda') % 7",
    "indices": "i.expand(64, 64).contiguous()",
    "one": "torch.ones((), device='cuda')",
    "n": "torch.tensor(3, device='cuda')",
    "flag": "torch.tensor(True, device='cuda')",
    "big": "torch.randn(1024, 1024, device='cuda')",
    "z": "torch.randn(64, 64, device='cuda', dtype=torch.complex64)",
    "half": "x.half()",
    "whole": "torch.arange(4096, device='cuda').view(64, 64)",
    "batch": "torch.randn(8, 16, 16, device='cuda')",
    "rows": "torch.randn(8, 16, device='cuda')",
    "spd": "x @ x.T + 64 * torch.eye(64, device='cuda')",
    "spd_batch": "batch @ batch.mT + 16 * torch.eye(16, device='cuda')",
    "weights": "x.softmax(1)",
    "image": "torch.randn(2, 4, 16, 16, device='cuda')",
    "volume": "torch.randn(2, 4, 8, 8, 8, device='cuda')",
    "signal": "torch.randn(2, 4, 32, device='cuda')",
    "kernel": "torch.randn(4, 4, 3, 3, device='cuda')",
    "q": "torch.randn(2, 4, 16, 32, device='cuda')",
    "sequence": "torch.randn(5, 2, 64, device='cuda')",
    "padding": "torch.arange(5, device='cuda') > torch.tensor([[4], [2]], device='cuda')",
    "log_p": "torch.randn(20, 2, 9, device='cuda').log_softmax(2)",
    "labels": "torch.randint(1, 9, (2, 5), device='cuda')",
    "lengths": "torch.tensor([20, 20], device='cuda')",
    "label_lengths": "torch.tensor([5, 5], device='cuda')",
    "window": "torch.ones(16, device='cuda')",
    "causal": "nn.Transformer.generate_square_subsequent_mask(5, device='cuda')",
    "leaf": "torch.randn(64, 64, device='cuda', requires_grad=True)",
    # On the host
    "h": "torch.randn(64, 64)",
    "h_int": "torch.arange(64) % 7",
    "h_mask": "torch.randn(64, 64) > 0",
    "h_one": "torch.ones(())",
    "h_pinned": "torch.randn(64, 64).pin_memory()",
    "h_target": "torch.empty(64, 64)",
    "h_pinned_target": "torch.empty(64, 64).pin_memory()",
    "h_large": "torch.randn(1024, 1024)",
    # Layers, optimizers and the like
    "linear": "torch.nn.Linear(64, 64).cuda()",
    "model": "nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()",
    "batch_norm": "nn.BatchNorm2d(4).cuda()",
    "embedding": "nn.Embedding(100, 8).cuda()",
    "bag": "nn.EmbeddingBag(100, 8).cuda()",
    "lstm": "nn.LSTM(64, 32).cuda()",
    "gru": "nn.GRU(64, 32, num_layers=2, dropout=0.1).cuda()",
    "attention": "nn.MultiheadAttention(64, 4).cuda()",
    "encoder_layer": "nn.TransformerEncoderLayer(64, 4, 128).cuda()",
    "encoder": "nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)"
    ".cuda()",
    "decoder_layer": "nn.TransformerDecoderLayer(64, 4, 128).cuda()",
    "adaptive": "nn.AdaptiveLogSoftmaxWithLoss(64, 20, [5, 10]).cuda()",
    "spectral": "nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64)).cuda()",
    "parameters": "with_gradients([nn.Parameter(torch.randn(32, 32, device='cuda')) "
    "for _ in range(4)])",
    "sgd": "torch.optim.SGD(parameters, 0.1)",
    "momentum": "torch.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True)",
    "sgd_fused": "torch.optim.SGD(parameters, 0.1, momentum=0.9, fused=True)",
    "sgd_loop": "torch.optim.SGD(parameters, 0.1, foreach=False)",
    "sgd_lr": "torch.optim.SGD(parameters, torch.tensor(0.1, device='cuda'))",
    "adam": "torch.optim.Adam(parameters)",
    "adam_fused": "torch.optim.Adam(parameters, fused=True)",
    "adam_loop": "torch.optim.Adam(parameters, foreach=False)",
    "adam_capturable": "torch.optim.Adam(parameters, capturable=True)",
    "adam_amsgrad": "torch.optim.Adam(parameters, amsgrad=True, weight_decay=0.1)",
    "adamw": "torch.optim.AdamW(parameters)",
    "adamw_loop": "torch.optim.AdamW(parameters, foreach=False)",
    "adamw_capturable_loop": "torch.optim.AdamW(parameters, capturable=True, foreach=False)",
    "adagrad": "torch.optim.Adagrad(parameters)",
    "adadelta": "torch.optim.Adadelta(parameters)",
    "adamax": "torch.optim.Adamax(parameters)",
    "asgd": "torch.optim.ASGD(parameters)",
    "nadam": "torch.optim.NAdam(parameters)",
    "radam": "torch.optim.RAdam(parameters)",
    "rmsprop": "torch.optim.RMSprop(parameters)",
    "rprop": "torch.optim.Rprop(parameters)",
    "adafactor": "torch.optim.Adafactor(parameters)",
    "muon": "torch.optim.Muon(parameters)",
    "lbfgs": "torch.optim.LBFGS(parameters, max_iter=2)",
    "closure": "closure_of(lbfgs, parameters)",
    "scaler": "torch.amp.GradScaler('cuda')",
    "scheduler": "torch.optim.lr_scheduler.StepLR(sgd, 10)",
    "swa": "torch.optim.swa_utils.AveragedModel(linear)",
    "normal": "torch.distributions.Normal(v, v.exp())",
    # Only for the calls that use it, as PyTorch runs without it
    "np": "__import__('numpy')",
    # Streams and events
    "stream": "torch.cuda.current_stream()",
    "side": "torch.cuda.Stream()",
    "event": "torch.cuda.Event(enable_timing=True)",
    "recorded": "recorded_event()",
    "generator": "torch.Generator('cuda')",
}

# By topic. In a write through a mask, the values on the right are made before, by an input.
CALLS = {
    "pointwise": """
x + y
x + 1
x + one
x + h_one
x * y
x / y
x // 2
x % 2
x ** 2
x ** one
2 ** x
x.exp()
x.log1p()
x.sqrt_()
x.relu()
x.sigmoid()
x.tanh()
x.erfinv()
x.lgamma()
x.digamma()
torch.special.i0e(x)
torch.special.bessel_j0(x)
x.clamp(-1, 1)
x.clamp(min=one)
x.lerp(y, 0.5)
x.lerp(y, one)
torch.addcmul(x, x, y, value=2)
torch.addcdiv(x, x, y, value=one)
torch.add(x, y, alpha=one)
torch.where(m, x, y)
torch.where(m, x, 0.0)
torch.where(m, one, h_one)
x.round(decimals=2)
x.nan_to_num()
x.isnan()
x.isfinite()
x.sign()
x == y
x > 0
~m
m & m
m ^ row_mask
x.half()
x.to(torch.float64)
x.long()
m.float()
x.copysign(y)
x.heaviside(one)
x.float_power(2)
torch.hypot(x, y)
torch.atan2(x, y)
whole.bitwise_left_shift(1)
torch.gcd(whole, whole)
torch.complex(x, y)
z.abs()
z.real
z.conj()
z.angle()
torch.view_as_real(z)
torch._foreach_add([x, y], 1.0)
torch._foreach_mul([x, y], one)
torch._foreach_norm([x, y])
torch._foreach_add([x, y], [1.0, 2.0])
torch._foreach_copy_([x, y], [y, x])
""",
    "reductions": """
x.sum()
x.sum(0)
x.mean()
x.prod()
x.max()
x.max(1)
x.amax(1)
x.aminmax()
x.argmax()
x.argmin(1)
x.var(1)
x.std()
torch.std_mean(x)
x.norm()
x.norm(p=1, dim=1)
x.logsumexp(1)
x.softmax(1)
x.cumsum(1)
x.cumprod(1)
x.cummax(1)
x.logcumsumexp(1)
m.any()
m.all()
m.all(1)
x.count_nonzero()
x.count_nonzero(0)
x.nansum()
x.nanmean()
x.dist(y)
x.trace()
torch.cov(x)
torch.corrcoef(x)
torch.cov(x, fweights=torch.ones(64, dtype=torch.long, device='cuda'))
torch.cov(x, aweights=v.abs())
torch.trapezoid(x)
torch.cumulative_trapezoid(x)
x.renorm(2, 0, 1.0)
torch.quantile(x, 0.5)
torch.quantile(x, torch.tensor([0.1, 0.9], device='cuda'), dim=1)
torch.nanquantile(x, 0.5)
torch.gradient(x)
torch.diff(x)
""",
    "sort and select": """
v.sort()
x.sort(1)
x.sort(stable=True, dim=1)
x.argsort()
big.view(-1).sort()
big.view(-1).topk(9)
x.topk(5, 1)
v.topk(5)
x.kthvalue(3, 1)
v.kthvalue(3)
x.median()
x.median(1)
x.nanmedian()
x.mode(1)
x.msort()
torch.searchsorted(v.sort().values, x)
torch.searchsorted(v, x, sorter=v.argsort())
torch.bucketize(v, torch.linspace(-1, 1, 5, device='cuda'))
torch.isin(i, i[:3])
torch.isin(whole, i)
torch.isin(i, 3)
torch.isin(i, torch.arange(200, device='cuda'))
""",
    "shapes from values": """
torch.nonzero(m)
torch.nonzero(m, as_tuple=True)
m.nonzero()
torch.argwhere(x > 0)
torch.where(m)
torch.nonzero_static(m, size=10)
torch.masked_select(x, m)
x[m]
x[row_mask]
x[:, row_mask]
x[row_mask, 0]
x[row_mask, i[:22]]
x[m.to(torch.uint8)]
x[h_mask]
torch.unique(i)
torch.unique(i, sorted=False)
torch.unique(i, return_inverse=True)
torch.unique(i, return_counts=True)
torch.unique(x, dim=0)
torch.unique(m)
torch.unique_consecutive(i)
torch.unique_consecutive(i, return_counts=True)
torch.unique_consecutive(x, dim=0)
torch.bincount(i)
torch.bincount(i, minlength=10)
torch.bincount(i, weights=v)
torch.histc(v, 8, 0, 1)
torch.histc(v, 8)
torch.histc(v)
torch.combinations(v[:8])
torch.cartesian_prod(v[:8], v[:8])
x.repeat_interleave(2, 0)
x.repeat_interleave(i, 0)
torch.repeat_interleave(i)
x.repeat_interleave(i, 0, output_size=189)
torch.repeat_interleave(i, output_size=189)
torch.tensor_split(x, 3)
torch.tensor_split(x, torch.tensor([3, 9]))
torch.tril_indices(9, 9, device='cuda')
F.one_hot(i)
F.one_hot(i, 9)
torch.block_diag(x, y)
torch.segment_reduce(v, 'sum', lengths=torch.full((8,), 8, device='cuda'))
torch.segment_reduce(v, 'sum', lengths=torch.full((8,), 8, device='cuda'), unsafe=True)
""",
    "writes by a mask": """
x[m] = mask_values
x[m] = one
x[m] = 1.0
x[m] = True
x[m] = h_one
x[m] = torch.ones(1, device='cuda')
x[m] = v[:1]
x[row_mask] = row_values
x[row_mask] = v
x[row_mask] = 1.0
x[row_mask] = one
x[row_mask, 0] = 1.0
x[row_mask, :5] = 1.0
x[:, row_mask] = 1.0
x[:, row_mask] = one
x[0, row_mask] = 1.0
x[..., row_mask] = 1.0
x[None, m] = 1.0
x[row_mask, i[:22]] = 1.0
x[h_mask] = 1.0
x[h_mask] = one
whole[m] = 3
whole[m] = n
x[m] += 1
x[m] *= y[m]
x[row_mask] -= 1
x.index_put_((m,), one)
x.index_put_((m,), h_one)
x.index_put((m,), one)
x.index_put_((m,), one, accumulate=True)
x.index_put_((row_mask, i[:22]), one, accumulate=True)
torch.index_put(x, (row_mask,), v)
x.masked_fill(m, 0)
x.masked_fill_(m, 0)
x.masked_fill(m, h_one)
x.masked_fill(m, one)
x.masked_fill_(row_mask, one)
x.masked_scatter(m, y)
x.masked_scatter_(m, y)
torch.where(m, one, x)
x.copy_(torch.where(m, y, x))
torch.Tensor.__setitem__(x, m, one)
x[flag]
x[flag] = 1.0
x[True] = 1.0
x.put_(i, v)
""",
    "writes by an index": """
x[0] = 1.0
x[0] = one
x[0] = h_one
x[0] = v
x[0, 0] = 1.0
x[0, 0] = one
x[1:3] = 1.0
x[1:3] = h[1:3]
x[...] = 1.0
x[:] = y
x[i] = 1.0
x[i] = one
x[i] = y[i]
x[h_int] = 1.0
x[[0, 2]] = 1.0
x[[0, 2], [1, 3]] = v[:2]
x[i, i] += 1
x[n] = 1.0
x[n] = v
x[n, n] = one
x[0:n] = 1.0
x.index_put_((i,), y)
x.index_put_((i,), y, accumulate=True)
x.index_put_((h_int,), y)
x.index_copy(0, torch.arange(64, device='cuda'), y)
x.index_add(0, i, y)
x.index_add(0, i, y, alpha=2)
x.index_fill(0, i, 1.0)
x.index_fill(0, i, one)
x.index_fill(0, i, h_one)
x.index_reduce(0, i, y, 'amax')
x.scatter(1, indices, y)
x.scatter(1, indices, 1.0)
x.scatter_(1, indices, 1.0)
x.scatter_add(1, indices, y)
x.scatter_reduce(1, indices, y, 'amax')
x.scatter(1, indices, y, reduce='add')
x.select_scatter(v, 0, 1)
x.slice_scatter(y[:3], 0, 0, 3)
x.diagonal_scatter(v)
x.diagonal().fill_(1.0)
x.fill_diagonal_(1.0)
x.fill_(1.0)
x.fill_(one)
x.fill_(h_one)
x.zero_()
torch.full((3,), 1.0, device='cuda')
torch.full((3,), one, device='cuda')
torch.full_like(x, one)
""",
    "reads by an index": """
x[0]
x[0, 0]
x[-1]
x[1:3]
x[:, 0]
x[None]
x[..., 0]
x[i]
x[i, i]
x[:, i]
x[h_int]
x[[0, 2]]
x[np.arange(3)]
x[n]
x[n, n]
x[i[3]]
x[0:n]
x[n:]
x[i[3]:i[5]]
x.index_select(0, i)
x.gather(1, indices)
x.take(i)
x.take_along_dim(indices, 1)
x.narrow(0, 0, 3)
x.narrow(0, n, 3)
x.select(0, 1)
torch.ops.aten.index(x, [i])
x.unfold(0, 2, 1)
x.diag()
x.diagonal()
h[n]
h[i.cpu()]
h[0:n]
[1, 2, 3, 4][n]
list(range(9))[:n]
""",
    "reads of a value": """
one.item()
x[0, 0].item()
one.tolist()
v.tolist()
float(one)
int(one)
bool(one)
complex(one)
operator.index(n)
range(n)
math.sqrt(one)
torch.is_nonzero(one)
bool(m.any())
not flag
one > 0 and one < 2
one in [1.0, 2.0]
x.max() > 3 or 0
1.0 in v
max(v[0], v[1])
sorted([v[0], v[1]])
sum([v[0], v[1]])
min(v[:3])
list(v)
[float(item) for item in v[:3]]
v.sum().item()
repr(v)
str(one)
f'{one}'
f'{one:.3f}'
f'{x.shape}'
print(v, file=io.StringIO())
format(v)
'%s' % one
torch.equal(x, y)
torch.equal(x, x)
torch.equal(x, v)
torch.allclose(x, y)
torch.allclose(x, x)
torch.isclose(x, y)
x.eq(y).all()
torch.testing.assert_close(x, x)
torch.testing.assert_close(x, x.clone())
torch._assert_async(flag)
hash(x)
len(x)
x.shape
x.stride()
x.data_ptr()
x.is_contiguous()
x.device
x.element_size()
x.type()
x.untyped_storage().nbytes()
x.tolist()
iter(x)
list(x)
v.numpy(force=True)
""",
    "copies": """
x.cpu()
x.to('cpu')
x.to('cpu', non_blocking=True)
x.to('cpu', torch.float64)
x.to('cpu', torch.float16, non_blocking=True)
x.T.cpu()
x[:, 0].cpu()
x[:, 0].to('cpu', non_blocking=True)
v.cpu().numpy()
x.type('torch.FloatTensor')
torch.empty(0, device='cuda').cpu()
h.cuda()
h.cuda(non_blocking=True)
h.to('cuda')
h.to('cuda', non_blocking=True)
h.to('cuda', torch.float16)
h.to('cuda', torch.float16, non_blocking=True)
h.T.cuda()
h[:, 0].cuda()
h_large.cuda()
h_large.cuda(non_blocking=True)
h_one.cuda()
h_one.cuda(non_blocking=True)
torch.empty(0).cuda()
h_pinned.cuda()
h_pinned.cuda(non_blocking=True)
h_pinned.to('cuda', non_blocking=True)
h_pinned.to('cuda', torch.float16, non_blocking=True)
h_pinned.T.to('cuda', non_blocking=True)
h_pinned[:, 0].to('cuda', non_blocking=True)
h_pinned[0].to('cuda', non_blocking=True)
h_target.copy_(x)
h_target.copy_(x, non_blocking=True)
h_target.copy_(x.T)
h_target[:, 0].copy_(v)
h_pinned_target.copy_(x)
h_pinned_target.copy_(x, non_blocking=True)
h_pinned_target.copy_(x.T, non_blocking=True)
h_pinned_target.copy_(x.half(), non_blocking=True)
h_pinned_target[:, 0].copy_(v, non_blocking=True)
x.copy_(h)
x.copy_(h, non_blocking=True)
x.copy_(h_pinned)
x.copy_(h_pinned, non_blocking=True)
x.half().copy_(h)
x.copy_(h[0])
x.copy_(y)
x.copy_(y.T)
x.copy_(half)
x.copy_(v)
x.clone()
x.contiguous()
x.T.contiguous()
x.to('cuda')
x.to(x)
x.cuda()
h.to(x)
x.to(h)
x.type_as(h)
h.type_as(x)
h.pin_memory()
torch.tensor([1.0, 2.0], device='cuda')
torch.tensor(1.0, device='cuda')
torch.tensor(np.ones(3), device='cuda')
torch.as_tensor([1.0, 2.0], device='cuda')
torch.as_tensor(h, device='cuda')
torch.as_tensor(x, device='cuda')
torch.asarray([1.0], device='cuda')
torch.from_numpy(np.ones(3)).cuda()
x.new_tensor([1.0, 2.0])
torch.tensor([v[0], v[1]], device='cuda')
torch.stack([v[0], v[1]])
torch.cuda.FloatTensor([1.0, 2.0])
x + torch.tensor(1.0)
x.data.clone()
torch.save(v, io.BytesIO())
copy.copy(x)
copy.deepcopy(x)
pickle.dumps(v)
torch.utils.dlpack.from_dlpack(x)
""",
    "new tensors": """
torch.empty(9, device='cuda')
torch.zeros(9, device='cuda')
torch.ones(9, device='cuda')
torch.arange(9, device='cuda')
torch.arange(0.0, 1.0, 0.1, device='cuda')
torch.arange(n, device='cuda')
torch.zeros(n, device='cuda')
torch.zeros(int(n), device='cuda')
torch.linspace(0, 1, 9, device='cuda')
torch.linspace(one, 9, 9, device='cuda')
torch.linspace(one, n, 9, device='cuda')
torch.logspace(0, 1, 9, device='cuda')
torch.eye(9, device='cuda')
torch.zeros_like(x)
x.new_zeros(3)
torch.hann_window(9, device='cuda')
torch.kaiser_window(9, device='cuda')
torch.vander(v)
torch.meshgrid(v, v, indexing='ij')
torch.fft.fftfreq(9, device='cuda')
torch.signal.windows.gaussian(9, std=2.0, device='cuda')
torch.scalar_tensor(1.0, device='cuda')
torch.empty(9, pin_memory=True)
""",
    "random numbers": """
torch.rand(9, device='cuda')
torch.randn(9, device='cuda')
torch.randn(9, device='cuda', generator=generator)
torch.randint(9, (9,), device='cuda')
torch.randperm(100, device='cuda')
torch.randperm(100_000, device='cuda')
torch.rand_like(x)
torch.bernoulli(weights)
torch.bernoulli(x, 0.5)
x.bernoulli_(0.5)
x.bernoulli_(weights)
x.uniform_()
x.normal_()
x.exponential_()
x.random_(5)
x.cauchy_()
x.geometric_(0.5)
x.log_normal_()
torch.normal(0.0, 1.0, (9,), device='cuda')
torch.normal(v, 1.0)
torch.normal(v, v.abs())
torch.normal(0.0, v.abs())
torch.normal(v, v.abs(), generator=generator)
torch.poisson(weights)
torch.binomial(weights * 9, weights)
torch.multinomial(weights, 2)
torch.multinomial(weights, 1)
torch.multinomial(weights[0], 2)
torch.multinomial(weights, 2, replacement=True)
torch.multinomial(weights, 1, replacement=True)
torch._standard_gamma(weights)
torch._sample_dirichlet(weights)
F.dropout(x)
F.alpha_dropout(x, training=True)
F.dropout2d(image)
F.rrelu(x, training=True)
F.gumbel_softmax(x)
F.gumbel_softmax(x, hard=True)
nn.init.normal_(x)
nn.init.xavier_uniform_(x)
nn.init.orthogonal_(x)
nn.init.trunc_normal_(x)
nn.init.kaiming_normal_(x)
torch.cuda.manual_seed(1)
torch.manual_seed(1)
torch.cuda.get_rng_state()
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
torch.cuda.initial_seed()
generator.manual_seed(1)
generator.get_state()
normal.sample()
normal.rsample()
normal.log_prob(v)
normal.cdf(v)
normal.entropy()
torch.distributions.Normal(v, v.exp())
torch.distributions.Normal(v, v.exp(), validate_args=False)
torch.distributions.Normal(0.0, 1.0)
torch.distributions.Normal(v, v.exp(), validate_args=False).log_prob(v)
torch.distributions.Categorical(probs=weights)
torch.distributions.Categorical(logits=x)
torch.distributions.Categorical(logits=x, validate_args=False).sample()
torch.distributions.Categorical(logits=x, validate_args=False).entropy()
torch.distributions.Bernoulli(logits=x, validate_args=False).sample()
torch.distributions.Bernoulli(probs=weights)
torch.distributions.Uniform(v, v + 1)
torch.distributions.Gamma(v.exp(), v.exp(), validate_args=False).sample()
torch.distributions.Beta(v.exp(), v.exp(), validate_args=False).sample()
torch.distributions.MultivariateNormal(v, spd, validate_args=False)
torch.distributions.kl_divergence(normal, normal)
""",
    "shapes and order": """
torch.cat([x, y])
torch.stack([x, y])
x.split(8)
x.chunk(4)
x.unbind()
x.T
x.view(-1)
x.reshape(-1)
x.T.reshape(-1)
x.permute(1, 0)
x.expand(2, 64, 64)
x.repeat(2, 1)
x.repeat(n, 1)
x.tile(2)
x.flip(0)
x.roll(1, 0)
x.roll(n.item(), 0)
x.rot90()
x.tril()
x.triu(1)
x.squeeze()
x.unsqueeze(0)
x.view(n + 61, -1)
x.movedim(0, 1)
torch.swapaxes(x, 0, 1)
x.resize_(32, 128)
torch.broadcast_tensors(x, v)
torch.as_strided(x, (3, 3), (1, 1))
x.flatten()
x.unflatten(0, (8, 8))
v.diag_embed()
torch.kron(x[:8, :8], y[:8, :8])
torch.constant_pad_nd(x, (1, 1))
""",
    "matmuls": """
x @ y
x @ v
torch.dot(v, v)
torch.addmm(v, x, y)
torch.bmm(batch, batch)
torch.baddbmm(batch, batch, batch)
torch.einsum('ij,jk->ik', x, y)
torch.tensordot(x, y, 1)
torch.outer(v, v)
torch.cdist(x, y)
torch.cdist(x, y, p=1)
F.linear(x, y, v)
F.bilinear(rows, rows, torch.randn(4, 16, 16, device='cuda'))
torch.linalg.multi_dot([x, y, x])
torch.chain_matmul(x, y)
half @ half
z @ z
torch.linalg.vecdot(x, y)
torch.linalg.cross(x[:, :3], y[:, :3])
x.matrix_power(3)
""",
    "linear algebra": """
torch.linalg.inv(spd)
torch.linalg.inv(spd_batch)
torch.linalg.inv_ex(spd)
torch.linalg.inv_ex(spd, check_errors=True)
torch.inverse(spd)
torch.linalg.solve(spd, x)
torch.linalg.solve(spd_batch, batch)
torch.linalg.solve(spd_batch, rows)
torch.linalg.solve_ex(spd, x)
torch.linalg.solve_triangular(spd, x, upper=True)
torch.linalg.cholesky(spd)
torch.linalg.cholesky(spd_batch)
torch.linalg.cholesky_ex(spd)
torch.cholesky(spd)
torch.cholesky_solve(x, spd)
torch.cholesky_inverse(spd)
torch.linalg.lu(spd)
torch.linalg.lu_factor(spd)
torch.linalg.lu_factor(spd_batch)
torch.linalg.lu_factor_ex(spd)
torch.linalg.lu_solve(*torch.linalg.lu_factor_ex(spd)[:2], x)
torch.linalg.ldl_factor(spd)
torch.linalg.ldl_factor_ex(spd)
torch.linalg.qr(x)
torch.linalg.qr(batch)
torch.linalg.qr(x, mode='r')
torch.geqrf(x)
torch.linalg.householder_product(x, v)
torch.ormqr(x, v, y)
torch.linalg.svd(x)
torch.linalg.svd(x, full_matrices=False)
torch.linalg.svd(batch)
torch.linalg.svd(x, driver='gesvd')
torch.linalg.svd(x, driver='gesvdj')
torch.linalg.svd(x, driver='gesvda')
torch.linalg.svdvals(x)
torch.linalg.svdvals(batch)
torch.svd(x)
torch.linalg.eigh(spd)
torch.linalg.eigh(spd_batch)
torch.linalg.eigvalsh(spd)
torch.linalg.eigvalsh(spd_batch)
torch.linalg.eig(x)
torch.linalg.eigvals(x)
torch.linalg.pinv(x)
torch.linalg.pinv(batch)
torch.linalg.pinv(spd, hermitian=True)
torch.linalg.pinv(x, rtol=1e-3)
torch.linalg.matrix_rank(x)
torch.linalg.matrix_rank(spd, hermitian=True)
torch.linalg.cond(x)
torch.linalg.cond(x, 1)
torch.linalg.cond(x, 'fro')
torch.linalg.norm(x)
torch.linalg.norm(x, 2)
torch.linalg.norm(x, 1)
torch.linalg.norm(x, 'nuc')
torch.linalg.norm(x, 'fro')
torch.linalg.norm(v, 2)
torch.linalg.matrix_norm(x)
torch.linalg.matrix_norm(x, 2)
torch.linalg.matrix_norm(x, 'nuc')
torch.linalg.matrix_norm(x, float('inf'))
torch.linalg.vector_norm(x, 2)
torch.norm(x, p='nuc')
torch.linalg.det(x)
torch.linalg.det(batch)
torch.linalg.slogdet(x)
torch.logdet(spd)
torch.linalg.matrix_power(spd, 3)
torch.linalg.matrix_power(spd, -1)
torch.linalg.matrix_exp(x * 0.01)
torch.linalg.matrix_exp(batch * 0.01)
torch.linalg.matrix_exp(batch[0, :1, :1])
torch.linalg.lstsq(x, y)
torch.linalg.lstsq(batch, batch)
torch.linalg.tensorinv(spd.view(64, 8, 8), ind=1)
torch.linalg.tensorsolve(spd.view(64, 8, 8), v)
torch.linalg.vander(v)
torch.triangular_solve(x, spd)
torch.svd_lowrank(x, q=6)
torch.pca_lowrank(x, q=6)
torch.lu_unpack(*torch.linalg.lu_factor_ex(spd)[:2])
torch.lobpcg(spd, k=2, niter=2)
torch.linalg.inv(leaf @ leaf.T + 64 * torch.eye(64, device='cuda')).sum().backward()
torch.linalg.cholesky_ex(leaf @ leaf.T + 64 * torch.eye(64, device='cuda'))[0].sum().backward()
torch.linalg.det(leaf).backward()
torch.linalg.slogdet(leaf)[1].backward()
torch.linalg.qr(leaf)[1].sum().backward()
torch.linalg.svdvals(leaf).sum().backward()
torch.linalg.matrix_norm(leaf, 2).backward()
torch.linalg.solve_ex(leaf, v)[0].sum().backward()
""",
    "Fourier": """
torch.fft.fft(v)
torch.fft.rfft2(x)
torch.fft.irfft(torch.fft.rfft(v))
torch.fft.ifftn(z)
torch.fft.fftshift(v)
torch.stft(v, 16, window=window, return_complex=True)
torch.istft(torch.stft(v, 16, window=window, return_complex=True), 16, window=window)
""",
    "layers": """
linear(x)
model(x)
batch_norm(image)
batch_norm.eval()(image)
F.layer_norm(x, (64,))
F.rms_norm(x, (64,))
F.group_norm(image, 2)
F.instance_norm(image)
F.local_response_norm(image, 2)
F.normalize(x)
F.conv1d(signal, torch.randn(4, 4, 3, device='cuda'))
F.conv2d(image, kernel)
F.conv3d(volume, torch.randn(4, 4, 3, 3, 3, device='cuda'))
F.conv2d(image, torch.randn(4, 1, 3, 3, device='cuda'), groups=4)
F.conv_transpose2d(image, kernel)
F.max_pool2d(image, 2)
F.max_pool2d(image, 2, return_indices=True)
F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2)
F.avg_pool2d(image, 2)
F.adaptive_avg_pool2d(image, 3)
F.adaptive_max_pool2d(image, 3)
F.fractional_max_pool2d(image, 2, output_size=8)
F.lp_pool2d(image, 2, 2)
F.interpolate(image, scale_factor=2)
F.interpolate(image, scale_factor=2, mode='bicubic')
F.interpolate(image, size=(9, 9), mode='bilinear', antialias=True)
F.grid_sample(image, torch.rand(2, 8, 8, 2, device='cuda'))
F.affine_grid(torch.randn(2, 2, 3, device='cuda'), (2, 4, 8, 8))
F.pixel_shuffle(image, 2)
F.channel_shuffle(image, 2)
F.unfold(image, 3)
F.fold(F.unfold(image, 3), (16, 16), 3)
F.pad(image, (1, 1, 1, 1), mode='reflect')
F.glu(x)
F.gelu(x)
F.silu(x)
F.prelu(x, one.view(1))
F.threshold(x, 0.1, 0.0)
F.softplus(x)
F.log_softmax(x, 1)
F.embedding(i, x)
F.embedding(i, x, max_norm=1.0)
embedding(i)
bag(i, torch.arange(0, 64, 8, device='cuda'))
bag(indices)
F.embedding_bag(i, x, torch.arange(0, 64, 8, device='cuda'), mode='max')
F.embedding_bag(i, x, torch.arange(0, 64, 8, device='cuda'), mode='sum', per_sample_weights=v)
lstm(sequence)
gru(sequence)
lstm(nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([5, 3])))
attention(sequence, sequence, sequence)
attention(sequence, sequence, sequence, key_padding_mask=padding)
attention(sequence, sequence, sequence, need_weights=False)
encoder_layer(sequence)
encoder_layer.eval()(sequence)
encoder_layer(sequence, src_key_padding_mask=padding)
encoder(sequence.transpose(0, 1))
encoder(sequence.transpose(0, 1), src_key_padding_mask=padding)
encoder(sequence.transpose(0, 1), mask=causal)
encoder(sequence.transpose(0, 1), mask=causal, is_causal=True)
decoder_layer(sequence, sequence)
nn.Transformer.generate_square_subsequent_mask(5, device='cuda')
F.scaled_dot_product_attention(q, q, q)
F.scaled_dot_product_attention(q, q, q, is_causal=True)
F.scaled_dot_product_attention(q.half(), q.half(), q.half())
F.scaled_dot_product_attention(q, q, q, attn_mask=m[:16, :16])
spectral(x)
adaptive(x[:20], i[:20])
adaptive.log_prob(x)
nn.utils.rnn.pad_sequence([v, v[:9]])
nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([5, 3]))
nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([3, 5]), enforce_sorted=False)
nn.utils.rnn.pack_padded_sequence(sequence, [5, 3])
nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([5, 3], device='cuda').cpu())
nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(sequence, torch.tensor([5, 3])))
nn.utils.rnn.pack_sequence([v, v[:9]])
with torch.autocast('cuda'): linear(x)
linear.half()
nn.Linear(64, 64, device='cuda')
nn.Linear(64, 64).cuda()
nn.LSTM(8, 8, device='cuda')
linear.cpu().cuda()
linear.state_dict()
linear.load_state_dict(linear.state_dict())
linear.load_state_dict(nn.Linear(64, 64).state_dict())
linear.zero_grad()
torch.save(linear.state_dict(), io.BytesIO())
copy.deepcopy(linear)
sum(p.numel() for p in model.parameters())
nn.utils.parameters_to_vector(model.parameters())
nn.utils.vector_to_parameters(torch.zeros(4160, device='cuda'), linear.parameters())
nn.utils.fuse_conv_bn_eval(nn.Conv2d(4, 4, 3).cuda().eval(), nn.BatchNorm2d(4).cuda().eval())
""",
    "losses": """
F.mse_loss(x, y)
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.cross_entropy(x, i)
F.cross_entropy(x, i, weight=v.abs())
F.cross_entropy(x, i, ignore_index=3)
F.cross_entropy(x, i, label_smoothing=0.1)
F.cross_entropy(x, weights)
F.nll_loss(x, i)
F.binary_cross_entropy(weights, weights)
F.binary_cross_entropy_with_logits(x, weights)
F.binary_cross_entropy_with_logits(x, weights, pos_weight=v)
F.kl_div(x, y)
F.gaussian_nll_loss(x, y, weights)
F.poisson_nll_loss(x, y)
F.hinge_embedding_loss(x, y)
F.margin_ranking_loss(x, y, y)
F.multi_margin_loss(x, i)
F.multilabel_margin_loss(x, indices)
F.multilabel_soft_margin_loss(x, weights)
F.soft_margin_loss(x, y)
F.triplet_margin_loss(x, y, x)
F.cosine_embedding_loss(x, y, v)
F.cosine_similarity(x, y)
F.pairwise_distance(x, y)
F.pdist(x)
F.ctc_loss(log_p, labels, torch.tensor([20, 20]), torch.tensor([5, 5]))
F.ctc_loss(log_p, labels, (20, 20), (5, 5))
F.ctc_loss(log_p, labels, lengths, label_lengths)
F.ctc_loss(log_p, labels, (20, 20), (5, 5), zero_infinity=True)
""",
    "backward": """
(leaf * 2).sum().backward()
linear(x).sum().backward()
model(x).sum().backward()
F.cross_entropy(model(x), i).backward()
torch.autograd.grad(leaf.exp().sum(), leaf)
(leaf @ leaf).sum().backward()
leaf[i].sum().backward()
leaf[0].sum().backward()
leaf[m].sum().backward()
leaf[row_mask].sum().backward()
leaf.masked_select(m).sum().backward()
leaf.masked_fill(m, 0).sum().backward()
leaf.masked_scatter(m, y).sum().backward()
torch.where(m, leaf, 0.0).sum().backward()
leaf.clone().index_put((m,), one).sum().backward()
leaf.clone().masked_fill_(m, one).sum().backward()
leaf.index_select(0, i).sum().backward()
leaf.gather(1, indices).sum().backward()
leaf.scatter_add(1, indices, leaf).sum().backward()
leaf.take(i).sum().backward()
leaf.sort(1)[0].sum().backward()
leaf.topk(5, 1)[0].sum().backward()
leaf.max().backward()
leaf.max(1)[0].sum().backward()
leaf.amax().backward()
leaf.median().backward()
leaf.prod().backward()
leaf.prod(1).sum().backward()
leaf.cumprod(1).sum().backward()
leaf.cumsum(1).sum().backward()
leaf.std().backward()
leaf.norm().backward()
leaf.logsumexp(1).sum().backward()
leaf.repeat_interleave(i, 0).sum().backward()
leaf.repeat_interleave(2, 0).sum().backward()
torch.cdist(leaf, leaf).sum().backward()
leaf.renorm(2, 0, 1.0).sum().backward()
embedding(i).sum().backward()
F.embedding(whole % 64, leaf).sum().backward()
F.embedding(i, leaf, scale_grad_by_freq=True).sum().backward()
F.embedding(i, leaf, padding_idx=0).sum().backward()
bag(i, torch.arange(0, 64, 8, device='cuda')).sum().backward()
F.embedding_bag(i, leaf, torch.arange(0, 64, 8, device='cuda'), mode='max').sum().backward()
F.conv2d(image, kernel.requires_grad_()).sum().backward()
batch_norm(image).sum().backward()
F.max_pool2d(image.requires_grad_(), 2).sum().backward()
F.adaptive_avg_pool2d(image.requires_grad_(), 3).sum().backward()
F.interpolate(image.requires_grad_(), scale_factor=2, mode='bilinear').sum().backward()
F.grid_sample(image.requires_grad_(), torch.rand(2, 8, 8, 2, device='cuda')).sum().backward()
F.dropout(leaf).sum().backward()
F.layer_norm(leaf, (64,)).sum().backward()
F.scaled_dot_product_attention(q.requires_grad_(), q, q).sum().backward()
lstm(sequence)[0].sum().backward()
F.ctc_loss(log_p.requires_grad_(), labels, (20, 20), (5, 5)).backward()
F.nll_loss(leaf, i).backward()
F.multi_margin_loss(leaf, i).backward()
F.gumbel_softmax(leaf, hard=True).sum().backward()
leaf.to('cpu').sum().backward()
leaf.half().sum().backward()
torch.utils.checkpoint.checkpoint(lambda a: a.exp(), leaf, use_reentrant=False).sum().backward()
torch.func.grad(lambda a: a.sin().sum())(x)
torch.func.vmap(lambda a: a.sum())(x)
torch.func.jvp(torch.sin, (x,), (y,))
torch.autograd.functional.jacobian(lambda a: a.sin(), v[:4])
torch.func.vmap(lambda a, b: a[b])(x, i)
""",
    "optimizers": """
sgd.step()
sgd.zero_grad()
sgd.zero_grad(set_to_none=False)
momentum.step()
sgd_fused.step()
sgd_loop.step()
sgd_lr.step()
adam.step()
adam_fused.step()
adam_loop.step()
adam_capturable.step()
adam_amsgrad.step()
adamw.step()
adamw_loop.step()
adamw_capturable_loop.step()
adagrad.step()
adadelta.step()
adamax.step()
asgd.step()
nadam.step()
radam.step()
rmsprop.step()
rprop.step()
adafactor.step()
muon.step()
lbfgs.step(closure)
adam.state_dict()
scheduler.step()
swa.update_parameters(linear)
nn.utils.clip_grad_norm_(parameters, 1.0)
nn.utils.clip_grad_norm_(parameters, 1.0, foreach=False)
nn.utils.clip_grad_norm_(parameters, 1.0, norm_type=float('inf'))
nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
nn.utils.clip_grad_value_(parameters, 1.0)
nn.utils.get_total_norm([x, y])
nn.utils.get_total_norm([x, y], error_if_nonfinite=True)
scaler.scale(one)
scaler.get_scale()
(scaler.scale(one), scaler.get_scale())
(scaler.scale(one), scaler.update(2.0))
(scaler.scale(one), scaler.unscale_(sgd), scaler.step(sgd), scaler.update())
(scaler.scale(one), scaler.step(sgd), scaler.update())
(scaler.scale(one), scaler.step(adam_fused), scaler.update())
(scaler.scale(one), scaler.state_dict())
[p.grad.add_(1.0) for p in parameters]
[p.grad.norm().item() for p in parameters]
""",
    "streams, events and memory": """
torch.cuda.synchronize()
torch.cuda.current_stream().synchronize()
stream.synchronize()
side.synchronize()
stream.query()
side.query()
torch.cuda.default_stream().query()
event.record()
event.query()
event.synchronize()
event.wait()
recorded.synchronize()
recorded.query()
recorded.wait()
torch.cuda.Event().record()
torch.cuda.Event().synchronize()
torch.cuda.Event().query()
stream.record_event().query()
stream.record_event().synchronize()
torch.cuda.Stream()
torch.cuda.Stream().wait_stream(stream)
side.wait_stream(stream)
stream.wait_stream(side)
stream.wait_event(recorded)
side.wait_event(recorded)
x.record_stream(side)
torch.cuda.empty_cache()
torch.cuda.mem_get_info()
torch.cuda.memory_allocated()
torch.cuda.max_memory_allocated()
torch.cuda.memory_reserved()
torch.cuda.memory_stats()
torch.cuda.memory_summary()
torch.cuda.reset_peak_memory_stats()
torch.cuda.get_device_properties()
torch.cuda.current_device()
torch.cuda.device_count()
torch.cuda.is_available()
torch.cuda.ipc_collect()
torch.cuda.is_current_stream_capturing()
torch.cuda._sleep(100)
torch.cuda.nvtx.mark('here')
torch.accelerator.synchronize()
torch.accelerator.current_stream().synchronize()
torch.backends.cuda.matmul.allow_tf32
torch.empty(1 << 20, device='cuda')
""",
}


def names() -> tuple[str, ...]:
    """Return all calls, in the order in which they are asked."""
    return tuple(line for text in CALLS.values() for line in text.strip().splitlines())


def call_of(name: str) -> Callable[[], None]:
    """Return a function that makes the call once more, with inputs that are made now."""
    given = _modules()
    for wanted in _inputs_of(name):
        exec(_compiled(f"{wanted} = {INPUTS[wanted]}"), given)  # noqa: S102 # our own text
    code = _compiled(name)

    def call() -> None:
        exec(code, given)  # noqa: S102 # as above

    return call


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, text, "exec")


@cache
def _inputs_of(text: str) -> tuple[str, ...]:
    """Return the inputs that a line uses, and before them those that they are made of."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    needed: set[str] = set()
    for name in reversed(INPUTS):
        if name in used:
            needed.add(name)
            used.update(
                node.id for node in ast.walk(ast.parse(INPUTS[name])) if isinstance(node, ast.Name)
            )
    return tuple(name for name in INPUTS if name in needed)


def _modules() -> dict[str, Any]:
    import copy
    import io
    import operator
    import pickle

    import torch.utils.checkpoint
    import torch.utils.dlpack
    from torch import nn
    from torch.nn import functional

    return {
        **{module.__name__: module for module in (copy, io, math, operator, pickle, torch)},
        "nn": nn,
        "F": functional,
        "with_gradients": _with_gradients,
        "closure_of": _closure_of,
        "recorded_event": _recorded_event,
    }


def _with_gradients(parameters: list[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    return parameters


def _closure_of(
    optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]
) -> Callable[[], torch.Tensor]:
    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.stack([parameter.square().sum() for parameter in parameters]).sum()
        loss.backward()
        return loss

    return closure


def _recorded_event() -> torch.cuda.Event:
    event = torch.cuda.Event()
    event.record()
    return event
