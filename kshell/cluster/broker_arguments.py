"""Brokers as arguments of commands such as ``drain-check``: parse and complete their ids, refuse unknown ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kshell.errors import CommandError, UsageError
from kshell.metadata.image import Image
from kshell.tables.existing import unregistered_brokers

if TYPE_CHECKING:
    from kshell.engine.session import Session


def broker_id(text: str) -> int:
    """Parse a broker id: ``3``, or ``broker-3`` as the command ``why`` writes it. Raises UsageError."""
    number = text.removeprefix("broker-")
    if not (number.isascii() and number.isdigit() and len(number) < 11):
        raise UsageError(f"{text!r} is not the id of a broker", hint="an id is a number; `brokers` lists them")
    return int(number)


def refuse_unknown(image: Image, brokers: Collection[int]) -> None:
    """Raise CommandError if one of the brokers is neither registered nor named by any partition."""
    unknown = unregistered_brokers(image, brokers)
    if unknown:
        there = ", ".join(map(str, sorted(image["brokers"]))) or "none"
        raise CommandError(f"broker {min(unknown)}: no such broker", hint=f"registered: {there}")


def complete_broker(session: Session, typed: str) -> Iterable[str]:
    """Complete a broker id: the ids of the registered brokers."""
    return [str(broker_id) for broker_id in sorted(session.image["brokers"])]


def complete_brokers(session: Session, typed: str) -> Iterable[str]:
    """Complete the last id of a comma-separated list; ids that the list already has are not offered again."""
    before, comma, _ = typed.rpartition(",")
    return [f"{before}{comma}{broker}" for broker in complete_broker(session, typed) if broker not in before.split(",")]
