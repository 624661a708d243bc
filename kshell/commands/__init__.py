"""One module a command; its name is the command's name. :mod:`kshell.engine` has what they are declared with."""
