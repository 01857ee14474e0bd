"""What begins with a step of an optimizer ends with it, also when the step raises an error."""

import sys
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.virtual._stand_ins import StandIn
from gpulab.virtual.simulator import Host


class Failing(torch.optim.SGD):
    """An optimizer whose step fails."""

    def step(self) -> None:  # type: ignore[override] # without a closure
        """Raise an error."""
        raise ZeroDivisionError


class Outer(torch.optim.SGD):
    """An optimizer whose step contains that of another one, and that notes whether it goes on."""

    goes_on = False
    host: Host

    def step(self) -> None:  # type: ignore[override] # without a closure
        """Run the other step."""
        torch.optim.SGD(self.param_groups[0]["params"], lr=0.1).step()
        self.goes_on = self.host.is_updating


@pytest.fixture
def host() -> Iterator[Host]:
    """Enter a virtual H200 and give its host."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        yield gpu.machine.host


def weights() -> list[torch.nn.Parameter]:
    """Return one parameter with a gradient."""
    made = torch.nn.Parameter(torch.ones(2, device="cuda"))
    made.sum().backward()
    return [made]


def fail(*_step: object) -> None:
    """Raise an error."""
    raise ZeroDivisionError


def nothing_is_left(host: Host) -> bool:
    """Return whether neither a stand-in nor the mark of a step is left."""
    left = [name for name, module in sys.modules.items() if type(module) is StandIn]
    return not left and not host.is_updating


@pytest.mark.parametrize("where", ["step", "hook before", "hook after"])
def test_a_step_that_fails_leaves_nothing_behind(host: Host, where: str) -> None:
    """A step that raises an error, or whose hook does, ends like any other step."""
    kind = Failing if where == "step" else torch.optim.SGD
    optimizer = kind(weights(), lr=0.1)
    if where == "hook before":
        optimizer.register_step_pre_hook(fail)
    if where == "hook after":
        optimizer.register_step_post_hook(fail)
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert nothing_is_left(host)


def test_a_step_inside_another_one_does_not_end_it(host: Host) -> None:
    """After an inner step the outer one is still running, and both end."""
    optimizer = Outer(weights(), lr=0.1)
    optimizer.host = host
    optimizer.step()
    assert optimizer.goes_on
    assert nothing_is_left(host)
