"""Measure a whole machine, everything that gpulab can, into one file that resumes."""

from gpulab.survey._plan import SECTIONS, SurveyPlan, SurveySection, plan
from gpulab.survey._record import record

__all__ = ["SECTIONS", "SurveyPlan", "SurveySection", "plan", "record"]
