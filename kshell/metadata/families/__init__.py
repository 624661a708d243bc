"""Families of the image, one module each: the record types, the functions that replay them, and the place in the tree.

A new record type is a new declaration in one of these modules (or a new module). A new family also says in
``kshell/commands/plan_restore.py`` how it is restored, or why not.
"""
