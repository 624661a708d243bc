"""One module a family of the image: its record types, their replay, and its place in the tree.

A new record type is a new declaration in one of these modules (or a new module): nothing else lists them.
"""
