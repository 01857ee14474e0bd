"""The ports of this machine, which all workers share: one test at a time looks for a free one."""

from filelock import FileLock

from gpulab.disk import state_folder

# A free port is free until somebody takes it.
PORTS = FileLock(state_folder() / "tests-ports.lock")
