from . import errors as errors
from . import units as units
