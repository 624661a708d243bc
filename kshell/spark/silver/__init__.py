"""Silver: what was so in a cluster, and from when to when. One row a version; a table is one module here.

A table declares its ``SILVER`` (:class:`~kshell.spark.silver.base.declare.SilverTable`); nothing else lists them. Rows
are made in Spark expressions, in the order of the log, with the rules of the shell's own replay.
"""

from __future__ import annotations

import importlib
from functools import cache

from kshell.discovery import module_names
from kshell.spark.silver.base.declare import SilverTable

__all__ = ["SilverTable", "tables"]


@cache
def tables() -> dict[str, SilverTable]:
    """Every table, by name, sorted. Loads no Spark."""
    found = [importlib.import_module(f"{__name__}.{name}").SILVER for name in module_names(__path__)]
    return {table.name: table for table in sorted(found, key=lambda table: table.name)}
