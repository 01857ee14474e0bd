from ._claims import CLAIMS as CLAIMS
from ._sketch import ADDITIONS as ADDITIONS
from ._slow_programs import slow_program as slow_program
