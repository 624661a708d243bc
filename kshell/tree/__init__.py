"""Lazy nodes over an image and its source: names, values, paths, globs."""
