"""Decode slices of files into Arrow record batches with the columns of a view. Free of Spark."""
