from . import pipelines as pipelines
from ._exercises import EXERCISES as EXERCISES
from ._figures import overlap as overlap
