"""``brokers``: the registered brokers, with ``--load`` their partitions, with ``--software`` what each of them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.cluster.broker_load import loads
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Row, Rows, Section
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import note_unknown_names
from kshell.tables.selection import RowArguments, row_flags, select
from kshell.tables.state.cluster import BROKER_FIELDS, broker_rows

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject


def _software_sources() -> tuple[str, ...]:
    from kshell.cluster.nodes import INFERRED, REPORTED, UNKNOWN

    return REPORTED, INFERRED, UNKNOWN


_SOFTWARE = (
    Field("softwareName", "string", "the name of the software that it runs"),
    Field("softwareVersion", "string", "its version"),
    Field("softwareSource", Enumeration(_software_sources), "reported, inferred or unknown"),
    Field("evidence", ["string"], "why that version", True),
    Field("lowestSoftwareVersion", "string", "of all brokers", True),
    Field("highestSoftwareVersion", "string", "of all brokers", True),
)
_LOAD = (
    Field("leaders", "int32", "partitions that it leads; with --load"),
    Field("replicas", "int32", "replicas that are placed on it; with --load"),
    Field("preferredLeaders", "int32", "partitions whose preferred leader it is; with --load", True),
    Field("outOfSync", "int32", "its replicas that are not in the ISR; with --load"),
)
_AFTER = tuple(field.name for field in BROKER_FIELDS).index("listeners") + 1
_FIELDS = (*BROKER_FIELDS[:_AFTER], *_SOFTWARE, *BROKER_FIELDS[_AFTER:], *_LOAD)
_CARRYING = tuple(field._replace(wide=field.wide or field.name in ("epoch", "listeners")) for field in _FIELDS)
"""With ``--load``: ``epoch`` and ``listeners`` are wide, so that a terminal has room for the load of each broker."""
_OF_CLUSTER = ("lowestSoftwareVersion", "highestSoftwareVersion")


class BrokersArguments(RowArguments):
    """Arguments and options of ``brokers``."""

    software: bool
    load: bool


def run(session: Session, args: BrokersArguments) -> Result:
    """Return one row per registered broker; with ``--software``, every broker is asked directly as well."""
    image = image_for(session, "brokers", ("brokers", "topics") if args.load else ("brokers",))
    note_unknown_names(session, image, args.where)
    unasked = dict.fromkeys((field.name for field in _SOFTWARE), None) | {"softwareSource": "unknown"}
    rows: list[JsonObject] = [{**row, **unasked} for row in broker_rows(session, image, None)]
    if args.load:
        loads_by_broker = loads(image)
        rows = [{**row, **loads_by_broker[row["id"]].row()} for row in rows]
    if args.software:
        from kshell.cluster.nodes import add_software

        add_software(session, rows)
    fields = _CARRYING if args.load else tuple(field for field in _FIELDS if field not in _LOAD)
    result = select(fields, rows, args, readable=_readable)
    if args.columns is None:
        result.readable = _page(result, software=args.software)
    return result


def _page(result: Rows, *, software: bool) -> Result:
    """The text output: software only with ``wide`` if no broker was asked, else the range of versions below."""
    table = result.readable
    assert isinstance(table, Rows)
    if not software:
        names = {field.name for field in _SOFTWARE}
        table.columns = tuple(column._replace(wide=column.wide or column.name in names) for column in table.columns)
        return table
    table.columns = tuple(column for column in table.columns if column.name not in _OF_CLUSTER)
    first: Row | None = next(iter(result), None)
    if first is None:
        return table
    cluster = {name: first[name] for name in _OF_CLUSTER}
    return Report([Section("brokers", "Brokers", table), Section("cluster", "Cluster", cluster)])


def _readable(row: Row) -> Row:
    listeners = [f"{listener['name'] or '?'}://{_address(listener)}" for listener in row["listeners"]]
    features = row["supportedFeatures"]
    ranges = [f"{name} {span['min']}-{span['max']}" for name, span in features.items()] if features else features
    return {**row, "listeners": listeners, "supportedFeatures": ranges}


def _address(listener: Row) -> str:
    host, port = listener["host"], listener["port"]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


COMMAND = Command(
    name="brokers",
    task=Task.CLUSTER,
    summary="the brokers of the cluster, and the software that they run",
    run=run,
    arguments=BrokersArguments,
    extra_words_for="id",
    flags=(
        Flag(("--software",), "ask every broker itself which software it runs; needs -q or -b"),
        Flag(("--load",), "with what each broker leads and holds, and what of it is out of sync"),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("brokers", "every broker that is registered"),
        Example("brokers -o wide", "with features and log directories"),
        Example("brokers -o json", "all of it, exactly"),
        Example("brokers --load --columns id,fenced,leaders,replicas,outOfSync", "the load of each broker"),
        Example("brokers --where 'fenced or inControlledShutdown'", "those that clients cannot use"),
    ),
    description=(
        "A value that the source does not report is null: brokers (-b) report neither epochs nor directories, and"
        " before 4.0 no fenced brokers. With --software, name and version are what the broker says (reported), in the"
        " dialects kip-885 and kip-885-apiversions; null means that it does not say. Every other broker's release is"
        " inferred from the APIs and features that it offers (inferred): evidence says why, and names a range where"
        " releases do not differ. unknown: nobody was asked, or the broker cannot be reached (evidence has the reason)."
        " lowestSoftwareVersion and highestSoftwareVersion are the cluster's, the same in every row; text shows them"
        " below the table."
    ),
)
