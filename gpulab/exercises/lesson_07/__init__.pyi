from ._gap_programs import program as program
from ._trial_capture import try_to_capture as try_to_capture
