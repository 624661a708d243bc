"""The engine that all front ends use: a line of the command language comes in, a result and notes go out.

``language`` splits a line into words, ``arguments`` parses a command's words as its ``declaration`` says, ``execution``
runs the command on a ``session`` within its deadline. ``completion`` and ``usage`` derive from the same declarations.
``registry`` finds and imports commands by name. Commands import from here; nothing else here imports a command, a
renderer or a front end.
"""
