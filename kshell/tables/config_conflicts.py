"""Values of configs that Kafka takes alone but refuses beside each other (``LogConfig.validate``, ``GroupConfig``)."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_TIERED = ("remote.storage.enable",)
_TIERED_WITHOUT_COPIES = (*_TIERED, "remote.log.copy.disable")
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "at most": operator.le, "below": operator.lt, "equal to": operator.eq,
}  # fmt: skip


class _Pair(NamedTuple):
    """The relation that two numbers must have while all ``switches`` are true."""

    key: str
    relation: str
    other: str
    switches: tuple[str, ...] = ()


class _Exclusion(NamedTuple):
    """An element that a list must not have while all ``switches`` are true."""

    key: str
    element: str
    switches: tuple[str, ...]


_PAIRS = {
    "TOPIC": (
        _Pair("min.compaction.lag.ms", "at most", "max.compaction.lag.ms"),
        _Pair("local.retention.ms", "at most", "retention.ms", _TIERED),
        _Pair("local.retention.bytes", "at most", "retention.bytes", _TIERED),
        _Pair("remote.copy.lag.ms", "at most", "local.retention.ms", _TIERED),
        _Pair("remote.copy.lag.bytes", "at most", "local.retention.bytes", _TIERED),
        _Pair("local.retention.ms", "equal to", "retention.ms", _TIERED_WITHOUT_COPIES),
        _Pair("local.retention.bytes", "equal to", "retention.bytes", _TIERED_WITHOUT_COPIES),
    ),
    "GROUP": (
        _Pair("consumer.heartbeat.interval.ms", "below", "consumer.session.timeout.ms"),
        _Pair("share.heartbeat.interval.ms", "below", "share.session.timeout.ms"),
        _Pair("streams.heartbeat.interval.ms", "below", "streams.session.timeout.ms"),
    ),
}
_EXCLUSIONS = {"TOPIC": (_Exclusion("cleanup.policy", "compact", _TIERED),)}
_STANDS_FOR = {
    ("local.retention.ms", -2): "retention.ms",
    ("local.retention.bytes", -2): "retention.bytes",
    ("remote.copy.lag.ms", -1): "local.retention.ms",
    ("remote.copy.lag.bytes", -1): "local.retention.bytes",
}
"""(key, value) -> the key whose value counts instead. Any other -1 means: without limit."""

ValueOf = Callable[[str], str | None]
"""The value of a key; ``None`` if it is not known."""


def conflicts(resource_type: str, given: Mapping[str, str], present: ValueOf) -> dict[str, str]:
    """Return key -> why Kafka refuses it, for the keys whose values conflict with other values.

    Args:
        resource_type: ``TOPIC`` and so on.
        given: The values that are to be set, each valid alone.
        present: The values that other keys have already, defaults included.
    """

    def value_of(key: str) -> str | None:
        return given.get(key, present(key))

    reasons: dict[str, str] = {}
    for keys, reason in _violations(resource_type, value_of):
        for key in keys:
            if key in given:
                reasons.setdefault(key, reason)
    return reasons


def _violations(resource_type: str, value_of: ValueOf) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of each rule that the values break, and what the rule is."""
    for key, relation, other, switches in _PAIRS.get(resource_type, ()):
        number, limit = _number(key, value_of), _number(other, value_of)
        if number is None or limit is None or not _all_true(switches, value_of):
            continue
        if not _RELATIONS[relation](number, limit):
            rule = f"{key} ({value_of(key)}) must be {relation} {other} ({value_of(other)})"
            yield (key, other, *switches), f"{rule}{_while(switches)}"
    for key, element, switches in _EXCLUSIONS.get(resource_type, ()):
        elements = [part.strip() for part in (value_of(key) or "").split(",")]
        if element in elements and _all_true(switches, value_of):
            yield (key, *switches), f"{key} must not have {element}{_while(switches)}"


def _number(key: str, value_of: ValueOf) -> float | None:
    """Return the number that Kafka compares for a key; ``None`` if it is not known."""
    number = None
    with contextlib.suppress(ValueError):
        number = int(value_of(key) or "")
    if number is None:
        return None
    if (key, number) in _STANDS_FOR:
        return _number(_STANDS_FOR[key, number], value_of)
    return math.inf if number == -1 else number


def _all_true(switches: tuple[str, ...], value_of: ValueOf) -> bool:
    return all((value_of(switch) or "").strip().lower() == "true" for switch in switches)


def _while(switches: tuple[str, ...]) -> str:
    return f" while {' and '.join(f'{switch} is true' for switch in switches)}" if switches else ""
