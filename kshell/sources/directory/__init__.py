"""A metadata directory (``__cluster_metadata-0``) or one file of it as a source: list, read, verify and write it."""
