"""Tables: rows with declared columns, for row commands, ``sql`` and ``export`` alike.

In comes a session with an image. Out go rows, conditions over them (``--where``), sorting and limits, Arrow tables, SQL
in a DuckDB of its own, and files. A table of the cluster's state is declared in :mod:`kshell.tables.state`.
"""
