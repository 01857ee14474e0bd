"""Ctrl-C inside a backward pass leaves no memory of the GPU in use."""

import gc
from types import FrameType

import torch
from torch import nn

import gpulab
from tests.support.injection import Injector, Tracer


class DispatcherTracer(Tracer):
    """Counts, and interrupts, only the calls in which PyTorch's dispatcher looks for a rule."""

    def _called(self, frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code.co_name == "find_torch_dispatch_rule":
            super()._called(frame, event, arg)


def train() -> None:
    """Run a training step in mixed precision, and keep nothing."""
    layer = nn.Linear(32, 8).cuda()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = layer(torch.randn(16, 32, device="cuda")).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def test_ctrl_c_inside_backward_keeps_no_memory() -> None:
    """If Ctrl-C comes while PyTorch's dispatcher looks for a rule, all tensors are released."""
    injector = Injector("interrupt")
    with injector.listening(), gpulab.virtual_gpu("H200", first_use=False):
        train()
        before_bytes = torch.cuda.memory_allocated()
        count = DispatcherTracer()
        count.run(train)
        left = {}
        for at in range(count.n // 2, count.n):  # the first half is forward
            injector.is_done = False
            try:
                DispatcherTracer(injector, at=at).run(train)
                injector.settle()
            except KeyboardInterrupt:
                assert injector.is_done
            torch.set_grad_enabled(True)  # torch's signature
            gc.collect()
            left[at] = torch.cuda.memory_allocated() - before_bytes
        assert count.n > 20
        assert not {at: size_bytes for at, size_bytes in left.items() if size_bytes}
