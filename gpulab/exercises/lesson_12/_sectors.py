"""The number of sectors that a strided read fetches, and the judge for a function that counts."""

import math
from typing import NamedTuple

from gpulab.exercises.answers import CaseFunction, Diagnosis

_SECTOR = 32  # bytes; the smallest piece of memory that a GPU of NVIDIA fetches


def sectors(n: int, stride: int, size_bytes: int) -> int:
    """Return how many sectors of 32 bytes contain a part of some of ``n`` elements that are read.

    The stride is in elements, 1 for neighbours. An element has 1, 2, 4, 8, 16 or 32 bytes, and the
    first begins at the start of a sector. Caches are not considered, although a sector may already
    be in one.

    >>> sectors(32, stride=1, size_bytes=4), sectors(32, stride=16, size_bytes=4)
    (4, 32)
    """
    return len({k * stride * size_bytes // _SECTOR for k in range(n)})


class StridedRead(NamedTuple):
    """A read of ``n`` elements of ``size_bytes``, each ``stride`` elements after the last."""

    n: int
    stride: int
    size_bytes: int


# Chosen so that each of the wrong formulas below differs from the right one in some case.
CASES = (
    StridedRead(32, 1, 4),
    StridedRead(32, 2, 4),
    StridedRead(1000, 3, 4),
    StridedRead(32, 8, 4),
    StridedRead(64, 5, 2),
    StridedRead(64, 100, 2),
    StridedRead(3, 7, 4),
    StridedRead(9, 30, 8),
)


def _otherwise(case: StridedRead) -> str:
    n, stride, size_bytes = case
    return (
        f"For n={n}, stride={stride}, size_bytes={size_bytes} it is {sectors(*case)}: in which "
        "sector does element k begin?"
    )


SECTORS_JUDGE = CaseFunction(
    signature="sectors(n, stride, size_bytes)",
    returns="the number of sectors of 32 bytes that the GPU must fetch",
    why="Neighbours share sectors. The farther apart they are, the fewer share one, until each "
    "element has a sector for itself: 32 bytes are fetched for 4 that are used. From there on a "
    "larger stride fetches no more.",
    cases=CASES,
    right=sectors,
    mistakes=(
        (
            lambda n, _stride, size_bytes: math.ceil(n * size_bytes / _SECTOR),
            Diagnosis(
                "only-what-is-used",
                "You count the bytes that are used, whatever the stride. The GPU fetches whole "
                "sectors, and with a stride it does not use all of their bytes.",
            ),
        ),
        (
            lambda n, stride, size_bytes: math.ceil(n * stride * size_bytes / _SECTOR),
            Diagnosis(
                "the-whole-span",
                "You count all sectors between the first element and the last. With a large "
                "stride many of them contain no element, and are not fetched.",
            ),
        ),
        (
            lambda n, stride, size_bytes: min(n, math.ceil(n * stride * size_bytes / _SECTOR)),
            Diagnosis(
                "beyond-the-last",
                "You count up to the place where one more element would begin. The last element "
                "may end in an earlier sector.",
            ),
        ),
        (
            lambda n, _stride, _size_bytes: n,
            Diagnosis(
                "one-for-each",
                "You fetch a sector for each element. Neighbours lie in the same sector, and "
                "the GPU fetches it once.",
            ),
        ),
        (
            lambda n, stride, size_bytes: len({k * stride * size_bytes // 128 for k in range(n)}),
            Diagnosis(
                "cache-lines",
                "You count lines of 128 bytes. A line has four sectors, and each is fetched on "
                "its own.",
            ),
        ),
        (
            lambda n, stride, _size_bytes: len({k * stride // _SECTOR for k in range(n)}),
            Diagnosis(
                "elements-are-no-bytes",
                "You count in elements. A sector has 32 bytes, so multiply by size_bytes first.",
            ),
        ),
    ),
    otherwise=_otherwise,
)
