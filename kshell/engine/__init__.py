"""What every front end stands on: a line of the command language comes in, a result and notes go out.

``language`` reads a line, ``arguments`` a command's words by its ``declaration``; ``execution`` runs the command on a
``session`` within its deadline. ``completion`` and ``usage`` derive from the same declarations. Commands are found by
name (``registry``) and import from here; nothing here imports them, a renderer or a front end.
"""
