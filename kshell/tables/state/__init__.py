"""The tables of a cluster at one offset: found by :func:`kshell.tables.declaration.tables`, one module a subject."""
