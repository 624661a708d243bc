"""The commands of the shell, one module per command. A module ends with ``COMMAND``, its declaration.

``run(session, args)`` prints nothing and returns a result; its ``readable``, if set, is what text output shows.
"""
