"""Notes on names in conditions (``--where``) that do not exist: with a typo, an alert would never fire.

A column declares what its values name (:class:`NameOf`), a condition collects the constants that such columns are
compared with, and :func:`unknown_names` looks them up in an image. The result is a note, never an error: what does not
exist today may have existed yesterday or may come tomorrow.
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
    """A column type whose values name something in the image; it equals the plain type, such as ``"string"``."""

    kind_name: str

    def __new__(cls, type_name: str, kind_name: str = "") -> NameOf:
        """``kind_name``: :data:`TOPIC`, :data:`BROKER`, :data:`USER`, :data:`PRINCIPAL`; empty while unpickling."""
        column_type = super().__new__(cls, type_name)
        column_type.kind_name = kind_name
        return column_type


TOPIC_NAME = NameOf("string", TOPIC)
BROKER_ID = NameOf("int32", BROKER)
USER_NAME = NameOf("string", USER)
PRINCIPAL_NAME = NameOf("string", PRINCIPAL)


class NameMeant(NamedTuple):
    """A constant of a condition, and what kind of thing (``kind_name``) it should name."""

    kind_name: str
    value: Any


class _Kind(NamedTuple):
    """A kind of thing that has names; ``parts`` of the image must be reported to know them.

    ``names`` gives those that exist; ``unknown``, if set, those of some other names that nothing else in the image has.
    """

    parts: tuple[str, ...]
    sentence: str
    names: Callable[[Image], Collection[object]]
    unknown: Callable[[Image, Collection[Any]], Collection[object]] | None = None


def unregistered_brokers(image: Image, brokers: Iterable[int]) -> set[int]:
    """Return which of the brokers are neither registered nor a replica of any partition."""
    unknown = set(brokers).difference(image["brokers"])
    if unknown:
        unknown -= {
            broker for topic in image[TOPICS].values() for _, value in topic.scan() for broker in _placed(value)
        }
    return unknown


def _placed(value: object) -> tuple[int, ...]:
    return value.replicas if isinstance(value, Partition) else ()


def users(image: Image) -> set[str]:
    """Return the users with SCRAM credentials."""
    return {user for table in image["scram"].values() for user in table}


def principals(image: Image) -> set[str]:
    """Return the principals of ACLs, and of users with SCRAM credentials."""
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
    """Add a remark to the session for each name in a condition that does not exist."""
    if where is not None:
        session.remarks += unknown_names(image, where.named)


def unknown_names(image: Image, named: Iterable[NameMeant]) -> Iterator[str]:
    """Yield a note for each constant that names nothing in the image, as far as the source reports the names."""
    missing = {path[-1] for path in image[MISSING]}
    for kind_name, value in dict.fromkeys(named):
        kind = _KINDS[kind_name]
        if isinstance(value, int) and value < 0:  # -1 stands for no broker, and is intended
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
