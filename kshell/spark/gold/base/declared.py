"""The declaration of a gold table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kshell.commands.base.tables import Field

CLUSTER = Field("clusterId", "string", "the cluster")

Tables = Mapping[str, Any]
"""DataFrames by the names of their tables."""


class GoldTable(NamedTuple):
    """``make`` gives the rows, a DataFrame, out of the tables named in ``needs``: of bronze, of silver, and of gold.

    Rows of a cluster depend on that cluster's rows alone, so that ``make`` may be given those of some clusters; only
    with ``is_fleet`` it must have the rows of all.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    needs: tuple[str, ...]
    make: Callable[[Tables], Any]
    is_fleet: bool = False
