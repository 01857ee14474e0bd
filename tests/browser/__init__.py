"""The lessons and the widgets in a real JupyterLab, in a real browser."""
