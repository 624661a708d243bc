"""One module per subject: each declares its ``PICTURES``, and :func:`kshell.plots.pictures` finds it."""
