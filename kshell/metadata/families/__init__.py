"""One module a family of the image: its record types, their replay, and its place in the tree.

A new record type is a new declaration in one of these modules (or a new module). A new family also says in
``kshell/commands/plan_restore.py`` how it is restored, or why not.
"""
