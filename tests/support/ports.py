"""The ports of this machine, which all workers share: one test at a time looks for a free one."""

import tempfile
from pathlib import Path

from filelock import FileLock

# A free port is free until somebody takes it.
PORTS = FileLock(Path(tempfile.gettempdir()) / "gpulab-tests-ports.lock")
