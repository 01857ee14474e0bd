"""Probes of factories, views, rearranging and assignment."""

import numpy as np
import torch

from tests.probes.table import Gives, Probe, normal, same


def _write_through_chained_views(d: str) -> torch.Tensor:
    x = torch.zeros(4, 6, device=d)
    x.view(2, 2, 6)[1].t()[2:4].mul_(0).add_(3)
    x.t()[0].copy_(torch.arange(4.0))
    return x


def _assign_by_mask(d: str) -> torch.Tensor:
    x = normal(d, 5, 4)
    x[x > 0.5] = 9
    x[x < 0] = torch.zeros(int((x < 0).sum()), device=d)
    x.masked_fill_(x == 9, -1)
    return x


def _assign_slices(d: str) -> torch.Tensor:
    x = torch.zeros(6, 6, device=d)
    x[1] = 1
    x[:, 2] = torch.arange(6.0, device=d)
    x[::2, 1:3] += 5
    x[-1, ...] = x[0]
    x[2, 3] = torch.tensor(7.0)
    x[..., None][4] = 8
    return x


def _assign_by_index(d: str) -> torch.Tensor:
    x = torch.zeros(5, 4, device=d)
    rows = torch.tensor([0, 2, 2], device=d)
    x[rows] = 1
    x[rows, torch.tensor([1, 1, 3], device=d)] = torch.tensor([5.0, 6.0, 7.0], device=d)
    x[[3, 4], 0] = 2
    x[torch.tensor([1])] = 4
    return x


def _accumulate_by_index(d: str) -> torch.Tensor:
    rows = torch.tensor([0, 2, 2], device=d)
    return torch.zeros(3, device=d).index_put_((rows,), torch.ones(3, device=d), accumulate=True)


def _overlapping_windows(d: str) -> torch.Tensor:
    return normal(d, 12)[1:].as_strided((4, 4), (2, 1), 2).sum(dim=1)


def _change_shape_in_place(d: str) -> list[object]:
    x = normal(d, 2, 1, 3)
    x.squeeze_(1).t_().unsqueeze_(0).transpose_(1, 2)
    return [x, x.shape, x.stride()]


def _index_by_host_tensors_of_several_lengths(d: str) -> list[torch.Tensor]:
    x = normal(d, 5, 2)
    return [x[torch.arange(n)] for n in (2, 3, 1)]


