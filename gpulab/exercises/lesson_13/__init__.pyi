from ._cut_off import cut_off as cut_off
from ._works import batches as batches
from ._works import filler as filler
from ._works import kernel as kernel
from ._works import layers as layers
from ._works import numbers as numbers
from ._works import slow_double as slow_double
