"""The tables ``brokers``, ``controllers``, ``configs``, ``features`` and ``provenance``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from kshell.engine import tones
from kshell.engine.result import TIMESTAMP, Row
from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.families.quorum import QUORUM
from kshell.metadata.image import Image, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.partial import reported_or_none
from kshell.metadata.values import NEWER_ENUM, SECURITY_PROTOCOLS
from kshell.sources.brokers.config_entries import NEWER_SOURCE, SOURCES, TYPES, UNKNOWN
from kshell.tables.configs import rows_of_log
from kshell.tables.controller_rows import controller_rows
from kshell.tables.declaration import Field, FieldNames, Table, table
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import BROKER_ID
from kshell.tables.row_counts import each_key, of_quorum
from kshell.tables.selection import asked_for
from kshell.tree.image import epoch_ms, iso

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.row_counts import Question, Step

_PROTOCOL = Enumeration(SECURITY_PROTOCOLS.values(), NEWER_ENUM)
_LISTENERS = [{"name": "string", "host": "string", "port": "int32", "securityProtocol": _PROTOCOL}]
_CONFIG_RESOURCE = Enumeration(RESOURCE_TYPES.values(), NEWER_ENUM)
_CONFIG_SOURCE = Enumeration((*SOURCES.values(), UNKNOWN), NEWER_SOURCE)
_FEATURES = {"*": {"min": "int16", "max": "int16"}}

BROKER_FIELDS = (
    Field("id", BROKER_ID, "the broker's id"),
    Field("epoch", "int64", "the epoch of its registration", spare=3),
    Field("fenced", "boolean", "whether it is shut out: it sends no heartbeats, or is not ready yet", tone=tones.harm),
    Field("inControlledShutdown", "boolean", "whether it is handing over what it leads", spare=1, tone=tones.doubt),
    Field("rack", "string", "its rack"),
    Field("listeners", _LISTENERS, "where it can be reached"),
    Field("incarnationId", "string", "another with every start", True),
    Field("supportedFeatures", _FEATURES, "levels that it supports, by feature", True),
    Field("directories", ["string"], "ids of its log directories", True),
    Field("cordonedDirectories", ["string"], "those that get no new replicas; null before 4.3", True),
    Field("isMigratingZkBroker", "boolean", "whether it still runs with ZooKeeper", True),
)
CONTROLLER_FIELDS = (
    Field("id", "int32", "the controller's id"),
    Field("listeners", _LISTENERS, "where it can be reached; null where that is not known"),
    Field("isLeader", "boolean", "whether it is the active controller"),
    Field("incarnationId", "string", "another with every start; null where it is not registered", True),
    Field("zkMigrationReady", "boolean", "whether it can migrate from ZooKeeper", True),
    Field("supportedFeatures", _FEATURES, "levels that it supports, by feature", True),
    Field("address", "string", "where kshell would connect", True),
)
CONFIG_FIELDS = (
    Field(
        "resourceType",
        _CONFIG_RESOURCE,
        "TOPIC, BROKER, BROKER_LOGGER, GROUP, CLIENT_METRICS",
        spare=1,
    ),
    Field("resourceName", "string", "its name; empty for the default of all brokers", spare=-1),
    Field("name", "string", "the config's name", spare=-1),
    Field("value", "string", "its value; [redacted] if it is secret"),
    Field("source", _CONFIG_SOURCE, "where it is set, in Kafka's words: DYNAMIC_TOPIC_CONFIG, …", spare=2),
    Field("isSensitive", "boolean", "whether it is a password; null if not known", True),
    Field("isReadOnly", "boolean", "whether only a restart changes it; null if no node was asked", True),
    Field(
        "synonyms",
        [{"name": "string", "value": "string", "source": _CONFIG_SOURCE}],
        "what counts where it is not set; null if no node was asked",
        True,
    ),
    Field("type", Enumeration((*TYPES.values(), UNKNOWN)), "the type of its value, in Kafka's words", spare=3),
    Field("documentation", "string", "what the node says of it; null if none was asked", True),
)
_FEATURE_FIELDS = (
    Field("name", "string", "the feature; not kraft.version, which is the quorum's: `features` has both"),
    Field("level", "int16", "its finalized level"),
)
_PROVENANCE_FIELDS = (
    Field("offset", "int64", "the last record in the image; null if the source has no log"),
    Field("epoch", "int32", "its leader epoch"),
    Field("time", TIMESTAMP, "its time, ISO-8601 in UTC"),
    Field("timeMs", "int64", "the same in epoch milliseconds"),
    Field("metadataVersion", "string", "the finalized metadata.version by name"),
)


def broker_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per registered broker, by id."""
    plain = families()["brokers"].plain
    for _, entry in sorted(image["brokers"].items()):
        broker = {name: reported_or_none(value) for name, value in plain(entry.value).items()}
        yield broker | {
            "listeners": [
                {name: reported_or_none(v) for name, v in listener.items()} for listener in broker["listeners"]
            ]
        }


