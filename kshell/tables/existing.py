"""Names in conditions that nothing has: a typo would make an alert green for ever, so whoever asks is told.

A column declares what its values name (:class:`NameOf`), a condition collects the constants that such a column is
compared with, and :func:`unknown_names` holds them against an image. It is a note and never an error: what is not there
today may have been there yesterday, or come tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import did_you_mean
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING
from kshell.metadata.partitions import Partition

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.where import Predicate

TOPIC, BROKER, USER, PRINCIPAL = "topic", "broker", "user", "principal"


class NameOf(str):
    """A column type whose values name something of the image; wherever types are compared, the plain type."""

    what: str

    def __new__(cls, type_name: str, what: str = "") -> NameOf:
        """``what``: one of :data:`TOPIC`, :data:`BROKER`, :data:`USER`, :data:`PRINCIPAL`; pickle sets it itself."""
        made = super().__new__(cls, type_name)
        made.what = what
        return made


TOPIC_NAME = NameOf("string", TOPIC)
BROKER_ID = NameOf("int32", BROKER)
USER_NAME = NameOf("string", USER)
PRINCIPAL_NAME = NameOf("string", PRINCIPAL)


class NameMeant(NamedTuple):
    """A constant of a condition, and what it should be the name of."""

    what: str
    value: Any


class _Kind(NamedTuple):
    """``parts`` of the image without which nobody can tell; ``unknown`` gives those that nothing is named by."""

    parts: tuple[str, ...]
    sentence: str
    names: Callable[[Image], Collection[Any]]
    unknown: Callable[[Image, Collection[Any]], Collection[Any]] | None = None


def unregistered_brokers(image: Image, brokers: Iterable[int]) -> set[int]:
    """Those that are neither registered nor named by a partition."""
    unknown = set(brokers).difference(image["brokers"])
    if unknown:
        unknown -= {
            broker for topic in image[TOPICS].values() for _, value in topic.scan() for broker in _placed(value)
        }
    return unknown


def _placed(value: object) -> tuple[int, ...]:
    return value.replicas if isinstance(value, Partition) else ()


def users(image: Image) -> set[str]:
    """The users with SCRAM credentials."""
    return {user for table in image["scram"].values() for user in table}


def principals(image: Image) -> set[str]:
    """Those that ACLs name, and users that have SCRAM credentials."""
    return {entry.value.principal for entry in image["acls"].values()} | {f"User:{user}" for user in users(image)}


_KINDS = {
    TOPIC: _Kind((TOPICS,), "no topic {} in this state", lambda image: image[NAMES]),
    BROKER: _Kind(
        ("brokers", TOPICS), "no broker {} in this state", lambda image: image["brokers"], unregistered_brokers
    ),
    USER: _Kind(("scram",), "no user {} has a SCRAM credential", users),
    PRINCIPAL: _Kind(("acls", "scram"), "no ACL or SCRAM credential names {}", principals),
}


def note_unknown_names(session: Session, image: Image, where: Predicate | None) -> None:
    """Remark on the names in a condition that nothing has."""
    if where is not None:
        session.remarks += unknown_names(image, where.named)


def unknown_names(image: Image, named: Iterable[NameMeant]) -> Iterator[str]:
    """A sentence for each constant that is the name of nothing in the image."""
    missing = {path[-1] for path in image[MISSING]}
    for what, value in dict.fromkeys(named):
        kind = _KINDS[what]
        if isinstance(value, int) and value < 0:  # -1 is nobody, and is meant
            continue
        if not missing.isdisjoint(kind.parts):
            continue
        names = kind.names(image)
        if value not in names and (kind.unknown is None or kind.unknown(image, (value,))):
            yield _sentence(kind, value, names)


def _sentence(kind: _Kind, value: Any, names: Iterable[Any]) -> str:
    sentence = kind.sentence.format(value)
    if isinstance(value, int):
        return f"{sentence}: registered are {', '.join(map(str, sorted(names))) or 'none'}"
    alike = {name.lower(): name for name in names}.get(value.lower())
    hint = f"did you mean {alike}?" if alike is not None else did_you_mean(value, names)
    return f"{sentence}: {hint}" if hint else sentence
