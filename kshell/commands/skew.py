"""``skew``: how evenly leaders and replicas are spread over brokers, or over racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.cluster.broker_load import Load, loads
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Row, Section
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition
from kshell.tables.declaration import Field, image_for
from kshell.tables.existing import BROKER_ID, note_unknown_names
from kshell.tables.selection import RowArguments, row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_COUNTS = (
    Field("leaders", "int32", "partitions that are led here"),
    Field("replicas", "int32", "replicas that are placed here"),
    Field("preferredLeaders", "int32", "partitions whose preferred leader is here", True),
    Field("outOfSync", "int32", "replicas here that are not in the ISR", True),
    Field("leaderSkew", "float64", "leaders divided by the even share of the brokers that are not fenced: 1 is even"),
    Field("replicaSkew", "float64", "replicas divided by the even share of the registered brokers: 1 is even"),
)
_BROKER = (
    Field("broker", BROKER_ID, "the broker's id"),
    Field("rack", "string", "its rack"),
    Field("fenced", "boolean", "whether it is fenced; null if it is not registered"),
    *_COUNTS,
)
_RACK = (
    Field("rack", "string", "the rack; null for brokers without one"),
    Field("brokers", "int32", "brokers that are registered in it"),
    *_COUNTS,
    Field("soleRack", "int32", "partitions of several replicas, all of them in this rack"),
)
_FIELDS = tuple(dict.fromkeys((*_BROKER, *_RACK)))


class _Place:
    """A broker or rack; registered ``members`` decide its even share of replicas, unfenced (``active``) of leaders."""

    def __init__(self, facts: JsonObject) -> None:
        self.facts = facts
        self.load = Load()
        self.members = 0
        self.active = 0

    def add(self, load: Load) -> None:
        for name in Load.__slots__:
            setattr(self.load, name, getattr(self.load, name) + getattr(load, name))


class SkewArguments(RowArguments):
    """Arguments and options of ``skew``."""

    rack: bool


def run(session: Session, args: SkewArguments) -> Result:
    """Return one row per broker or rack; text output adds the spread over all of them."""
    image = image_for(session, "skew", ("topics", "brokers"))
    note_unknown_names(session, image, args.where)
    places = _places(image, by_rack=args.rack)
    alone = _sole_racks(image) if args.rack else Counter[str | None]()
    rows = [_row(place, places) for place in places]
    for row in rows:
        row["soleRack"] = alone[row["rack"]]
    fields = _RACK if args.rack else _BROKER
    result = select(fields, rows, args)
    if args.columns is None and rows:
        result.readable = Report(
            [
                Section("rows", "Racks" if args.rack else "Brokers", select(fields, rows, args)),
                Section("spread", "Spread", _spread(rows)),
            ]
        )
    return result


def _places(image: Image, *, by_rack: bool) -> list[_Place]:
    """Every broker that is registered or has replicas, with its load; or with ``by_rack`` their racks."""
    loads_by_broker = loads(image)
    brokers = {broker_id: entry.value for broker_id, entry in image["brokers"].items()}
    places: dict[int | str | None, _Place] = {}
    for broker_id in sorted({*loads_by_broker, *brokers}):
        broker = brokers.get(broker_id)
        rack = broker.rack if broker else None
        if by_rack:
            place = places.setdefault(rack, _Place({"rack": rack, "brokers": 0}))
            place.facts["brokers"] += broker is not None
        else:
            facts = {"broker": broker_id, "rack": rack, "fenced": broker.fenced if broker else None}
            place = places[broker_id] = _Place(facts)
        place.add(loads_by_broker[broker_id])
        place.members += broker is not None
        place.active += broker is not None and not broker.fenced
    return sorted(places.values(), key=lambda place: place.facts["rack"] or "") if by_rack else list(places.values())


def _sole_racks(image: Image) -> Counter[str | None]:
    """Per rack, the number of partitions with several replicas, all in this rack: they do not survive its loss."""
    racks = {broker_id: entry.value.rack for broker_id, entry in image["brokers"].items()}
    partitions_by_rack: Counter[str | None] = Counter()
    for topic in image[TOPICS].values():
        for _, value in topic.scan():
            if isinstance(value, Partition) and len(value.replicas) > 1:
                over = {racks.get(broker) for broker in value.replicas}
                if len(over) == 1 and None not in over:
                    partitions_by_rack.update(over)
    return partitions_by_rack


def _row(place: _Place, places: Iterable[_Place]) -> JsonObject:
    active, members = sum(peer.active for peer in places), sum(peer.members for peer in places)
    leaders = sum(peer.load.leaders for peer in places) * place.active / active if active else 0
    replicas = sum(peer.load.replicas for peer in places) * place.members / members if members else 0
    skews = {"leaderSkew": _by(place.load.leaders, leaders), "replicaSkew": _by(place.load.replicas, replicas)}
    return {**place.facts, **place.load.row(), **skews}


def _by(count: int, share: float) -> float | None:
    return round(count / share, 3) if share else None


def _spread(rows: Iterable[Row]) -> JsonObject:
    """Least, mean, most and relative deviation of leaders and replicas over brokers or racks with an even share."""
    spread = {}
    for name in ("leaders", "replicas"):
        counted = [row[name] for row in rows if row[f"{name.removesuffix('s')}Skew"] is not None]
        mean = sum(counted) / len(counted) if counted else 0
        deviation = (sum((count - mean) ** 2 for count in counted) / len(counted)) ** 0.5 if counted else 0
        spread[name] = {
            "least": min(counted, default=0),
            "mean": round(mean, 1),
            "most": max(counted, default=0),
            "deviation": f"{deviation / mean:.0%}" if mean else None,
        }
    return spread


COMMAND = Command(
    name="skew",
    task=Task.CLUSTER,
    summary="how evenly leaders and replicas are spread over brokers or racks",
    run=run,
    arguments=SkewArguments,
    extra_words_for="broker",
    flags=(Flag(("--rack",), "by rack, with the partitions whose replicas are all in one rack"), *row_flags(_FIELDS)),
    examples=(
        Example("skew", "by broker"),
        Example("skew --rack", "by rack"),
        Example("skew --where 'leaderSkew > 1.2' --sort -leaderSkew", "brokers that lead too much"),
    ),
    description=(
        "The even share of leaders counts brokers that are not fenced, that of replicas counts every registered one; a"
        " rack's share depends on the number of its brokers. A broker that is not registered any more but still has"
        " replicas has a row, and no share. The spread below the table is the standard deviation divided by the mean."
    ),
)
