"""The SQL tables ``history_NAME``: every version of every row of a table of state, and the offsets where it held.

They are made from the :class:`~kshell.metadata.history.History` of one replay, which has the versions of each key; no
image is built per offset. The rows are those of the pipeline's silver tables, without ``clusterId``. They are yielded
one by one: besides the log, one topic at a time is in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Row
from kshell.history.recorded import RecordedPast, recorded_past
from kshell.metadata.families.quorum import LEADER, QUORUM, VOTERS
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image, Keys, families
from kshell.metadata.metadata_version import FEATURE
from kshell.metadata.names import sort_key
from kshell.metadata.partition_changes import Waypoint, waypoint_of
from kshell.metadata.partitions import Partition, Topic, java_int
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.redaction import config_is_secret
from kshell.metadata.values import Entry, Provenance
from kshell.metadata.versions import Version
from kshell.sources.directory.describe import leader_change_before
from kshell.tables.controller_rows import voter_listeners
from kshell.tables.declaration import FieldNames, Table, tables
from kshell.tables.state.topics import PARTITION_VALUES
from kshell.tables.versions import VERSION, recorded_fields

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.families.cluster import Controller
    from kshell.protocol.decoder import Message

PREFIX = "history_"
State = tuple[int, Any]
"""(offset, value): what a key was from that offset on; ``None`` if it did not exist."""
Period = tuple[Any, int, int | None]
"""(value, since, until): what a key was from one offset up to another (exclusive); ``None``: it still is."""


def history_name(name: str) -> str:
    """Return the name of the table with the versions of a table of state."""
    return f"{PREFIX}{name}"


def history_tables() -> dict[str, Table]:
    """Return every table of versions, by name, sorted."""
    return {history_name(name): _history_table(table) for name, table in tables().items()}


def periods(states: Iterable[State], begins: Callable[[Any], bool] | None = None) -> Iterator[Period]:
    """Yield the periods of a key, oldest first.

    Of several states at one offset the last counts; a state equal to the one before it does not begin a new period.

    Args:
        states: the states of one key, in the order in which they took effect.
        begins: whether a state begins a period even if it looks equal to the one before, because what differs (a
            secret) is not shown.
    """
    current: Any = None
    since = -1
    for offset, value in settled(states):
        if value is None or current is None or value != current or (begins is not None and begins(value)):
            if current is not None:
                yield current, since, offset
            current, since = value, offset
    if current is not None:
        yield current, since, None


def settled(states: Iterable[State]) -> Iterator[State]:
    """Yield the last state at each offset."""
    last: State | None = None
    for state in states:
        if last is not None and state[0] != last[0]:
            yield last
        last = state
    if last is not None:
        yield last


def _validity(past: RecordedPast, since: int, until: int | None) -> JsonObject:
    """Return the columns for a period: from ``since`` up to ``until`` (exclusive; ``None``: it is current)."""
    return {
        "validFromOffset": since,
        "validFromMs": past.timestamp(since),
        "validToOffset": until,
        "validToMs": None if until is None else past.timestamp(until),
        "isCurrent": until is None,
    }


# --- tables whose rows are values of one family ----------------------------------------------------------------------


_FAMILIES = {
    "acls": "acls",
    "brokers": "brokers",
    "configs": "configs",
    "features": "features",
    "quotas": "clientQuotas",
    "tokens": "delegationToken",
    "users": "scram",
}
"""Name of the table -> the family whose values are its rows, one row per value."""
_BEGINS: dict[str, Callable[[Row], bool]] = {
    "configs": lambda row: config_is_secret(row["resourceType"], row["name"]),
    "users": lambda row: True,  # all but the iterations is secret
}
"""Name of the table -> which rows begin a period even if they look like the one before: when a secret is set again, the
rows do not show whether it changed."""


def states_of(past: RecordedPast, family: str) -> Iterator[tuple[Keys, list[Version]]]:
    """Yield every key that a family ever had, sorted, with its states, oldest first."""
    history, until = past.history, past.until
    for key in sorted(history.every_key(family, until), key=_order):
        first = history.base.entry(family, key)
        states: list[Version] = [] if first is None else [(past.start, first)]
        states += reversed(list(history.versions(family, key, until)))
        yield key, states


def _order(keys: Keys) -> list[tuple[int, int, str]]:
    return [sort_key(str(key)) for key in keys]


def _family_rows(session: Session, table: Table, wanted: FieldNames) -> Iterator[Row]:
    """Yield the versions of a table whose rows are values of one family, each row made by the table of state itself."""
    family, past = _FAMILIES[table.name], recorded_past(session, history_name(table.name))
    names = [field.name for field in recorded_fields(table.name)]
    provenance = past.history.base.provenance
    for keys, states in states_of(past, family):

        def row_of(value: object, keys: Keys = keys) -> Row | None:
            if value is None:
                return None
            below = {keys[0]: value} if len(keys) == 1 else {keys[0]: {keys[1]: value}}
            (row,) = table.rows(session, Image({family: below}, provenance), None)
            return {name: row.get(name) for name in names}

        for row, since, until in periods(((since, row_of(value)) for since, value in states), _BEGINS.get(table.name)):
            yield row | _validity(past, since, until)


# --- topics and partitions -------------------------------------------------------------------------------------------


def _topics(past: RecordedPast) -> Iterator[tuple[str, str, list[Version]]]:
    """Yield every topic that ever existed: name, id, and its versions, oldest first."""
    for (topic_id,), states in states_of(past, TOPICS):
        named = next((topic for _, topic in states if topic is not None), None)
        if named is not None:
            yield named.name, str(topic_id), states


def _topic_rows(session: Session, table: Table, wanted: FieldNames) -> Iterator[Row]:
    past = recorded_past(session, history_name(table.name))
    for _, topic_id, states in _topics(past):
        names = ((since, None if topic is None else topic.name) for since, topic in states)
        for name, since, until in periods(names):
            yield {"name": name, "topicId": topic_id, **_validity(past, since, until)}


def _partition_states(past: RecordedPast, states: list[Version]) -> dict[int, list[State]]:
    """Return partition number -> its states: a ``Waypoint`` (epochs kept apart), ``None``, or an undecodable value."""
    by_number: defaultdict[int, list[State]] = defaultdict(list)
    before: set[int] = set()
    for index, (since, topic) in enumerate(states):
        following = states[index + 1][0] if index + 1 < len(states) else None
        base = topic.base if isinstance(topic, RecordedTopic) else topic
        values = dict(base.scan()) if isinstance(base, Topic) else {}
        for number in before:
            by_number[number].append((since, None))  # the last state at an offset counts: a later one here replaces it
        for number, value in values.items():
            by_number[number].append((since, waypoint_of(value) if isinstance(value, Partition) else value))
        there = set(values)
        if isinstance(topic, RecordedTopic):
            for number, changes in topic.states(past.until, values):
                there.add(number)
                # A topic that was created again has records of its own.
                by_number[number] += changes if following is None else (item for item in changes if item[0] < following)
        before = there
    return dict(sorted(by_number.items()))


_EPOCHS = frozenset(("leaderEpoch", "partitionEpoch"))
_OFFSETS = frozenset(("validFromOffset", "validToOffset", "isCurrent"))
_MOST_FACTS = 1 << 14
"""At most so many partition states have their columns cached."""


class _PartitionFacts:
    """The columns of a partition except its epochs, made once for all partitions in the same state."""

    def __init__(self, wanted: FieldNames) -> None:
        self._make = [
            (name, make)
            for name, make in PARTITION_VALUES.items()
            if name not in _EPOCHS and (wanted is None or name in wanted)
        ]
        self._cached: dict[int, tuple[Row, Partition]] = {}
        """Identity of a state -> its columns and the state, which is kept so that no other object gets its identity."""

    def of(self, state: Partition) -> Row:
        """Return the columns of a state; the caller must not change them."""
        cached = self._cached.get(id(state))
        if cached is None:
            if len(self._cached) >= _MOST_FACTS:
                self._cached.clear()
            cached = self._cached[id(state)] = {name: make(state) for name, make in self._make}, state
        return cached[0]


def _partition_rows(session: Session, table: Table, wanted: FieldNames) -> Iterator[Row]:
    past = recorded_past(session, history_name(table.name))
    facts, timestamp = _PartitionFacts(wanted), past.timestamp
    with_epochs = wanted is None or not _EPOCHS.isdisjoint(wanted)
    with_offsets = wanted is None or not _OFFSETS.isdisjoint(wanted)
    for topic, topic_id, states in _topics(past):
        for number, recorded in _partition_states(past, states).items():
            key: Row = {"topic": topic, "topicId": topic_id, "partition": number}
            ended: int | None = -1
            ended_ms: int | None = -1
            for value, since, until in periods(recorded):
                since_ms = ended_ms if since == ended else timestamp(since)
                ended_ms = None if until is None else timestamp(until)
                ended = until
                row = {**facts.of(value.without_epochs), **key} if isinstance(value, Waypoint) else {**key}
                row["validFromMs"], row["validToMs"] = since_ms, ended_ms
                if with_offsets:
                    row["validFromOffset"], row["validToOffset"], row["isCurrent"] = since, until, until is None
                if with_epochs and isinstance(value, Waypoint):
                    row["leaderEpoch"] = java_int(value.leader_epoch)
                    row["partitionEpoch"] = java_int(value.partition_epoch)
                yield row


# --- tables that several values make ---------------------------------------------------------------------------------


def _controller_rows(session: Session, table: Table, wanted: FieldNames) -> Iterator[Row]:
    """Yield the versions of controllers: which are registered, which are voters, and which is the leader.

    A voter's addresses are those of its registration, else those of the voter set. Without a voter set (kraft.version
    0) the voters are those that the last LeaderChange record names. A snapshot has none: where the log begins with one,
    the log before its end is searched for the record that opened the snapshot's epoch.
    """
    past = recorded_past(session, history_name(table.name))
    quorum = {keys[0]: states for keys, states in states_of(past, QUORUM)}
    leaders, voters = quorum.get(LEADER, []), quorum.get(VOTERS, [])
    if past.start >= 0:
        change = session.source.read_listed(lambda listing: leader_change_before(listing, past.start + 1))
        if change is not None and change.origin.place.epoch >= past.history.base.provenance.epoch:
            leaders = [(past.start, change), *leaders]
    registered = {keys[0]: states for keys, states in states_of(past, "controllers")}
    offsets = sorted({since for states in (leaders, voters, *registered.values()) for since, _ in states})
    ids = set(registered)
    ids.update(voter["voterId"] for _, entry in voters if entry is not None for voter in entry.value)
    for _, entry in leaders:
        if entry is not None:
            ids.update(voter["voterId"] for voter in entry.value["voters"])
            ids.add(entry.value["leaderId"])
    for node_id in sorted(node_id for node_id in ids if node_id >= 0):
        own = registered.get(node_id, [])
        states = (
            (offset, _controller(session, table, node_id, _at(own, offset), _at(voters, offset), _at(leaders, offset)))
            for offset in offsets
        )
        for row, since, until in periods(states):
            yield row | _validity(past, since, until)


def _controller(
    session: Session,
    table: Table,
    node_id: int,
    own: Entry[Controller] | None,
    voters: Entry[list[Message]] | None,
    leader: Entry[Message] | None,
) -> Row | None:
    """Return a controller's row from the entries that hold at an offset; ``None`` where the log does not name it."""
    change = {} if leader is None else leader.value
    leads = change.get("leaderId") == node_id
    voter = next((voter for voter in voters.value if voter["voterId"] == node_id), None) if voters is not None else None
    is_named = any(voter["voterId"] == node_id for voter in change.get("voters", ()))
    votes = is_named if voters is None else voter is not None
    if own is None and not votes and not leads:
        return None
    row = dict.fromkeys(field.name for field in recorded_fields(table.name))
    points = None if voter is None else voter_listeners(voter)
    if own is not None:
        row |= {name: value for name, value in families()["controllers"].plain(own.value).items() if name in row}
    else:
        row["listeners"] = points or None
    return row | {"id": node_id, "isLeader": leads, "isVoter": votes, "voterListeners": points}


