"""Tables: rows with declared columns, shared by row commands, ``sql`` and ``export``.

A session with an image comes in; rows go out, filtered (``--where``), sorted and limited, or as Arrow tables, as SQL
answers from a private DuckDB, or as files. The tables of a cluster's state are declared in :mod:`kshell.tables.state`.
"""
