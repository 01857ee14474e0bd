"""Collect the exercises of the clinic: twelve programs, each with a mistake to repair."""

from gpulab.exercises.lesson_13._order_mistakes import ORDER_MISTAKES
from gpulab.exercises.lesson_13._timing_mistakes import TIMING_MISTAKES

EXERCISES = (*TIMING_MISTAKES, *ORDER_MISTAKES)
