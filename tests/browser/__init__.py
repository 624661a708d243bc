"""Notebooks in JupyterLab, in a real browser."""
