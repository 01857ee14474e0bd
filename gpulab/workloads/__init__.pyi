from . import recordings as recordings
from . import sweeps as sweeps
from ._catalogue import WORKLOADS as WORKLOADS
from ._catalogue import Workload as Workload
from ._catalogue import names as names
from ._catalogue import workload as workload
