"""After a measurement the process is as it was, even if the work changed its settings."""

import gc
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.core.errors import StreamLeftOpenError
from gpulab.timing import left_as_found
from gpulab.timing._isolation import calling_work
from gpulab.virtual import VirtualGpu


@pytest.fixture(autouse=True)
def h200() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 whose context exists already."""
    with gpulab.virtual_gpu("H200", first_use=False, count=2) as virtual:
        yield virtual


@pytest.mark.parametrize("leave", [None, ValueError, KeyboardInterrupt])
def test_state_is_put_back_on_every_way_out(leave: type[BaseException] | None) -> None:
    """Stream, gradient mode and collector are restored after success, an error or Ctrl-C."""
    side, other = torch.cuda.Stream(), torch.cuda.Stream()

    def mess() -> None:
        with left_as_found():
            assert not gc.isenabled()
            torch.cuda.set_stream(other)
            torch.set_grad_enabled(False)
            torch.cuda._sleep(1_000_000)
            if leave is not None:
                raise leave

    with torch.cuda.stream(side):
        if leave is None:
            mess()
        else:
            with pytest.raises(leave):
                mess()
        assert torch.cuda.current_stream() == side
    assert torch.is_grad_enabled()
    assert gc.isenabled()
    assert other.query()


def test_error_of_the_work_is_not_hidden_by_a_dead_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every synchronize raises, the caller still gets the first error, not a later one."""

    def dead() -> None:
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(torch.cuda, "synchronize", dead)
    with pytest.raises(ValueError, match=r"^of the work$"), left_as_found():
        raise ValueError("of the work")
    assert gc.isenabled()


def test_device_left_open() -> None:
    """Work that leaves another device current is refused, and the error names both devices."""
    torch.cuda.set_device(0)
    with pytest.raises(StreamLeftOpenError) as error, calling_work("in call 3"):
        torch.cuda.set_device(1)
    assert str(error.value) == (
        "the work returned with cuda:1 as the current device, and was given cuda:0; write "
        "`with torch.cuda.device(...):` in it, which restores the first one"
    )
    torch.cuda.set_device(0)


@pytest.mark.slow  # PyTorch imports its compiler for it
@pytest.mark.parametrize("changed", [False, True])
def test_determinism_is_put_back_only_where_it_was_changed(
    monkeypatch: pytest.MonkeyPatch,
    changed: bool,  # noqa: FBT001 # a parameter of the test
) -> None:
    """The setter runs only after a change: it imports the compiler, which once took 5 s."""
    calls: list[tuple[bool, bool]] = []
    choose = torch.use_deterministic_algorithms

    def noted(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 # as torch has it
        calls.append((mode, warn_only))
        choose(mode, warn_only=warn_only)

    with left_as_found():
        if changed:
            choose(mode=True, warn_only=True)
        monkeypatch.setattr(torch, "use_deterministic_algorithms", noted)
    assert calls == [(False, False)] * changed
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.slow
@pytest.mark.parametrize("only_warned", [False, True])
def test_warn_only_is_put_back(
    only_warned: bool,  # noqa: FBT001 # a parameter of the test
) -> None:
    """`warn_only` of deterministic algorithms is restored when only it was changed."""
    try:
        torch.use_deterministic_algorithms(mode=True, warn_only=only_warned)
        with left_as_found():
            torch.use_deterministic_algorithms(mode=True, warn_only=not only_warned)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled() == only_warned
    finally:
        torch.use_deterministic_algorithms(mode=False)
