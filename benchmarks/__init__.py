"""Measure how fast and how accurate gpulab itself is: ``python -m benchmarks.accuracy --help``.

Run every benchmark from the folder that contains ``gpulab`` and ``benchmarks``. Nothing here is a
test: figures are printed or written to a page, and never asserted.
"""
