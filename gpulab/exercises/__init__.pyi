from ._api import ask as ask
from ._api import check as check
from ._api import hint as hint
from ._api import progress as progress
from ._api import readings as readings
from ._exercise import Verdict as Verdict
from ._predictions import Prediction as Prediction
from ._predictions import predict as predict
