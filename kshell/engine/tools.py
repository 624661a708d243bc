"""Commands as tools that a program, such as a language model, may call (used by :mod:`kshell.mcp`).

:data:`TOOLS` lists the commands that are offered and says when to call each; the JSON schema of the arguments and the
descriptions derive from the commands' declarations. All offered commands are read-only. Options that name a file, shape
text or never end are not offered (:func:`is_offered`), and a call that uses one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kshell.engine import registry
from kshell.engine.arguments import count, option_words
from kshell.engine.declaration import CONDITION, Arg, Command, Flag
from kshell.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

ROWS = 200
"""The most rows of an answer, unless the caller gives ``limit``."""
MOST_ROWS = 2000
SOURCE, AS_OF, LIMIT = "source", "as_of", "limit"
"""The arguments of every tool; ``source`` only if the server has several sources."""

TOOLS: Mapping[str, str] = {
    "status": "Call this first: one look at a cluster before any other question.",
    "health": "Call this for 'what is wrong?'. Each finding has a level, what it is about, and what to do next.",
    "why": "Call this when a partition has no leader, an unexpected leader, or lost in-sync replicas; and for the story"
    " of a broker, a controller or a topic.",
    "timeline": "Call this for when leaders and ISRs changed. Each row is a period in which leader, ISR and replicas"
    " of one partition stayed as they were, from the record at fromOffset to that at toOffset (null: it lasts).",
    "diff": "Call this for what changed between two moments, `a` and `b`; here they cannot be other sources. Narrow it"
    " by `path`, or call it with `stat` first: rows hold whole old and new values.",
    "log": "Call this for the records themselves: what was written about a topic, broker or config, in order.",
    "blame": "Call this for when a value became what it is, and which record did it.",
    "when": "Call this for 'since when?' and 'how often?': the periods in which a row of a table fulfilled"
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
"""Command -> when a model should call it. A name that is not a command of this release is ignored."""

_FILES = ("FILE", "DIR", "DIRECTORY")
_NOT_OFFERED = ("watch", "interval", "ascii", "fail_if_any")
"""Options that are useful only at a terminal or in a script: endless answers, the drawing of plots, an exit code."""
_ROW_LIMITS = ("limit", "count")
"""Options that are replaced by the tool's own ``limit``, which also reports how many rows were left out."""
_NOT_HERE = re.compile(
    r"\bText\b|\btext shows\b|(?<!\w)-o\b|✗|\bplot\b|\bcolour\b|\bOther formats\b|existing path of|findings:$|^- "
)
"""Matches sentences of a description that do not apply to tools: about terminals, formats, files, and long lists."""
_SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z-])")

_POINT = (
    "A moment of the log's history: an offset (1234), a time (2026-01-31T12:00:00Z), so long before now (-15m, -2h,"
    " -1d), so long before the last record (end-15m), or now."
)
_CONDITION = (
    "A condition on fields: `offline > 0`, `name ~ '^orders'` (a regular expression), `3 in isr`, `rack == null`,"
    " `len(isr) < len(replicas)`, joined by and, or, not; text that is no plain word needs quotes"
)
_PATH = "A path of the metadata tree, such as /image/topics/byName/orders; * ? [] {} are globs, a backslash quotes one."


@runtime_checkable
class OnFields(Protocol):
    """A converter of an option's value that knows the fields of the rows, as that of ``--where``."""

    @property
    def fields(self) -> Iterable[Any]:
        """Each has ``name`` and ``doc``."""


def offered() -> list[Command]:
    """Return the commands that are offered as tools."""
    return [registry.get(name) for name in TOOLS if name in registry.names()]


def get(name: str) -> Command:
    """Return the command of a tool. Raises UsageError with a hint of similar names if the tool does not exist."""
    names = [command.name for command in offered()]
    if name not in names:
        raise UsageError(f"{name}: no such tool", hint=did_you_mean(name, names, f"tools: {', '.join(names)}"))
    return registry.get(name)


def is_offered(flag: Flag) -> bool:
    """Whether the caller of a tool may give this option of the command."""
    return flag.metavar not in _FILES and flag.dest not in (*_NOT_OFFERED, *_ROW_LIMITS)


def description(command: Command) -> str:
    """Return the description of a tool: summary, when to call it, and what applies outside a terminal."""
    sentences = [
        sentence
        for paragraph in command.description.split("\n\n")
        if (sentence := " ".join(s for s in _SENTENCE.split(paragraph) if not _NOT_HERE.search(s)))
    ]
    summary = command.summary.replace(", drawn", "")
    return "\n\n".join((f"{summary[0].upper()}{summary[1:]}. {TOOLS[command.name]}", *sentences))


def input_schema(command: Command, sources: Iterable[str]) -> JsonObject:
    """Return the JSON schema of a tool's arguments.

    Args:
        command: the command of the tool.
        sources: the names of the open sources; with more than one, the argument ``source`` is required.
    """
    properties: JsonObject = {}
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


def _of_argument(arg: Arg) -> JsonObject:
    about = f"{arg.help}. {_PATH}" if arg.kind == "path" else arg.help
    text = {"type": "string"}
    if arg.arity in "*+":
        return {"type": "array", "items": text, "description": about} | ({"minItems": 1} if arg.arity == "+" else {})
    return {**text, "description": about}


def _of_flag(flag: Flag) -> JsonObject:
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
    text: JsonObject = {"type": "string"}
    if flag.convert is count or flag.metavar == "N":
        text = {"type": "integer", "minimum": 0}
    elif flag.choices:
        text = {"type": "string", "enum": list(flag.choices)}
    described = {"description": ". ".join(about)}
    return {"type": "array", "items": text, **described} if takes_several(flag) else {**text, **described}


def takes_several(flag: Flag) -> bool:
    """Whether an option takes a list: it may be repeated, or its value is a comma-separated list of names."""
    return flag.repeat or (flag.metavar or "").endswith(",…")


def command_tokens(command: Command, arguments: Mapping[str, object]) -> list[str]:
    """Convert the arguments of a tool's call to the tokens of its command; ``source`` and ``limit`` are left out.

    Raises:
        UsageError: an argument is not offered, or its value is no text, number, boolean or list of these.
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
    # A command's own limit would hide how many rows there are, so it is set to the highest number.
    options |= {flag.dest: MOST_ROWS for flag in command.flags if flag.dest in _ROW_LIMITS and flag.default is not None}
    return [*option_words(command, options), "--", *_positional(command, arguments)]


def _positional(command: Command, arguments: Mapping[str, object]) -> list[str]:
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


def limit_of(arguments: Mapping[str, object]) -> int:
    """Return the most rows that a call asks for. Raises UsageError if ``limit`` is not a number of rows."""
    value = arguments.get(LIMIT)
    if value is None:
        return ROWS
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"limit: {value!r} is not a whole number from 1 to {MOST_ROWS}")
    return min(value, MOST_ROWS)
