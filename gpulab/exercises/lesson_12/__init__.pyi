from ._listings import attempt as attempt
