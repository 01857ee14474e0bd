from . import animations as animations
from . import explorers as explorers
from . import live as live
from . import machine as machine
from . import plots as plots
