"""The pictures, one module per subject. Each is a function with the decorator :func:`kshell.plots.picture.picture`.

:func:`kshell.plots.declared_pictures` imports all modules here.
"""
