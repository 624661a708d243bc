"""Gold: tables that count what happened in clusters and how long it lasted. Each module here is one table (``GOLD``).

What all of them mean by a time, a day and a duration:

* A version lasts from the time of the record that began it (``validFromMs``) to that of the record that ended it. One
  that still holds lasts to the cluster's ``lastTimestampMs`` (table ``clusters``), and none lasts beyond that: a record
  with a time of its own far ahead makes nothing longer. Nor does a last record: nothing lasts beyond the day after the
  tables were made.
* Times of records may run backwards. A version is taken to begin no earlier than those before it of the same key, and
  to end no earlier than it begins: no duration is negative, and no moment of a key counts twice. Columns that name the
  moment of one record (``ms``) hold its time as it is.
* Days (``2026-01-31``) and months (``2026-01``) are those of UTC. What lasts over midnight is split there.
* Where the log begins with a snapshot, or goes on from one after a gap, its state is taken as of the snapshot's end:
  what came about before then is not known, and no change to it is told unless a table says so.
* A row is final (``isFinal``) once nothing that is new can change it: its day or month, or the episode that it tells
  of, was over before the day began in which the cluster's last record falls, less an hour. Final rows stay as they are;
  a record with a time before that day makes all rows of its cluster anew.
"""

from __future__ import annotations

import importlib
from functools import cache

from kshell.discovery import module_names
from kshell.spark.tables.gold_table import GoldTable


@cache
def tables() -> dict[str, GoldTable]:
    """Return every gold table by name, sorted by name. Imports no Spark."""
    declared = [importlib.import_module(f"{__name__}.{name}").GOLD for name in module_names(__path__)]
    return {table.name: table for table in sorted(declared, key=lambda table: table.name)}


def waves() -> list[list[GoldTable]]:
    """Group all tables in the order to compute them: a wave needs only bronze, silver and the waves before it."""
    waiting, waves = tables(), []
    while waiting:
        wave = [table for table in waiting.values() if not waiting.keys() & (table.needs - {table.name})]
        assert wave, f"{', '.join(waiting)}: made of each other"
        waves.append(wave)
        waiting = {name: table for name, table in waiting.items() if table not in wave}
    return waves
