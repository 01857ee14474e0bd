"""Tests of what every part of the package uses."""
