"""Record a whole machine: everything that gpulab can measure, in one resumable file."""

from gpulab.survey._plan import SECTIONS, SurveyPlan, SurveySection, plan
from gpulab.survey._record import record

__all__ = ["SECTIONS", "SurveyPlan", "SurveySection", "plan", "record"]
