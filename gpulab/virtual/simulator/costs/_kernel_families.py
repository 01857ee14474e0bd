"""Constants of each family of kernels, such as reductions: launch cost, floor, bandwidth shares.

They were fitted by hand to the driver's records of one NVIDIA H200 (driver 580.159, torch 2.11).
``docs/fidelity.md`` lists the workloads, and says how close the times of others are.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelFamily:
    """What determines the time of one kind of kernel, besides its FLOPs and bytes.

    The shares and rates were measured on an H200 and are used for all GPUs.

    Attributes
    ----------
    floor_ns
        Duration of the kernel when it has almost nothing to do.
    launch_ns
        Host time of the call in PyTorch's eager mode.
    memory_share, l2_share
        Share of the reachable bandwidth of memory and cache that these kernels use.
    compute_share
        Share of the peak arithmetic that they reach.
    rate
        Elements that one multiprocessor processes per clock, or 0 for no limit.
    row_clocks
        Additional clocks that one multiprocessor spends on each row.
    step_clocks
        Clocks for each of the steps that run one after another.
    doubling_ns
        By how much the floor grows with each doubling of the elements, from 1,024 to a million.
    block_bytes
        Bytes that one block of threads moves per clock, or 0 for no limit.
    first_miss_ns
        Time until the first bytes come from memory; 0 for kernels that only write.
    """

    floor_ns: int
    launch_ns: int
    memory_share: float = 1.0
    l2_share: float = 1.0
    compute_share: float = 1.0
    rate: float = 0.0
    row_clocks: float = 0.0
    step_clocks: float = 0.0
    doubling_ns: int = 0
    block_bytes: float = 0.0
    first_miss_ns: int = 300


KERNEL_FAMILIES = {
    # One thread for each element. The first loads vectors of 16 bytes. Those with a rate cannot,
    # or they compute more for each element.
    "elementwise": KernelFamily(900, 5_250),
    "fill": KernelFamily(900, 4_400, 1.06, 0.58, first_miss_ns=0),
    "copy": KernelFamily(900, 4_500),
    "broadcast": KernelFamily(900, 5_200, rate=1.56),
    "cast": KernelFamily(900, 7_000, rate=1.32),
    "mixed types": KernelFamily(3_100, 7_000, rate=3.0),
    "strided": KernelFamily(900, 6_500, rate=0.54),
    "error function": KernelFamily(900, 5_400, rate=3.1),
    "concatenation": KernelFamily(900, 6_350, l2_share=0.78),
    "index": KernelFamily(900, 6_200, rate=0.407),
    "memset": KernelFamily(780, 1_500),
    # The floor is higher, because every thread first sets up its random number generator.
    "uniform": KernelFamily(2_700, 5_500, rate=2.51),
    "normal": KernelFamily(2_700, 6_700, rate=1.67),
    "dropout": KernelFamily(2_700, 9_700, rate=2.32),
    # Blocks of threads that process a row together.
    "reduction": KernelFamily(1_800, 6_100, 0.97, doubling_ns=330, first_miss_ns=600),
    "first axis": KernelFamily(1_800, 6_300, 0.80, rate=4.0, doubling_ns=290),
    "softmax": KernelFamily(2_000, 5_300, row_clocks=80),
    "softmax in shared memory": KernelFamily(1_400, 5_300, 0.77, 0.77, row_clocks=600),
    "softmax of long rows": KernelFamily(1_400, 5_300, 0.58, 0.58, block_bytes=15.5),
    "softmax backward": KernelFamily(1_400, 7_000, 0.87, 0.87),
    "norm": KernelFamily(2_000, 8_000, row_clocks=440),
    "root mean square": KernelFamily(1_500, 8_000, row_clocks=270),
    "channel": KernelFamily(1_500, 9_000, 0.67, 0.67, block_bytes=10.5),
    "channels last": KernelFamily(5_800, 9_000, 0.6, 0.33, step_clocks=1),
    "moments": KernelFamily(1_500, 13_500, 0.67, 0.67, rate=0.92),
    "column sums": KernelFamily(1_800, 3_000, 0.80, rate=4.0, doubling_ns=290),
    "scan": KernelFamily(1_500, 5_500, 0.186, 0.138),
    "scan of one row": KernelFamily(3_500, 9_000, 0.75, 0.75),
    "losses": KernelFamily(1_500, 8_300, step_clocks=25.5),
    # Reads and writes at places that an index gives.
    "rows": KernelFamily(900, 7_600, l2_share=0.78),
    "gather": KernelFamily(900, 6_100, 0.8, rate=0.83),
    "atomic add": KernelFamily(900, 5_400, rate=0.314),
    # Sorts, transforms and factorizations: several passes over all elements.
    "histogram": KernelFamily(7_000, 3_000, 0.5, 0.5),
    "radix pass": KernelFamily(6_000, 3_300, 0.5, 0.5),
    "row sort": KernelFamily(900, 10_000, rate=0.137),
    "digit counts": KernelFamily(1_500, 3_500, rate=2.77),
    "small step": KernelFamily(1_300, 3_000),
    "digit sums": KernelFamily(1_950, 3_500),
    "digit sums within k": KernelFamily(2_900, 3_500),
    "short sort": KernelFamily(4_200, 5_300),
    "fourier": KernelFamily(2_500, 7_300, 0.82, 0.54),
    "factorization": KernelFamily(3_000, 5_000, step_clocks=628),
    # Matmuls and what is computed like them; ``_matmul_tiles`` has the shares of their tiles.
    "gemm": KernelFamily(1_900, 9_900, l2_share=0.85),
    "linear": KernelFamily(1_900, 10_500, l2_share=0.85),
    "conv": KernelFamily(1_900, 11_800),
    "relayout": KernelFamily(900, 4_200, 0.87, 0.87),
    # cuDNN's for any layout, 10 us even for few elements.
    "conversion": KernelFamily(9_500, 4_200, rate=0.24),
    "depthwise": KernelFamily(1_000, 7_300, rate=3.8),
    "depthwise in halves": KernelFamily(1_000, 8_000, rate=7.6),
    "windows": KernelFamily(900, 6_300, rate=1.28),
    "resize": KernelFamily(900, 5_900, rate=1.49),
    "attention": KernelFamily(2_000, 13_000),
    "attention backward": KernelFamily(2_000, 20_000),
    # Recurrent layers of cuDNN: a kernel for each step, or one for all steps.
    "recurrent cell": KernelFamily(1_300, 10_500),
    "recurrent gemm": KernelFamily(3_600, 10_500, compute_share=0.3),
    "recurrent gemm back": KernelFamily(7_900, 10_500, compute_share=0.3),
    "recurrence": KernelFamily(1_500, 10_500, step_clocks=9_600),
    "recurrence back": KernelFamily(1_500, 10_500, step_clocks=4_500),
    # One launch for many tensors.
    "foreach": KernelFamily(1_400, 7_500, 0.865, 0.865, block_bytes=20.0),
    "fused optimizer": KernelFamily(2_500, 20_000, 0.91, 0.91, block_bytes=22.9),
    "other": KernelFamily(2_000, 7_000, 0.8, 0.8, 0.5),
}
