"""The tests of gpulab, one folder for each package."""
