"""The image, and what a source reports about itself, as a file tree: lazy nodes, paths and globs.

A node is made when a path leads to it. Its value is plain (what ``json`` knows) and already redacted, so nothing that
uses the tree can show a secret.
"""
