"""Commands as tools of a program, such as a language model's: what it may call, with which arguments, as JSON schema.

Everything derives from a command's declaration; only :data:`TOOLS` is said here: which commands are offered, and when
each is the right one. What is offered is read-only. An option that names a file, shapes text or never ends is not
offered at all (:func:`is_offered`), and what is not offered cannot be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from kshell.engine import registry
from kshell.engine.arguments import count, option_words
from kshell.engine.declaration import CONDITION, Arg, Command, Flag
from kshell.errors import UsageError, did_you_mean

ROWS = 200
"""Rows of an answer where the caller asks for no other number."""
MOST_ROWS = 2000
SOURCE, AS_OF, LIMIT = "source", "as_of", "limit"
"""The arguments of every tool; ``source`` only where there are several."""

TOOLS: Mapping[str, str] = {
    "status": "Call this first: one look at a cluster before any other question.",
    "health": "Call this for 'what is wrong?'. Each finding has a level, what it is about, and what to do next.",
    "why": "Call this when a partition has no leader, an unexpected leader, or lost in-sync replicas; and for the story"
    " of a broker, a controller or a topic.",
    "timeline": "Call this for when leaders and ISRs changed. Each row is a stretch in which leader, ISR and replicas"
    " of one partition stayed as they were, from the record at fromOffset to that at toOffset (null: it lasts).",
    "diff": "Call this for what changed between two moments, `a` and `b`; here they cannot be other sources. Narrow it"
    " by `path`, or call it with `stat` first: rows hold whole old and new values.",
    "log": "Call this for the records themselves: what was written about a topic, broker or config, in order.",
    "blame": "Call this for when a value became what it is, and which record did it.",
    "when": "Call this for 'since when?' and 'how often?': the stretches of the log in which a row of a table fulfilled"
    " a condition. Give `where`.",
    "topics": "Call this to list or count topics. Choose rows with `where` and fields with `columns`.",
    "partitions": "Call this to list partitions: leader, replicas, ISR. Choose rows with `where`: there may be many.",
    "brokers": "Call this for brokers: fenced or not, racks, endpoints, releases, and with `load` what each leads.",
    "configs": "Call this for configs that were set, or to check values before somebody sets them (`check`).",
    "acls": "Call this to list access control entries. Whether somebody may do something is for the tool `can`.",
    "can": "Call this for 'may this principal do that?'. Do not work it out from `acls`: precedence is subtle.",
    "features": "Call this for metadata.version and other features, and before an upgrade or a downgrade.",
    "quorum": "Call this for the metadata quorum: its leader, voters and observers, and who lags.",
    "sql": "Call this for questions that join or count over tables and that no other tool answers. `SHOW TABLES` and "
    "`DESCRIBE topics` say what there is.",
    "cat": "Call this for the exact value at a path of the metadata tree, once the path is known (see `find`). A leaf"
    " gives its value, a directory an object of objects, several paths a row each.",
    "find": "Call this to find paths in the metadata tree, such as /image/topics/byName/orders/0."
    " Rows have a path and its type; with `values`, every leaf with its value.",
}
"""Command -> when a model should call it. One that this release does not have is left out."""

_FILES = ("FILE", "DIR", "DIRECTORY")
_NOT_OFFERED = ("watch", "interval", "ascii", "fail_if_any")
"""Options of a person at a terminal, or of a script: answers without end, how plots are drawn, an exit code."""
_ROW_LIMITS = ("limit", "count")
"""Options whose place the tool's own ``limit`` takes: it knows what was left out."""
_NOT_HERE = re.compile(
    r"\bText\b|\btext shows\b|(?<!\w)-o\b|✗|\bplot\b|\bcolour\b|\bOther formats\b|existing path of|findings:$|^- "
)
"""Sentences about terminals, formats and what a tool cannot reach; and long lists, which answers name anyway."""
_SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z-])")

_POINT = (
    "A moment of the log's history: an offset (1234), a time (2026-01-31T12:00:00Z), so long before now (-15m, -2h,"
    " -1d), so long before the last record (end-15m), or now."
)
_CONDITION = (
    "A condition on fields: `offline > 0`, `name ~ '^orders'` (a regular expression), `3 in isr`, `rack == null`,"
    " `len(isr) < len(replicas)`, joined by and, or, not; text that is no plain word stands in quotes"
)
_PATH = "A path of the metadata tree, such as /image/topics/byName/orders; * ? [] {} are globs, a backslash quotes one."


@runtime_checkable
class OnFields(Protocol):
    """A conversion that knows the fields of the rows it is about (``--where``)."""

    @property
    def fields(self) -> Iterable[Any]:
        """Each has ``name`` and ``doc``."""


def offered() -> list[Command]:
    """The commands that are offered, of those that exist."""
    return [registry.get(name) for name in TOOLS if name in registry.names()]


def get(name: str) -> Command:
    """The command behind a tool. Raises UsageError, which proposes tools that exist."""
    names = [command.name for command in offered()]
    if name not in names:
        raise UsageError(f"{name}: no such tool", hint=did_you_mean(name, names, f"tools: {', '.join(names)}"))
    return registry.get(name)


