from ._figures import draw_gaps as draw_gaps
from ._sketch import ADDITIONS as ADDITIONS
