"""Which number the driver's records give to a stream of torch.cuda: found by a kernel on each."""

from collections.abc import Mapping

import torch

from gpulab import records

Key = tuple[int, int]


def numbers_of(streams: Mapping[Key, torch.cuda.Stream]) -> dict[Key, Key]:
    """Return device and number of each stream as the records have them.

    A driver numbers streams by a count of its own and PyTorch knows them by their address, and
    nothing tells how the two belong together but a kernel of which both are known. So the
    shortest one is launched on each, in a session of the profiler of its own.

    Parameters
    ----------
    streams
        By device and address.
    """
    if not streams:
        return {}

    def launch() -> None:
        for stream in streams.values():
            with torch.cuda.stream(stream):
                torch.cuda._sleep(1)  # type: ignore[no-untyped-call]  # torch's gap

    done = sorted(records.capture(launch).records, key=lambda record: record.correlation or 0)
    # Were one of them lost, nobody could tell which.
    if len(done) != len(streams):
        return {}
    found = ((record.device, record.stream) for record in done)
    return dict(zip(streams, found, strict=True))
