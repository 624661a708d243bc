"""Silver: the state of clusters over time. One row per version: a state, and the offsets at which it was valid.

In come decoded records and the current rows of the step before; out go versions, by the rules of the shell's replay:

* ``events``: which records take effect, and when;
* ``topics``, ``brokers``, ``controllers``, ``configs``, ``security``: what these records say about each key, as states;
* ``versions``: turns states into versions, in the same way for every table;
* ``declaration``, ``expressions``: what a table declares, and SQL that several tables need.

Each table is one SQL query over its events and current rows. It travels to Spark as one text, so that a small step does
not pay for thousands of calls into the JVM, and anyone who knows SQL can read and run it.
"""

from __future__ import annotations

from functools import cache

from kshell.spark.silver.declaration import SilverTable

__all__ = ["SilverTable", "tables"]


@cache
def tables() -> dict[str, SilverTable]:
    """Return every silver table by name, sorted by name. Imports no Spark."""
    from kshell.spark.silver import brokers, configs, controllers, security, topics  # late: they load record types

    declared = (table for module in (brokers, configs, controllers, security, topics) for table in module.TABLES)
    return {table.name: table for table in sorted(declared, key=lambda table: table.name)}
