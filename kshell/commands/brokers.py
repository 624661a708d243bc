"""``brokers``: the brokers of the cluster, and what software each of them runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kshell.commands.base.result import Column, Report, Result, Rows, Section
from kshell.commands.base.spec import Command, Example, Flag
from kshell.metadata.image import Image, families
from kshell.metadata.partial import NOT_AVAILABLE

if TYPE_CHECKING:
    from kshell.session import Session

_COLUMNS = (
    Column("id"),
    Column("epoch"),
    Column("fenced"),
    Column("inControlledShutdown"),
    Column("rack"),
    Column("listeners"),
    Column("softwareName"),
    Column("softwareVersion"),
    Column("softwareSource"),
    Column("evidence", wide=True),
    Column("lowestSoftwareVersion", wide=True),
    Column("highestSoftwareVersion", wide=True),
    Column("incarnationId", wide=True),
    Column("supportedFeatures", wide=True),
    Column("directories", wide=True),
)
_NOT_ASKED = {"softwareName": None, "softwareVersion": None, "softwareSource": "unknown", "evidence": None}
_OF_CLUSTER = ("lowestSoftwareVersion", "highestSoftwareVersion")


def run(session: Session, args: Any) -> Result:
    """Registrations as the source has them; with ``--software`` every broker is asked itself."""
    session.remarks[:] = []
    plain = families()["brokers"].plain
    entries = sorted(_image(session)["brokers"].items())
    rows = [_row(plain(entry.value)) for _, entry in entries]
    if args.software:
        from kshell.commands.base.software import add_software

        add_software(session, rows)
    result = Rows(_COLUMNS, rows)
    result.for_people = _for_people(rows, software=args.software)
    return result


def _image(session: Session) -> Image:
    """Of brokers that nobody has asked for everything, only what is needed here is asked."""
    from kshell.sources.source import Source

    source: Source = session.source
    if source.kind != "brokers" or session.is_loaded:
        return session.image
    from kshell.sources.brokers import BrokerSource

    assert isinstance(source, BrokerSource)
    image, notes = source.image("brokers")
    session.remarks += notes
    return image


def _row(broker: Mapping[str, Any]) -> dict[str, Any]:
    listeners = [_known(listener) for listener in broker["listeners"]]
    return {**_known(broker), "listeners": listeners, **_NOT_ASKED, **dict.fromkeys(_OF_CLUSTER)}


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a source does not tell is null in a row."""
    return {name: None if value == NOT_AVAILABLE else value for name, value in told.items()}


def _for_people(rows: Iterable[Mapping[str, Any]], *, software: bool) -> Result:
    shown = [_line(row) for row in rows]
    left_out = {*_OF_CLUSTER} if software else {*_OF_CLUSTER, *_NOT_ASKED}
    columns = tuple(column for column in _COLUMNS if column.name not in left_out)
    table = Rows(columns, shown)
    if not software or not shown:
        return table
    cluster = {name: shown[0][name] for name in _OF_CLUSTER}
    return Report([Section("brokers", "Brokers", table), Section("cluster", "Cluster", cluster)])


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    listeners = [f"{one['name'] or '?'}://{_address(one)}" for one in row["listeners"]]
    features = row["supportedFeatures"]
    ranges = [f"{name} {span['min']}-{span['max']}" for name, span in features.items()] if features else features
    return {**row, "listeners": listeners, "supportedFeatures": ranges}


def _address(listener: Mapping[str, Any]) -> str:
    host, port = listener["host"], listener["port"]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


COMMAND = Command(
    name="brokers",
    summary="the brokers of the cluster, and the software that they run",
    run=run,
    flags=(Flag(("--software",), "ask every broker itself which software it runs; needs -q or -b"),),
    examples=(
        Example("brokers", "every broker that is registered"),
        Example("brokers -o wide", "with features and log directories"),
        Example("brokers -o json", "all of it, exactly"),
    ),
    description=(
        "What a source does not tell is null: brokers (-b) tell neither epochs nor directories, and before 4.0 none of"
        " the brokers that are fenced. With --software, name and version are what the broker says (reported), in the"
        " dialects kip-885 and kip-885-apiversions; null means that it does not say. Every other broker's release is"
        " inferred from the APIs and features that it offers (inferred): evidence says why, and names a range where"
        " releases do not differ. unknown: nobody was asked, or the broker cannot be reached (evidence has the reason)."
        " lowestSoftwareVersion and highestSoftwareVersion are the cluster's, the same in every row; text shows them"
        " below the table."
    ),
)
