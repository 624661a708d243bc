"""The notebooks of notebooks/: executed from a clean kernel, stripped in git, rendered into docs/notebooks."""
