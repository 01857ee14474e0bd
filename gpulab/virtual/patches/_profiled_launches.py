"""Find the range of the host that each call of CUDA, and each kernel, belongs to."""

from bisect import bisect_right
from collections.abc import Sequence

from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.virtual.patches._profiled_ranges import ProfiledCall, ProfiledRange


class Launches:
    """Finds the range that each call of CUDA, and each kernel, belongs to.

    ``profiled`` are the operators that arrived at the virtual GPU, by time.
    """

    def __init__(
        self,
        ranges: Sequence[ProfiledRange],
        profiled: Sequence[ProfiledCall],
        calls: Sequence[HostCall],
    ) -> None:
        self._all = profiled
        self._moments = [each.moment_ns for each in profiled]
        self._profiled = [each for each in profiled if each.end_ns > each.start_ns]
        self._call_starts = [each.start_ns for each in self._profiled]
        # The sort is stable, so of two ranges with the same start the outer one comes first.
        self._ranges = sorted(ranges, key=lambda profiled_range: profiled_range.start_ns)
        self._range_starts = [profiled_range.start_ns for profiled_range in self._ranges]
        launchers = {id(each): iter(each.launchers) for each in self._profiled}
        self._around: dict[int, ProfiledRange | None] = {}
        for call in calls:
            profiled_call = self._operator_of(call)
            if profiled_call is None:
                around = self._innermost(call)
            else:
                # A wait belongs to the last launch.
                last = profiled_call.launchers[-1] if profiled_call.launchers else None
                around = last or profiled_call.owner
                if call.kind == "launch":
                    around = next(launchers[id(profiled_call)], around)
            self._around[call.correlation] = around

    def range_of(self, call: HostCall) -> ProfiledRange | None:
        """Return the innermost range around a call, or None."""
        return self._around[call.correlation]

    def start_of(self, call: HostCall) -> int:
        """Return when a call began, after everything that had happened before it."""
        index = bisect_right(self._moments, call.start_ns) - 1
        before = self._all[index] if index >= 0 else None
        if before is None or before.end_ns >= call.end_ns:
            return call.start_ns
        return max(call.start_ns, before.end_ns + 1)

    def launcher_of(self, record: ActivityRecord) -> ProfiledRange | None:
        """Return the innermost range around the launch of a kernel or copy, or None."""
        return self._around.get(record.correlation or 0)

    def _operator_of(self, call: HostCall) -> ProfiledCall | None:
        index = bisect_right(self._call_starts, call.start_ns) - 1
        if index < 0 or call.end_ns > self._profiled[index].end_ns:
            return None
        return self._profiled[index]

    def _innermost(self, call: HostCall) -> ProfiledRange | None:
        before = reversed(self._ranges[: bisect_right(self._range_starts, call.start_ns)])
        return next(
            (profiled_range for profiled_range in before if profiled_range.end_ns >= call.end_ns),
            None,
        )