def is_offered(flag: Flag) -> bool:
    """Whether a caller may give this option of a command."""
    return flag.metavar not in _FILES and flag.dest not in (*_NOT_OFFERED, *_ROW_LIMITS)


def description(command: Command) -> str:
    """What a tool is for, what it gives, what to know: for a reader that sees no terminal."""
    sentences = [
        sentence
        for paragraph in command.description.split("\n\n")
        if (sentence := " ".join(s for s in _SENTENCE.split(paragraph) if not _NOT_HERE.search(s)))
    ]
    summary = command.summary.replace(", drawn", "")
    return "\n\n".join((f"{summary[0].upper()}{summary[1:]}. {TOOLS[command.name]}", *sentences))


def input_schema(command: Command, sources: Iterable[str]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments.

    Args:
        command: the tool's.
        sources: the names of the sources; with more than one, the caller must choose.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    names = list(sources)
    if len(names) > 1:
        properties[SOURCE] = {"type": "string", "enum": names, "description": "the cluster that is asked"}
        required.append(SOURCE)
    for arg in command.args:
        properties[arg.name] = _of_argument(arg)
        if arg.arity in "1+":
            required.append(arg.name)
    for flag in filter(is_offered, command.flags):
        properties[flag.dest] = _of_flag(flag)
    properties[AS_OF] = {"type": "string", "description": f"The state at that moment, not the newest. {_POINT}"}
    properties[LIMIT] = {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_ROWS,
        "default": ROWS,
        "description": "rows of the answer at most; the answer says how many were left out",
    }
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of_argument(arg: Arg) -> dict[str, Any]:
    about = f"{arg.help}. {_PATH}" if arg.kind == "path" else arg.help
    text = {"type": "string"}
    if arg.arity in "*+":
        return {"type": "array", "items": text, "description": about} | ({"minItems": 1} if arg.arity == "+" else {})
    return {**text, "description": about}


def _of_flag(flag: Flag) -> dict[str, Any]:
    if flag.metavar is None:
        return {"type": "boolean", "description": flag.help}
    about = [flag.help]
    if flag.metavar == "POINT":
        about.append("A moment, as as_of takes it")
    if flag.metavar == CONDITION:
        about.append(_CONDITION)
    convert: object = flag.convert
    if isinstance(convert, OnFields):
        about.append("Fields: " + "; ".join(f"{field.name} ({field.doc})" for field in convert.fields))
    text: dict[str, Any] = {"type": "string"}
    if flag.convert is count or flag.metavar == "N":
        text = {"type": "integer", "minimum": 0}
    elif flag.choices:
        text = {"type": "string", "enum": list(flag.choices)}
    described = {"description": ". ".join(about)}
    return {"type": "array", "items": text, **described} if takes_several(flag) else {**text, **described}


def takes_several(flag: Flag) -> bool:
    """Whether an option takes a list: it may be repeated, or its one value is a list of names."""
    return flag.repeat or (flag.metavar or "").endswith(",…")


def command_tokens(command: Command, arguments: Mapping[str, Any]) -> list[str]:
    """A call of a tool as the tokens of its command, without ``source``, ``limit``.

    Raises:
        UsageError: an argument that is not offered, or is no text, number, truth value or list of those.
    """
    flags = {flag.dest: flag for flag in command.flags if is_offered(flag)}
    names = {arg.name for arg in command.args} | set(flags) | {SOURCE, AS_OF, LIMIT}
    for name, value in arguments.items():
        if name not in names:
            hint = did_you_mean(name, names, f"arguments: {', '.join(sorted(names))}")
            raise UsageError(f"{command.name}: there is no argument {name}", hint=hint)
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not isinstance(item, str | int | float):
                raise UsageError(f"{command.name}: {name}: give text, a number, true or false, or a list of those")
    options = {name: value for name, value in arguments.items() if name in flags or name == AS_OF}
    # A command with a limit of its own ends there without telling how much there is.
    options |= {flag.dest: MOST_ROWS for flag in command.flags if flag.dest in _ROW_LIMITS and flag.default is not None}
    return [*option_words(command, options), "--", *_positional(command, arguments)]


def _positional(command: Command, arguments: Mapping[str, Any]) -> list[str]:
    positional: list[str] = []
    gap = ""
    for arg in command.args:
        value = arguments.get(arg.name)
        if value is None or value == []:
            gap = gap or arg.name
            continue
        if gap:
            raise UsageError(f"{command.name}: {arg.name} needs {gap}, too")
        positional += map(str, value) if isinstance(value, list) else [str(value)]
    return positional


def limit_of(arguments: Mapping[str, Any]) -> int:
    """The rows that a call asks for. Raises UsageError for no number of rows."""
    value = arguments.get(LIMIT)
    if value is None:
        return ROWS
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"limit: {value!r} is not a whole number from 1 to {MOST_ROWS}")
    return min(value, MOST_ROWS)
