"""Collect the exercises of the clinic: twelve programs, each with a mistake to repair."""

from gpulab.exercises.lesson_13._order_patients import ORDER_PATIENTS
from gpulab.exercises.lesson_13._timing_patients import TIMING_PATIENTS

EXERCISES = (*TIMING_PATIENTS, *ORDER_PATIENTS)
