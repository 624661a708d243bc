"""Slices into Arrow record batches of a view's columns. Free of Spark."""
