"""The tables of a fleet below one place: Delta tables that ``deltalake`` commits, written in steps.

``catalog`` says which tables there are and what their columns mean, ``gold_table`` what a gold table declares,
``expectations`` what must hold of rows; ``data_files`` writes and rewrites Parquet;
``delta`` is one table and its versions; ``steps`` the log of steps, which says which versions belong together;
``warehouse`` puts them together for the pipeline. What comes in are DataFrames and Arrow batches, what goes out are
DataFrames of one consistent step. Only ``warehouse`` knows Spark, and only through the session that it is given.
"""
