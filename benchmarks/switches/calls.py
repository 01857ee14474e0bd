"""Calls that PyTorch may refuse under deterministic algorithms, and what it says to each."""

import functools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 # the usual name
from torch.utils import _pytree as pytree

Call = Callable[[], Any]

_DEVICE = "cuda"
_ALERT = "determinis"


def _floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return numbers that require gradients."""
    n = torch.Size(shape).numel()
    values = torch.linspace(0.1, 0.9, n, dtype=torch.float32).reshape(shape)
    return values.to(_DEVICE, dtype).requires_grad_()


def _plain(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return _floats(*shape, dtype=dtype).detach()


def _indices(*values: int) -> torch.Tensor:
    return torch.tensor(values, device=_DEVICE)


def deterministic_calls() -> dict[str, Call]:
    """Return the calls by name; those whose result requires gradients are run backward, too.

    Examples
    --------
    >>> "put_" in deterministic_calls()
    True
    """
    return dict((*_indexing(), *_reductions(), *_pools(), *_resizing(), *_losses(), *_others()))


def _indexing() -> Iterator[tuple[str, Call]]:
    index = partial(_indices, 0, 1, 0)
    yield "put_", lambda: _plain(6).put_(index(), _plain(3))
    yield "put_ accumulate", lambda: _plain(6).put_(index(), _plain(3), accumulate=True)
    yield "take", lambda: torch.take(_floats(6), index())
    yield "index_add", lambda: torch.index_add(_floats(4, 2), 0, index(), _floats(3, 2))
    yield "index_copy", lambda: torch.index_copy(_floats(4, 2), 0, index(), _floats(3, 2))
    yield "index_fill", lambda: torch.index_fill(_floats(4, 2), 0, index(), 1.0)
    yield "index_select", lambda: torch.index_select(_floats(4, 2), 0, index())
    yield "index", lambda: _floats(4, 2)[index()]
    yield "index_put", lambda: torch.index_put(_floats(4, 2), (index(),), _floats(3, 2))
    yield (
        "index_put accumulate",
        lambda: torch.index_put(_floats(4, 2), (index(),), _floats(3, 2), accumulate=True),
    )
    yield "gather", lambda: torch.gather(_floats(4), 0, index())
    yield "gather 2d", lambda: torch.gather(_floats(4, 2), 1, _indices(0, 1).expand(4, 2))
    yield "scatter", lambda: torch.scatter(_floats(4), 0, index(), _floats(3))
    yield "scatter value", lambda: torch.scatter(_floats(4), 0, index(), 1.0)
    yield "scatter add", lambda: torch.scatter(_plain(4), 0, index(), _plain(3), reduce="add")
    yield (
        "scatter multiply",
        lambda: torch.scatter(_plain(4), 0, index(), _plain(3), reduce="multiply"),
    )
    yield (
        "scatter value multiply",
        lambda: torch.scatter(_plain(4), 0, index(), 2.0, reduce="multiply"),
    )
    yield "scatter value add", lambda: torch.scatter(_plain(4), 0, index(), 2.0, reduce="add")
    yield "scatter_add", lambda: torch.scatter_add(_floats(4), 0, index(), _floats(3))
    yield (
        "scatter_add 2d",
        lambda: torch.scatter_add(_floats(4, 2), 0, _rows(), _floats(3, 2)),
    )
    yield (
        "scatter_add integers",
        lambda: torch.zeros(4, dtype=torch.int64, device=_DEVICE).scatter_add(0, index(), index()),
    )
    for shape in ((4,), (4, 2)):
        for reduction in ("sum", "prod", "mean", "amax", "amin"):
            name = f"scatter_reduce {reduction} {len(shape)}d"
            yield name, partial(_scatter_reduce, shape, reduction)
    for reduction in ("prod", "mean", "amax", "amin"):
        yield f"index_reduce {reduction}", partial(_index_reduce, reduction)
    yield "masked_scatter", lambda: _floats(4).masked_scatter(_plain(4) > 0.5, _floats(4))  # noqa: PLR2004 # half of them
    yield "masked_select", lambda: torch.masked_select(_floats(4), _plain(4) > 0.5)  # noqa: PLR2004 # half of them
    yield "repeat_interleave", lambda: torch.repeat_interleave(_floats(4), 2)
    yield (
        "repeat_interleave counts",
        lambda: torch.repeat_interleave(_floats(3), _indices(1, 2, 1)),
    )
    yield "embedding", lambda: F.embedding(index(), _floats(4, 2))
    yield "embedding max_norm", lambda: F.embedding(index(), _plain(4, 2), max_norm=1.0)
    for mode in ("sum", "mean", "max"):
        yield (
            f"embedding_bag {mode}",
            partial(
                lambda mode: F.embedding_bag(index(), _floats(4, 2), _indices(0, 2), mode=mode),
                mode,
            ),
        )
    yield "unfold", lambda: _floats(8).unfold(0, 3, 1)
    yield "as_strided", lambda: torch.as_strided(_floats(8), (4, 3), (1, 1))
    yield "roll", lambda: torch.roll(_floats(8), 2)


def _rows() -> torch.Tensor:
    return _indices(0, 1, 0)[:, None].expand(3, 2)


def _scatter_reduce(shape: tuple[int, ...], reduction: str) -> torch.Tensor:
    target: Any = _floats(*shape)
    index = _rows() if len(shape) > 1 else _indices(0, 1, 0)
    return target.scatter_reduce(0, index, _floats(*index.shape), reduction)


def _index_reduce(reduction: str) -> torch.Tensor:
    target: Any = _floats(4, 2)
    return target.index_reduce(0, _indices(0, 1, 0), _floats(3, 2), reduction)


def _reductions() -> Iterator[tuple[str, Call]]:
    counts = partial(_indices, 0, 1, 1)
    yield "bincount", lambda: torch.bincount(counts())
    yield "bincount weights", lambda: torch.bincount(counts(), weights=_plain(3))
    yield "histc", lambda: torch.histc(_plain(8), 4, 0, 1)
    yield "histc integers", lambda: torch.histc(_indices(1, 2, 3), 4, 0, 4)
    yield "kthvalue", lambda: torch.kthvalue(_floats(8), 3)[0]
    yield "median", lambda: torch.median(_floats(8))
    yield "median dim", lambda: torch.median(_floats(4, 2), 0)[0]
    yield "nanmedian", lambda: torch.nanmedian(_floats(8))
    yield "nanmedian dim", lambda: torch.nanmedian(_floats(4, 2), 0)[0]
    yield "mode", lambda: torch.mode(_floats(4, 2), 0)[0]
    yield "cumsum", lambda: torch.cumsum(_floats(8), 0)
    yield "cumsum 2d", lambda: torch.cumsum(_floats(4, 2), 0)
    yield "cumsum 2d last", lambda: torch.cumsum(_floats(4, 2), 1)
    yield "cumsum half", lambda: torch.cumsum(_floats(8, dtype=torch.float16), 0)
    yield "cumsum integers", lambda: torch.cumsum(counts(), 0)
    yield "cumsum to float", lambda: torch.cumsum(counts(), 0, dtype=torch.float32)
    yield "cumsum complex", lambda: torch.cumsum(_plain(8).to(torch.complex64), 0)
    yield "cumsum out", lambda: torch.cumsum(_plain(8), 0, out=_plain(8))
    yield "cumsum in place", lambda: _plain(8).cumsum_(0)
    yield "cumprod", lambda: torch.cumprod(_floats(8), 0)
    yield "cummax", lambda: torch.cummax(_floats(8), 0)[0]
    yield "logcumsumexp", lambda: torch.logcumsumexp(_floats(8), 0)
    yield "trace", lambda: torch.trace(_floats(3, 3))
    yield "sort", lambda: torch.sort(_floats(8))[0]
    yield "topk", lambda: torch.topk(_floats(8), 3)[0]
    yield "unique", lambda: torch.unique(counts())
    yield "quantile", lambda: torch.quantile(_floats(8), 0.5)
    yield "sum", lambda: _floats(8).sum()
    yield "prod", lambda: _floats(8).prod()
    yield "norm", lambda: torch.linalg.vector_norm(_floats(8))
    yield "segment_reduce", lambda: torch.segment_reduce(_floats(4), "sum", lengths=_indices(2, 2))
    yield "histogram in bins", lambda: torch.bucketize(_plain(8), _plain(4))


def _pools() -> Iterator[tuple[str, Call]]:
    for n in (1, 2, 3):
        shape = (1, 2, *(8,) * n)
        for kind in ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool"):
            pool = getattr(F, f"{kind}{n}d")
            size = (2.0, 2) if kind == "lp_pool" else (2,)
            yield f"{kind}{n}d", partial(_pool, pool, shape, size)
        yield (
            f"adaptive_avg_pool{n}d to 1",
            partial(_pool, getattr(F, f"adaptive_avg_pool{n}d"), shape, (1,)),
        )
        yield (
            f"max_pool{n}d overlapping",
            partial(_pool, getattr(F, f"max_pool{n}d"), shape, (3, 1)),
        )
        yield (
            f"avg_pool{n}d overlapping",
            partial(_pool, getattr(F, f"avg_pool{n}d"), shape, (3, 1)),
        )
        yield f"max_unpool{n}d", partial(_unpool, n, shape)
    yield "fractional_max_pool2d", lambda: _fractional(F.fractional_max_pool2d, (1, 2, 8, 8))
    yield "fractional_max_pool3d", lambda: _fractional(F.fractional_max_pool3d, (1, 2, 8, 8, 8))


def _pool(
    pool: Callable[..., Any], shape: tuple[int, ...], size: tuple[float, ...]
) -> torch.Tensor:
    pooled: torch.Tensor = pool(_floats(*shape), *size)
    return pooled


def _unpool(n: int, shape: tuple[int, ...]) -> torch.Tensor:
    values, indices = getattr(F, f"max_pool{n}d")(_plain(*shape), 2, return_indices=True)
    unpooled: torch.Tensor = getattr(F, f"max_unpool{n}d")(values.requires_grad_(), indices, 2)
    return unpooled


def _fractional(pool: Callable[..., Any], shape: tuple[int, ...]) -> torch.Tensor:
    pooled: torch.Tensor = pool(_floats(*shape), 2, output_size=(3,) * (len(shape) - 2))
    return pooled


def _resizing() -> Iterator[tuple[str, Call]]:
    for mode, n in (
        *(("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1)),
        *(("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("area", 2)),
    ):
        shape = (1, 2, *(4,) * n)
        yield f"interpolate {mode} {n}d", partial(_interpolate, shape, mode, {})
    for mode in ("bilinear", "bicubic"):
        options = {"antialias": True, "align_corners": False}
        yield f"interpolate {mode} antialias", partial(_interpolate, (1, 2, 4, 4), mode, options)
    for mode in ("reflect", "replicate", "circular", "constant"):
        for n in (1, 2, 3):
            yield f"pad {mode} {n}d", partial(_pad, n, mode)
    for n in (2, 3):
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border"):
                for aligned in (False, True):
                    name = f"grid_sample {n}d {mode} {padding} {'aligned' if aligned else ''}"
                    yield name.strip(), partial(_grid_sample, n, mode, padding, aligned=aligned)
    yield "grid_sample bicubic", partial(_grid_sample, 2, "bicubic", "zeros", aligned=False)
    yield "affine_grid", lambda: F.affine_grid(_floats(1, 2, 3), [1, 1, 4, 4])
    yield "pixel_shuffle", lambda: F.pixel_shuffle(_floats(1, 4, 2, 2), 2)
    yield "fold", lambda: F.fold(_floats(1, 4, 9), (4, 4), 2)
    yield "F.unfold", lambda: F.unfold(_floats(1, 1, 4, 4), 2)


def _interpolate(shape: tuple[int, ...], mode: str, options: dict[str, Any]) -> torch.Tensor:
    return F.interpolate(_floats(*shape), scale_factor=2.0, mode=mode, **options)


def _pad(n: int, mode: str) -> torch.Tensor:
    return F.pad(_floats(1, 2, *(4,) * n), (1, 1) * n, mode=mode)


def _grid_sample(n: int, mode: str, padding: str, *, aligned: bool) -> torch.Tensor:
    image, grid = _floats(1, 1, *(4,) * n), _floats(1, *(3,) * n, n)
    return F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=aligned)


def _losses() -> Iterator[tuple[str, Call]]:
    classes = partial(_indices, 0, 1, 0)
    for reduction in ("mean", "sum", "none"):
        yield (
            f"nll_loss {reduction}",
            partial(lambda r: F.nll_loss(_floats(3, 4), classes(), reduction=r), reduction),
        )
        yield (
            f"nll_loss2d {reduction}",
            partial(
                lambda r: F.nll_loss(_floats(1, 4, 2, 2), _labels(1, 2, 2), reduction=r), reduction
            ),
        )
        yield (
            f"cross_entropy 2d {reduction}",
            partial(
                lambda r: F.cross_entropy(_floats(1, 4, 2, 2), _labels(1, 2, 2), reduction=r),
                reduction,
            ),
        )
    yield "cross_entropy", lambda: F.cross_entropy(_floats(3, 4), classes())
    yield "cross_entropy 3d", lambda: F.cross_entropy(_floats(1, 4, 6), _labels(1, 6))
    yield "mse_loss", lambda: F.mse_loss(_floats(4), _plain(4))
    yield "multi_margin_loss", lambda: F.multi_margin_loss(_floats(3, 4), classes())
    yield (
        "multilabel_margin_loss",
        lambda: F.multilabel_margin_loss(_floats(1, 4), _indices(3, 0, -1, 1)[None]),
    )
    for where in ("cuda", "cpu"):
        for dtype in (torch.int32, torch.int64):
            yield f"ctc_loss, {dtype} targets on {where}", partial(_ctc, where, dtype)
    yield "cdist", lambda: torch.cdist(_floats(3, 2), _floats(4, 2))
    yield "pdist", lambda: F.pdist(_floats(3, 2))


def _labels(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=torch.int64, device=_DEVICE)


def _ctc(where: str, dtype: torch.dtype) -> torch.Tensor:
    scores = _floats(10, 1, 5).log_softmax(2)
    targets = torch.tensor([1, 2, 3], dtype=dtype, device=where)
    return F.ctc_loss(scores, targets, (10,), (3,))


def _others() -> Iterator[tuple[str, Call]]:
    for n in (1, 2, 3):
        yield f"conv{n}d", partial(_convolve, f"conv{n}d", n)
        yield f"conv_transpose{n}d", partial(_convolve, f"conv_transpose{n}d", n)
    yield "conv2d depthwise", lambda: F.conv2d(_floats(1, 2, 4, 4), _floats(2, 1, 2, 2), groups=2)
    yield "batch_norm", lambda: F.batch_norm(_floats(2, 3, 4), None, None, training=True)
    yield "layer_norm", lambda: F.layer_norm(_floats(2, 4), (4,))
    yield "group_norm", lambda: F.group_norm(_floats(2, 4, 4), 2)
    yield "dropout", lambda: F.dropout(_floats(8))
    yield "softmax", lambda: F.softmax(_floats(2, 4), 1)
    yield "rrelu", lambda: F.rrelu(_floats(8), training=True)
    yield "prelu", lambda: F.prelu(_floats(2, 4), _floats(4))
    yield "lstm", _lstm
    yield "attention", lambda: F.scaled_dot_product_attention(*(_floats(1, 2, 8, 16),) * 3)
    yield (
        "attention half",
        lambda: F.scaled_dot_product_attention(
            *(_floats(1, 2, 8, 64, dtype=torch.float16) for _ in range(3))
        ),
    )
    yield (
        "attention masked",
        lambda: F.scaled_dot_product_attention(
            *(_floats(1, 2, 8, 16) for _ in range(3)), attn_mask=_plain(8, 8) > 0
        ),
    )
    yield "linalg.inv", lambda: torch.linalg.inv(torch.eye(3, device=_DEVICE) + _floats(3, 3))
    yield "linalg.svd", lambda: torch.linalg.svdvals(_floats(3, 3))
    yield "fft", lambda: torch.fft.fft(_floats(8))
    yield "multinomial", lambda: torch.multinomial(_plain(8), 2)
    yield "randperm", lambda: torch.randperm(8, device=_DEVICE)
    yield "renorm", lambda: torch.renorm(_floats(3, 2), 2, 0, 1.0)
    yield "cross", lambda: torch.linalg.cross(_floats(2, 3), _floats(2, 3))
    yield "nonzero", lambda: torch.nonzero(_plain(4))
    yield "flip", lambda: torch.flip(_floats(4), (0,))
    yield "diag", lambda: torch.diag(_floats(4))
    yield "tril", lambda: torch.tril(_floats(3, 3))
    yield "resize_", lambda: _plain(4).resize_(8)


def _convolve(name: str, n: int) -> torch.Tensor:
    convolved: torch.Tensor = getattr(F, name)(_floats(1, 2, *(4,) * n), _floats(2, 2, *(2,) * n))
    return convolved


def _lstm() -> torch.Tensor:
    module = torch.nn.LSTM(4, 4).to(_DEVICE)
    result: torch.Tensor = module(_floats(3, 2, 4))[0]
    return result


def alerts(call: Call) -> dict[str, str | None]:
    """Return the errors of a call under deterministic algorithms, or None where there is none."""
    forward: str | None = _error(call, mode=True)
    results: list[Any] = []
    before = _error(lambda: results.append(call()), mode=False)
    outs = [
        out
        for out in pytree.tree_leaves(results)
        if isinstance(out, torch.Tensor) and out.requires_grad
    ]
    if before is not None or not outs:
        return {"forward": forward, "backward": before and f"no result: {before}"}
    loss = functools.reduce(torch.add, (out.abs().sum() for out in outs))
    return {"forward": forward, "backward": _error(loss.backward, mode=True)}


def _error(call: Callable[[], Any], *, mode: bool) -> str | None:
    torch._C._set_deterministic_algorithms(mode, warn_only=False)  # without the compiler's import
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 # its text is the answer
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        torch._C._set_deterministic_algorithms(False, warn_only=False)  # noqa: FBT003 # as above
    texts = [str(each.message) for each in caught]
    return next((f"warns: {text}" for text in texts if _ALERT in text), None)
