"""``--min-isr-default``: what the log does not know of ``min.insync.replicas``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Flag
from kshell.metadata.families.topics import NAMES
from kshell.metadata.image import Image
from kshell.metadata.partition_state import MinIsr

if TYPE_CHECKING:
    from kshell.engine.session import Session


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 10):
        raise ValueError("a whole number of 1 or more")
    return int(text)


MIN_ISR_DEFAULT = Flag(
    ("--min-isr-default",),
    "min.insync.replicas in the brokers' server.properties, which the log does not hold",
    metavar="N",
    convert=_positive,
)
DESCRIPTION = (
    "min.insync.replicas is the topic's, else that of the broker which leads, else that of all brokers, as far as these"
    " are set in the log; what only a server.properties says is unknown (null), or --min-isr-default."
)


def min_isr_of(session: Session, image: Image, args: Any) -> MinIsr:
    """The values of an image. Where they are unknown for some topics, a remark says for how many."""
    least = MinIsr(image, args.min_isr_default)
    note_unknown(session, image, least)
    return least


def note_unknown(session: Session, image: Image, least: MinIsr) -> int:
    """Of how many topics nobody knows the value; a remark says so."""
    unknown = sum(least.of(name) is None for name in image[NAMES])
    if unknown:
        topics = "1 topic" if unknown == 1 else f"{unknown} topics"
        session.remarks.append(
            f"min.insync.replicas of {topics} is not in the log: --min-isr-default says what the brokers' files have"
        )
    return unknown
