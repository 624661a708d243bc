"""The warehouse: the Delta tables of a fleet of clusters in one directory or store, which steps change all at once.

``catalog`` lists the tables and their columns, ``gold_table`` is how a gold table is declared, and ``expectations`` how
conditions on rows are. ``data_files`` writes and rewrites Parquet files. ``delta`` is one table and its versions,
committed by ``deltalake``. ``steps`` is the log that says which versions of all tables belong together. ``warehouse``
combines them for the pipeline: DataFrames and Arrow batches come in, DataFrames of one consistent step go out. Only
``warehouse`` knows Spark, and only through the session that it is given.
"""
