from ._cut_off import cut_off as cut_off
from ._cut_off import how_often as how_often
from ._first_reader import first_reader as first_reader
from ._race import race as race
from ._works import batches as batches
from ._works import kernel as kernel
from ._works import layers as layers
from ._works import numbers as numbers