def _controllers(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    yield from controller_rows(session)


def config_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per config that is set, by resource and key, as the log has it."""
    return rows_of_log(image["configs"], sorted(image["configs"]), session.redaction)


def feature_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per finalized feature, by name."""
    for name, entry in sorted(image["features"].items()):
        yield {"name": name, "level": reported_or_none(entry.value)}


def provenance_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield the only row: the last record in the image, and metadata.version."""
    at, level = image.provenance, image["features"].get(FEATURE)
    is_known = at.offset >= 0
    yield {
        "offset": at.offset if is_known else None,
        "epoch": at.epoch if is_known else None,
        "time": iso(at.timestamp),
        "timeMs": epoch_ms(at.timestamp),
        "metadataVersion": version_name(level.value) if level is not None else None,
    }


def provenance_counts(question: Question) -> Iterator[Step]:
    """Yield the steps of the number (0 or 1) of rows that fulfil the condition; mostly only the offset differs."""
    history, where = question.history, question.where
    fields = asked_for(_PROVENANCE_FIELDS, where)
    levels = history.timeline("features", (FEATURE,), question.until)
    starts = [since for since, _ in levels]
    before = False
    for run in question.with_progress(history.provenances(question.until), "batches"):
        first, last = bisect_right(starts, run.start), bisect_left(starts, run.end)
        bounds = [run.start, *starts[first:last], run.end]
        for index, (start, end) in enumerate(pairwise(bounds), first):
            level = levels[index - 1][1] if index else None
            image = Image({"features": {} if level is None else {FEATURE: level}}, run.provenance)
            row = dict(*provenance_rows(question.session, image, fields))
            is_each = run.advances and "offset" in fields
            for offset in range(start, end) if is_each else (start,):
                if is_each:
                    row["offset"] = offset
                now = where(row)
                if now != before:
                    yield offset, 1 if now else -1
                before = now


BROKERS_TABLE = table(
    Table("brokers", "the registrations of brokers", BROKER_FIELDS, broker_rows, ("brokers",), each_key("brokers"))
)
CONTROLLERS_TABLE = table(
    Table("controllers", "the controllers", CONTROLLER_FIELDS, _controllers, (), of_quorum("controllers", QUORUM))
)
CONFIGS_TABLE = table(
    Table(
        "configs",
        "what is set, as the log holds it",
        CONFIG_FIELDS,
        config_rows,
        ("configs", "topics", "brokers"),
        each_key("configs"),
    )
)
FEATURES_TABLE = table(
    Table("features", "the finalized features", _FEATURE_FIELDS, feature_rows, ("brokers",), each_key("features"))
)
PROVENANCE_TABLE = table(
    Table(
        "provenance",
        "which state of the metadata this is: one row",
        _PROVENANCE_FIELDS,
        provenance_rows,
        ("brokers",),
        provenance_counts,
    )
)
