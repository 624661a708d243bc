"""One module a command; its name is the command's name. :mod:`kshell.commands.base` holds what they share."""