FAMILIES: dict[str, list[Probe]] = {
    "factories": [
        *same(
            {
                "zeros, ones, full": lambda d: (
                    torch.zeros(2, 3, device=d),
                    torch.ones(4, dtype=torch.int32, device=d),
                    torch.full((2, 2), 1.5, device=d),
                    torch.full((3,), fill_value=True, device=d),
                ),
                "empty has a shape": lambda d: torch.empty(3, 4, device=d).zero_(),
                "arange, linspace, logspace": lambda d: (
                    torch.arange(1, 10, 2, device=d),
                    torch.arange(0, 1, 0.25, device=d),
                    torch.linspace(0, 1, 5, device=d),
                    torch.logspace(0, 2, 3, device=d),
                ),
                "eye": lambda d: torch.eye(3, 4, device=d),
                "like another": lambda d: [
                    f(normal(d, 3, 2).t())
                    for f in (torch.zeros_like, torch.ones_like, lambda x: torch.full_like(x, 2))
                ],
                "like another, of another type": lambda d: torch.ones_like(
                    normal(d, 2), dtype=torch.int64
                ),
                "new from a tensor": lambda d: (
                    normal(d, 2).new_zeros(3),
                    normal(d, 2).new_ones(2, 2),
                    normal(d, 2).new_full((2,), 4.0),
                    normal(d, 2).new_tensor([1, 2]),
                    normal(d, 2).new_empty(3).fill_(1),
                ),
                "a tensor of a list": lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
                "a tensor of a number": lambda d: torch.tensor(2.5, device=d),
                "as_tensor of a list and an array": lambda d: (
                    torch.as_tensor([1.0, 2.0], device=d),
                    torch.as_tensor(np.arange(3), device=d),
                ),
                "asarray": lambda d: torch.asarray([1, 2, 3], device=d),
                "from_numpy, then to": lambda d: torch.from_numpy(np.ones((2, 3))).to(d),
                "meshgrid, cartesian product, combinations": lambda d: (
                    torch.meshgrid(
                        torch.arange(3, device=d), torch.arange(2, device=d), indexing="ij"
                    ),
                    torch.cartesian_prod(torch.arange(2, device=d), torch.arange(3, device=d)),
                    torch.combinations(torch.arange(4, device=d)),
                ),
                "one hot": lambda d: torch.nn.functional.one_hot(
                    torch.tensor([0, 2, 1], device=d), 4
                ),
            }
        )
    ],
    "views": [
        *same(
            {
                "slice, step, ellipsis, None": lambda d: normal(d, 4, 6)[1:, ::2, None] * 1,
                "view and reshape": lambda d: normal(d, 4, 6).view(2, -1).reshape(6, 4, 1),
                "view as another type": lambda d: torch.arange(
                    4, dtype=torch.float32, device=d
                ).view(torch.int32),
                "as_strided": _overlapping_windows,
                "real and imaginary part": lambda d: (
                    torch.view_as_real(normal(d, 3, dtype=torch.complex64)),
                    normal(d, 3, dtype=torch.complex64).real,
                    torch.view_as_complex(normal(d, 3, 2)),
                ),
                "contiguous and channels last": lambda d: (
                    normal(d, 3, 4).t().contiguous(),
                    normal(d, 2, 3, 4, 4).contiguous(memory_format=torch.channels_last).stride(),
                    normal(d, 2, 3, 4, 4).to(memory_format=torch.channels_last) + 1,
                ),
                "shape changed in place": _change_shape_in_place,
                "strides and offsets": lambda d: (
                    normal(d, 4, 6)[1:, ::2].stride(),
                    normal(d, 4, 6)[1:, ::2].storage_offset(),
                    normal(d, 4, 6).t().is_contiguous(),
                ),
                "a chain of writes through views": _write_through_chained_views,
            }
        ),
        Gives(
            "strides after a copy",
            lambda: (
                torch.ones(1).expand(4).to("cuda").stride(),
                torch.ones(3, 4, device="cuda")[:, ::2].cpu().stride(),
                torch.ones(3, 4, device="cuda").t().cpu().stride(),
                torch.ones(2, 3, 4, 4).to("cuda", memory_format=torch.channels_last).stride(),
            ),
            ((1,), (2, 1), (1, 4), (48, 1, 12, 3)),
        ),
    ],
    "assignment": [
        *same(
            {
                "slices": _assign_slices,
                "masks": _assign_by_mask,
                "indices": _assign_by_index,
                "accumulated at indices": _accumulate_by_index,
                "index_add, index_copy, index_fill": lambda d: (
                    torch.zeros(4, 2, device=d).index_add_(
                        0, torch.tensor([0, 0, 3], device=d), torch.ones(3, 2, device=d)
                    ),
                    torch.zeros(4, device=d).index_copy_(
                        0, torch.tensor([1, 2], device=d), torch.ones(2, device=d)
                    ),
                    torch.zeros(4, device=d).index_fill_(0, torch.tensor([1], device=d), 3),
                ),
                "masked_scatter": lambda d: torch.zeros(4, device=d).masked_scatter_(
                    torch.tensor([True, False, True, False], device=d), torch.arange(2.0, device=d)
                ),
                "operators in place": lambda d: (
                    normal(d, 4).add_(1).mul_(2).sub_(0.5).div_(3).clamp_(-1, 1).neg_().abs_()
                ),
                "augmented assignment": lambda d: normal(d, 4).__iadd__(1).__imul__(3),
                "copy_ from another type": lambda d: torch.zeros(3, device=d).copy_(
                    torch.tensor([1, 2, 3])
                ),
                "out=": lambda d: torch.add(
                    normal(d, 3), normal(d, 3), out=torch.empty(3, device=d)
                ),
                "out= that must grow": lambda d: torch.mul(
                    normal(d, 3), 2, out=torch.empty(0, device=d)
                ),
                "resize_": lambda d: (normal(d, 6).resize_(2, 2), normal(d, 2).resize_(8).shape),
                "set_": lambda d: torch.zeros(2, device=d).set_(torch.ones(3, device=d)),
                "host indices of several lengths": _index_by_host_tensors_of_several_lengths,
                "lists and arrays as indices": lambda d: (
                    normal(d, 4, 5)[[0, 2]],
                    normal(d, 4, 5)[[0, 2], [1, 4]],
                    normal(d, 4, 5)[np.array([3, 1])],
                    normal(d, 4, 5)[:, [True, False, True, False, True]],
                ),
            }
        )
    ],
    "rearranging": [
        *same(
            {
                "cat of different types": lambda d: torch.cat(
                    [normal(d, 2), torch.arange(3, device=d)]
                ),
                "repeat, tile, repeat_interleave": lambda d: (
                    normal(d, 2, 3).repeat(2, 2),
                    normal(d, 3).tile(2),
                    normal(d, 3).repeat_interleave(2),
                    normal(d, 3).repeat_interleave(torch.tensor([1, 0, 2], device=d)),
                ),
                "tensors of different lengths": lambda d: torch.nn.utils.rnn.pad_sequence(
                    [normal(d, 2), normal(d, 4)], batch_first=True
                ),
            }
        )
    ],
}
