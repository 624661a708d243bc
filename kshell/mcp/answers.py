"""Convert the result of a command to an answer for a language model: the values of ``-o json``, within limits, escaped.

The answer always says what was left out. Names in it are whatever clients of Kafka once sent, so they stay inside JSON
strings, and characters that could mislead a reader (line breaks, bidirectional controls, characters without a width)
are written as escapes, as in ``-o text``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kshell.engine import plain
from kshell.engine.declaration import Command
from kshell.engine.predicates import exit_code_of, meaning_of_no
from kshell.engine.result import Branch, Report, Result, Rows, Tree
from kshell.engine.session import Session
from kshell.engine.tools import MOST_ROWS
from kshell.errors import EXIT_CODES, EXIT_FINDING, EXIT_OK, KshellError, UsageError
from kshell.escape import terminal
from kshell.json_text import JsonObject, to_json
from kshell.render.limits import cut
from kshell.tables.query import MOST_CONFINED
from kshell.tree.image import iso

LARGEST = 1_000_000
"""The most characters of an answer, as JSON."""
LONGEST = 20_000
"""The most characters of one text in an answer."""
MOST_NOTES = 20
MOST_COUNTED = MOST_CONFINED - MOST_ROWS
_COUNTING = 2.0
"""Seconds that counting the left-out rows may take."""

Answer = dict[str, Any]

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "result": {"description": "what the command's -o json prints: a list of rows, an object, or a value"},
        "source": {"type": "string", "description": "the cluster that was asked"},
        "state": {
            "type": "object",
            "description": "the last metadata record of the state that was asked: offset, and time in UTC",
        },
        "leftOut": {
            "type": "array",
            "items": {"type": "string"},
            "description": "what a limit left out; absent when the answer is complete",
        },
        "notes": {"type": "array", "items": {"type": "string"}, "description": "what to know about the data"},
        "exitCode": {"type": "integer", "description": "0, or what meaning says"},
        "meaning": {"type": "string", "description": "what an exit code other than 0 means here"},
    },
    "required": ["result", "source", "exitCode"],
}
"""The JSON schema of every tool's structured content."""


def answer(command: Command, session: Session, result: Result, limit: int) -> Answer:
    """Convert a command's result to an answer with at most ``limit`` rows, or nodes of a tree; reads the rows.

    Raises:
        UsageError: the answer is too large in spite of the limits.
        KshellError: reading the rows failed.
    """
    left_out: list[str] = []
    value = _limited(result, limit, left_out)
    code = exit_code_of(result, session)
    reply: Answer = {"result": value, "source": session.source.name, "exitCode": code}
    if code != EXIT_OK:
        reply["meaning"] = (
            (command.exit_1_when or meaning_of_no(command)) if code == EXIT_FINDING else dict(EXIT_CODES)[code]
        )
    if (state := _state(session)) is not None:
        reply["state"] = state
    if left_out:
        reply["leftOut"] = left_out
    notes = list(dict.fromkeys((*session.problems(), *session.notes())))
    if _is_damaged(session):
        session.renew()  # else the next answer would be about this state, too, although it reads records alone
    if notes:
        reply["notes"] = notes[:MOST_NOTES]
        if len(notes) > MOST_NOTES:
            reply["notes"].append(f"and {len(notes) - MOST_NOTES} more notes")
    # Through JSON text, so that all mappings, styled texts and special numbers become plain values of JSON.
    reply = json.loads(to_json(reply))
    if long_texts := _long_texts(reply["result"]):
        ends = "the end of 1 text" if long_texts == 1 else f"the ends of {long_texts} texts"
        reply.setdefault("leftOut", []).append(f"{ends}: {LONGEST:,} characters are the most")
    reply = escaped(reply)
    size = len(to_json(reply))
    if size > LARGEST:
        raise UsageError(
            f"{command.name}: the answer has {size:,} characters, and {LARGEST:,} is the most",
            hint="ask for less: a path further down, a condition, fewer columns, a smaller limit",
        )
    return reply