def _at(states: list[Version], offset: int) -> Any:
    """Return the newest value at an offset; ``None`` if there is none."""
    index = bisect_right(states, offset, key=lambda state: state[0])
    return states[index - 1][1] if index else None


def _provenance_rows(session: Session, table: Table, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per offset at which the state changed: not for control records, nor inside an open transaction."""
    past = recorded_past(session, history_name(table.name))
    history = past.history
    features = {keys[0]: states for keys, states in states_of(past, "features")}
    levels = features.get(FEATURE, [])

    def states() -> Iterator[State]:
        for start, end, provenance, advances in history.provenances(past.until):
            is_base = start < history.log.start
            for offset in range(past.start, past.start + (past.start >= 0)) if is_base else range(start, end):
                at = Provenance(offset, provenance.epoch, provenance.timestamp) if advances else provenance
                yield offset, (at, _at(levels, offset))

    for (provenance, level), since, until in periods(states()):
        image = Image({"features": {} if level is None else {FEATURE: level}}, provenance)
        (row,) = table.rows(session, image, None)
        yield {**row, **_validity(past, since, until)}


_ROWS_OF = {
    "topics": _topic_rows,
    "partitions": _partition_rows,
    "controllers": _controller_rows,
    "provenance": _provenance_rows,
}


def _history_table(table: Table) -> Table:
    make = _ROWS_OF.get(table.name, _family_rows)
    return Table(
        history_name(table.name),
        f"{table.summary}: every version, and from when to when it was so",
        (*recorded_fields(table.name), *VERSION),
        lambda session, image, wanted: make(session, table, wanted),
        (),
    )
