"""A lock for the ports of this machine, so that one test at a time looks for a free one."""

from filelock import FileLock

from gpulab.core.disk import state_folder

# Hold it from finding a free port until the server listens: another test might take the port.
PORTS = FileLock(state_folder() / "tests-ports.lock")
