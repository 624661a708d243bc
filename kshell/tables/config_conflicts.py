"""Values of configs that Kafka accepts alone but refuses together (``LogConfig.validate``, ``GroupConfig``)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_TIERED = ("remote.storage.enable",)
_TIERED_WITHOUT_COPIES = (*_TIERED, "remote.log.copy.disable")
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "at most": lambda number, limit: limit < 0 or 0 <= number <= limit,  # what is negative is without limit
    "below": operator.lt,
    "equal to": operator.eq,
}


class _Pair(NamedTuple):
    """The relation that two numbers must have while all ``switches`` are true."""

    key: str
    relation: str
    limit: str
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
"""(key, value) -> the key whose value counts instead."""
_OFF_ONLY_WITH = {"TOPIC": {"remote.storage.enable": "remote.log.delete.on.disable"}}
"""Switch -> the switch that must be true to turn it off."""


class _Compared(NamedTuple):
    """What Kafka compares for a key: a number, the key that it is the value of, and how messages show it."""

    number: int
    source: str
    text: str


ValueOf = Callable[[str], str | None]
"""The value of a key; ``None`` if it is not known."""


def conflicts(resource_type: str, assigned: Mapping[str, str], present: ValueOf) -> dict[str, str]:
    """Return key -> why Kafka refuses it, for the keys whose values conflict with other values.

    Args:
        resource_type: ``TOPIC`` and so on.
        assigned: The values that are to be set, each valid alone.
        present: The values that other keys have already, defaults included.
    """

    def value_of(key: str) -> str | None:
        return assigned.get(key, present(key))

    reasons: dict[str, str] = {}
    for keys, reason in _violations(resource_type, value_of, present):
        for key in keys:
            if key in assigned:
                reasons.setdefault(key, reason)
    return reasons


def _violations(resource_type: str, value_of: ValueOf, present: ValueOf) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of each rule that the values break, and what the rule is."""
    for key, relation, limit, switches in _PAIRS.get(resource_type, ()):
        left, right = _compared(key, value_of), _compared(limit, value_of)
        if left is None or right is None or not _all_true(switches, value_of):
            continue
        if not _RELATIONS[relation](left.number, right.number):
            rule = f"{key} ({left.text}) must be {relation} {limit} ({right.text})"
            yield (key, left.source, limit, right.source, *switches), f"{rule}{_while(switches)}"
    for key, element, switches in _EXCLUSIONS.get(resource_type, ()):
        elements = [part.strip() for part in (value_of(key) or "").split(",")]
        if element in elements and _all_true(switches, value_of):
            yield (key, *switches), f"{key} must not contain {element}{_while(switches)}"
    for switch, required in _OFF_ONLY_WITH.get(resource_type, {}).items():
        is_turned_off = _all_true((switch,), present) and not _all_true((switch,), value_of)
        if is_turned_off and not _all_true((required,), value_of):
            yield (switch, required), f"{switch} can be turned off only while {required} is true"


def _compared(key: str, value_of: ValueOf) -> _Compared | None:
    """Return what Kafka compares for a key; ``None`` if it is not known."""
    try:
        number = int(value_of(key) or "")
    except ValueError:
        return None
    source = _STANDS_FOR.get((key, number))
    if source is None:
        return _Compared(number, key, str(number) if number >= 0 else f"{number}: no limit")
    compared = _compared(source, value_of)
    return None if compared is None else compared._replace(text=f"{number}, which is {source}: {compared.text}")


def _all_true(switches: tuple[str, ...], value_of: ValueOf) -> bool:
    return all((value_of(switch) or "").strip().lower() == "true" for switch in switches)


def _while(switches: tuple[str, ...]) -> str:
    return f" while {' and '.join(f'{switch} is true' for switch in switches)}" if switches else ""
