"""Host times of whole programs and single calls: record them on CUDA, fit, and compare."""
