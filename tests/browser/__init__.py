"""Tests of lessons and widgets in a real JupyterLab and a real browser."""
