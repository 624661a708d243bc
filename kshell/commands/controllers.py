"""``controllers``: the controllers of the cluster, and which of them is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.client.address import name_of
from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result, Row
from kshell.tables.controller_rows import controller_rows
from kshell.tables.selection import RowArguments, row_flags, select
from kshell.tables.state.cluster import CONTROLLER_FIELDS as FIELDS

if TYPE_CHECKING:
    from kshell.engine.session import Session


def run(session: Session, args: RowArguments) -> Result:
    """Return one row per registered controller, and per voter without a registration (before 3.7, or from brokers)."""
    return select(FIELDS, controller_rows(session), args, readable=_readable)


def _readable(row: Row) -> Row:
    points = row.get("listeners")
    listeners = (
        [f"{listener['name']}://{name_of(listener['host'], listener['port'])}" for listener in points]
        if points
        else points
    )
    features = row.get("supportedFeatures")
    ranges = [f"{name} {span['min']}-{span['max']}" for name, span in features.items()] if features else features
    return {**row, "listeners": listeners, "supportedFeatures": ranges}


COMMAND = Command(
    name="controllers",
    task=Task.CLUSTER,
    summary="the controllers of the cluster, and which one is active",
    run=run,
    arguments=RowArguments,
    extra_words_for="id",
    flags=row_flags(FIELDS),
    examples=(
        Example("controllers", "every controller"),
        Example("controllers -o wide", "with what each of them registered"),
        Example("controllers --where isLeader --columns id,address", "where the active one listens"),
    ),
    description=(
        "Controllers register themselves from Kafka 3.7 on (metadata.version 3.7-IV0); of older ones only the voters'"
        " ids are known, and listeners is null. On a directory, the leader is the one of quorum-state, else of the last"
        " LeaderChange record. As of a point (--as-of), it is the one of the LeaderChange record before that point;"
        " where that record is no longer in the log, no controller is shown as leader. Brokers (-b) report voters, and"
        " from 3.9 on where these listen. address is where kshell would connect."
    ),
)