def _state(session: Session) -> JsonObject | None:
    """Return what the answer says of the state; ``None`` without a log, and where only records around damage were read.

    Such an answer is of no one state, and none of its notes is about one.
    """
    if not session.source.has_log:
        return None
    was_loaded = session.is_loaded
    try:
        provenance = session.loaded.image.provenance
    except KshellError:
        return None
    if not was_loaded and _is_damaged(session):
        session.renew()
        return None
    return {"offset": provenance.offset, "time": iso(provenance.timestamp)}


def _is_damaged(session: Session) -> bool:
    return session.is_loaded and bool(session.loaded.damage)


def _long_texts(value: object) -> int:
    """Return how many texts in a plain value are longer than ``LONGEST``."""
    if isinstance(value, str):
        return len(value) > LONGEST
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_long_texts, below))


def failure(error: KshellError) -> Answer:
    """Convert an error to an answer: its type, message, hint and exit code."""
    fields = {"error": type(error).__name__, "message": error.message, "hint": error.hint, "exitCode": error.exit_code}
    return escaped({name: value for name, value in fields.items() if value is not None})  # type: ignore[no-any-return]


def escaped(value: object) -> Any:
    """Return a copy of a plain value with all texts and keys escaped, and cut if they are longer than ``LONGEST``."""
    if isinstance(value, str):
        left_out = len(value) - LONGEST
        return terminal(value if left_out <= 0 else f"{value[:LONGEST]}… ({left_out} more characters)")
    if isinstance(value, list):
        return [escaped(item) for item in value]
    if isinstance(value, dict):
        escaped_items: JsonObject = {}
        for key, item in value.items():
            name = spelled = escaped(key)
            number = 2
            while name in escaped_items:  # two keys may look the same after escaping; neither may hide the other
                name, number = f"{spelled} ({number})", number + 1
            escaped_items[name] = escaped(item)
        return escaped_items
    return value


def _limited(result: Result, limit: int, left_out: list[str]) -> object:
    if isinstance(result, Rows):
        return _rows(result, limit, left_out)
    if isinstance(result, Tree):
        roots, _ = cut(plain.trees(result.root), limit)
        if (missing := _leaves([result.root]) - _leaves(roots)) > 0:
            left_out.append(
                f"{missing} leaves of the tree; '{plain.LEFT_OUT}' says where and how many children are missing"
            )
        is_single_root = len(roots) == 1 and roots[0].name == result.root.name
        return plain.tree(roots[0] if is_single_root else result.root._replace(children=roots))
    if isinstance(result, Report):
        bodies: JsonObject = {}
        for section in result.sections:
            rows = section.body
            body = _rows(rows, limit, left_out, section.key) if isinstance(rows, Rows) else dict(rows)
            bodies |= {section.key: body} if section.key or isinstance(body, list) else body
        return bodies
    value = plain.value(result)
    if isinstance(value, list) and len(value) > limit:
        left_out.append(f"{len(value) - limit} of {len(value)} elements")
        return value[:limit]
    return value


def _leaves(branches: Iterable[Branch]) -> int:
    return sum(1 if branch.children is None else _leaves(branch.children) for branch in branches)


def _rows(rows: Rows, limit: int, left_out: list[str], section: str = "") -> list[object]:
    """Return as many rows as the limits allow; count the further ones, for two seconds at most, into ``left_out``."""
    size = 0

    def fits(item: object) -> bool:
        nonlocal size
        size += len(to_json(escaped(json.loads(to_json(item)))))  # as in the answer: long texts are cut there
        return size <= LARGEST // 2

    taken, number, is_counted = plain.first_rows(
        plain.objects(rows), limit, fits=fits, most_counted=MOST_COUNTED, seconds=_COUNTING
    )
    if number:
        counted = f"{number}{'' if is_counted else ' or more'} rows{f' of {section}' if section else ''}"
        if len(taken) < limit:
            how = "the answer would be too large; fewer columns make room"
        else:
            how = "a condition chooses others" if limit >= MOST_ROWS else f"`limit` asks for more, {MOST_ROWS} at most"
        left_out.append(f"{counted}: {how}")
    return taken


def text_of(answer: Answer) -> str:
    """Return an answer as JSON on one line."""
    return to_json(answer)
