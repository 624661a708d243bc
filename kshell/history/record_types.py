"""Record types as people name them: which there are, and a filter for records of some of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.engine.declaration import Flag
from kshell.errors import UsageError, did_you_mean
from kshell.metadata.records import decode_value, record_types
from kshell.protocol.batches import RawRecord
from kshell.protocol.control import CONTROL_TYPES, control_name
from kshell.tables.enumeration import Enumeration

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.directory.records import Wanted

_HEAD = 3


def type_names() -> list[str]:
    """Every type's name as ``dump`` prints it, control records included."""
    return sorted([kind.name for kind in record_types().values()] + [kind.name for kind in CONTROL_TYPES.values()])


RECORD_TYPE = Enumeration(type_names, ("UNKNOWN", "UNKNOWN_{}", "UNKNOWN_CONTROL", "UNKNOWN_CONTROL_{}"))
"""The column type of a record's type; a type that is not known has a number for its name."""


def record_type(word: str) -> str:
    """The type that was meant: in any case, with or without ``_RECORD``. Raises UsageError, which proposes some."""
    name = word.upper().replace("-", "_")
    names = type_names()
    for candidate in (name, f"{name}_RECORD"):
        if candidate in names:
            return candidate
    if RECORD_TYPE.has(name):
        return name
    listed = "`help dump` says where the types are listed"
    within = [known for known in names if name in known][:3]
    if within:
        hint: str | None = f"did you mean {' or '.join(within)}?"
    else:
        hint = did_you_mean(name, names) or did_you_mean(f"{name}_RECORD", names, listed)
    raise UsageError(f"{word}: no record has that type", hint=hint)


def complete_record_type(session: Session, typed: str) -> Iterable[str]:
    """The types that begin like what was typed."""
    return [name for name in type_names() if name.startswith(typed.upper())]


TYPE_FLAG = Flag(
    ("--type",),
    "only records of that type; may be given several times",
    metavar="TYPE",
    convert=record_type,
    complete=complete_record_type,
    repeat=True,
)


def only(names: frozenset[str]) -> Wanted:
    """A test for records of these types that looks at no more than a record's head."""
    known: dict[bytes, bool] = {}

    def wanted(raw: RawRecord, control: bool) -> bool:
        if control:
            return control_name(raw.key) in names
        value = raw.value or b""
        answer = known.get(value[:_HEAD])
        if answer is None:
            answer = decode_value(value).name in names
            if value[:_HEAD].isascii():  # three whole varints: the name hangs on nothing else
                known[value[:_HEAD]] = answer
        return answer

    return wanted
