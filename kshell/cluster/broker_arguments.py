"""Brokers as arguments of a command: their ids, their completion, and the refusal of one that nobody knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kshell.errors import CommandError, UsageError
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition

if TYPE_CHECKING:
    from kshell.engine.session import Session


def broker_id(text: str) -> int:
    """The id in an argument's text. Raises UsageError."""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise UsageError(f"{text!r} is not the id of a broker")
    return int(text)


def refuse_unknown(image: Image, brokers: Collection[int]) -> None:
    """Raises CommandError for a broker that is neither registered nor named by a partition."""
    unknown = set(brokers).difference(image["brokers"])
    if unknown:
        unknown -= {
            broker for topic in image[TOPICS].values() for _, value in topic.scan() for broker in _placed(value)
        }
    if unknown:
        there = ", ".join(map(str, sorted(image["brokers"]))) or "none"
        raise CommandError(f"broker {min(unknown)}: no such broker", hint=f"registered: {there}")


def _placed(value: object) -> tuple[int, ...]:
    return value.replicas if isinstance(value, Partition) else ()


def complete_broker(session: Session, typed: str) -> Iterable[str]:
    """The ids of the registered brokers."""
    return [str(broker_id) for broker_id in sorted(session.image["brokers"])]


def complete_brokers(session: Session, typed: str) -> Iterable[str]:
    """The last id of a list with commas."""
    before, comma, _ = typed.rpartition(",")
    return [f"{before}{comma}{broker}" for broker in complete_broker(session, typed) if broker not in before.split(",")]
