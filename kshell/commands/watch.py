"""``watch``: run a command again and again, until a row of its answer fulfils ``--until``.

A run starts when the source changes or the interval is over, and only when the front end asks for the next frame.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kshell.engine.arguments import count, seconds
from kshell.engine.declaration import CONDITION, Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.execution import Call, prepare_words
from kshell.engine.language import quote
from kshell.engine.result import Branch, Frames, LineResult, Many, Nothing, Report, Result, Row, Rows, Tree, Value
from kshell.engine.session import Session
from kshell.errors import EXIT_FINDING, EXIT_OK, DeadlineError, KshellError, SourceError, UsageError
from kshell.sources.changes import ChangeDetector
from kshell.tables.declaration import where_type
from kshell.tables.where import Predicate, compile_where
from kshell.tables.where_kinds import Kind, fields_of, kind_of

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

_LOOK = 0.1
"""Seconds between two checks whether the source has changed."""
_UNWATCHED = ("alias", "cd", "clear", "exit", "quit", "reload", "set", "source", "unalias", "watch")


class WatchArguments(Arguments):
    """Arguments and options of ``watch``."""

    command: list[str]
    interval: float
    until: Predicate | None
    times: int | None


def run(session: Session, args: WatchArguments) -> Result:
    """Check the command line now, and return frames, each of which runs it once when iterated. Raises UsageError."""
    call = prepare_words(session, args.command)
    if call.command.name in _UNWATCHED:
        raise UsageError(f"watch: {call.command.name} gives no answer that could change")
    if getattr(call.arguments, "action", None) is not None:
        raise UsageError(f"watch: {call.command.name} {call.arguments.action} changes something: run it once")
    title = " ".join(quote(token) if " " in token or not token else str(token) for token in args.command)
    frames = Frames((), title, args.interval, has_end=args.times is not None or args.until is not None)
    frames.parts = _frames(session, args, frames)
    return frames


def _frames(session: Session, args: WatchArguments, frames: Frames) -> Iterator[LineResult]:
    source, ends, number = ChangeDetector(session), _Deadline(), 0
    while True:
        started = time.monotonic()
        part = _run(session, args.command)
        number += 1
        if part.error is not None and (isinstance(part.error, UsageError) or _is_first_contact(part.error, number)):
            raise part.error
        fulfilled = args.until is not None and part.result is not None and _is_fulfilled(args.until, part.result)
        yield part
        if fulfilled:
            frames.exit_code = EXIT_OK
            return
        if number == args.times:
            frames.exit_code = _exit_code(part) if args.until is None else EXIT_FINDING
            return
        ends.limit = part.call.shape.timeout if part.call is not None else ends.limit
        failed = _wait(source, ends, args.interval, spent=time.monotonic() - started)
        if failed is not None:
            yield LineResult(part.call, None, failed)


def _is_first_contact(error: KshellError, number: int) -> bool:
    """Whether an error of the source comes at the first run. Then it ends the watch; later ones may be temporary."""
    return number == 1 and isinstance(error, SourceError)


def _run(session: Session, tokens: list[str]) -> LineResult:
    """Run the command once, and return any error but DeadlineError. It is parsed again: ``--as-of -1h`` moves on."""
    call: Call | None = None
    try:
        call = prepare_words(session, tokens)
        return LineResult(call, _materialize(call, call.run()))
    except DeadlineError:
        raise
    except KshellError as error:
        return LineResult(call, None, error)


def _materialize(call: Call, result: Result) -> Result:
    """Read all rows of a result, so that errors are raised here; UsageError for one that cannot change."""
    if isinstance(result, Many | Nothing) or (isinstance(result, Rows) and result.live):
        raise UsageError(f"watch: {call.command.name} gives no answer that could change")
    if getattr(call.arguments, "action", None) is not None:
        raise UsageError(f"watch: {call.command.name} {call.arguments.action} changes something: run it once")
    bodies = [section.body for section in result.sections] if isinstance(result, Report) else [result]
    for body in bodies:
        if isinstance(body, Rows):
            body.rows = list(body)
    return result


def _exit_code(part: LineResult) -> int:
    if part.error is not None:
        return part.error.exit_code
    return part.result.exit_code if part.result is not None else EXIT_OK


# --- when to run again -----------------------------------------------------------------------------------------------


class _Deadline:
    """The deadline by ``--timeout`` of the watched command, for the whole watch; ``limit`` is in seconds."""

    def __init__(self) -> None:
        self.limit: float | None = None
        self._started = time.monotonic()

    def check(self) -> None:
        """Raise DeadlineError if the deadline has passed."""
        if self.limit is not None and time.monotonic() - self._started >= self.limit:
            raise DeadlineError(f"gave up after {self.limit:g} s", hint="--timeout sets how long a command may take")


def _wait(source: ChangeDetector, ends: _Deadline, every: float, *, spent: float) -> KshellError | None:
    """Wait until the source has changed, or ``every`` seconds are over. Raises DeadlineError.

    A change counts only after ``spent`` seconds, the time of the last run, so that a slow command runs half the time.

    Returns:
        The error of the last check of the source, if it failed; else ``None``.
    """
    now = time.monotonic()
    due, soonest = now + every, now + min(spent, every)
    failed: KshellError | None = None
    while now < due:
        ends.check()
        time.sleep(min(_LOOK, due - now))
        now = time.monotonic()
        if now < soonest:
            continue
        try:
            failed = None
            if source.changed():
                return None
        except DeadlineError:
            raise
        except KshellError as error:
            failed = error
    return failed


# --- the condition of --until ----------------------------------------------------------------------------------------


def _is_fulfilled(until: Predicate, result: Result) -> bool:
    """Whether any row of an answer fulfils the condition. Raises UsageError if the condition does not fit the rows."""
    rows, names = _objects(result)
    kinds = fields_of(rows, names) | (_declared(result) if isinstance(result, Rows) else {})
    return any(map(compile_where(until.text, kinds), rows))


def _declared(rows: Rows) -> dict[str, Kind]:
    """The kinds of columns that declare their possible values, so that waiting for any other value is an error."""
    kinds = {column.name: kind_of(where_type(column.type)) for column in rows.columns if column.type is not None}
    return {name: kind for name, kind in kinds.items() if (kind.of or kind).values is not None}


def _objects(result: Result) -> tuple[list[Row], list[str]]:
    """(the answer as objects, as ``-o json`` has them; the names of fields that they have even without rows)."""
    if isinstance(result, Rows):
        names = [column.name for column in result.columns] + ([result.group] if result.group else [])
        return [{name: row.get(name) for name in names} for row in result], names
    if isinstance(result, Value):
        return [result.value if isinstance(result.value, Mapping) else {"value": result.value}], []
    if isinstance(result, Tree):
        below = _nested(result.root)
        return [below if isinstance(below, Mapping) else {"value": below}], []
    if isinstance(result, Report):
        return [_report(result)], []
    return [{"text": getattr(result, "text", None)}], []


def _nested(branch: Branch) -> object:
    if branch.children is None:
        return branch.value
    return {child.name: _nested(child) for child in branch.children}


def _report(report: Report) -> JsonObject:
    out: JsonObject = {}
    for section in report.sections:
        body = _objects(section.body)[0] if isinstance(section.body, Rows) else dict(section.body)
        if section.key or isinstance(body, list):
            out[section.key] = body
        else:
            out |= body
    return out


def _times(text: str) -> int:
    """Parse the value of ``--times``, a whole number of 1 or more."""
    number = count(text)
    if not number:
        raise ValueError("a number of 1 or more")
    return number


COMMAND = Command(
    name="watch",
    task=Task.PAST,
    summary="run a command again and again, and show what changes",
    run=run,
    arguments=WatchArguments,
    args=(Arg("command", "the command, with its arguments and options", kind="line", arity="+"),),
    flags=(
        Flag(
            ("-n", "--interval"),
            "run at least once in this many seconds, 2 when absent; and whenever the source changes",
            metavar="SECONDS",
            convert=lambda text: max(seconds(text), _LOOK),
            default=2.0,
        ),
        Flag(
            ("--until",),
            "end, with exit code 0, when a row of the answer fulfils the condition",
            metavar=CONDITION,
            convert=compile_where,
        ),
        Flag(("--times",), "end after so many runs; with --until, exit code 1 then", metavar="N", convert=_times),
    ),
    examples=(
        Example("watch --times 1 ls /image/topics/byName -o wide", "the topics, as they come and go"),
        Example("watch --until 'len(isr) >= 2' cat /image/topics/byName/orders/0", "wait for two replicas in sync"),
        Example(
            "watch --until \"path ~ '/refunds$'\" --times 1 find /image/topics/byName -maxdepth 1",
            "a topic that is not there yet",
            1,
        ),
        Example("watch --times 1 -n 10 ls /image/cluster/brokers -o jsonl >> brokers.jsonl", "each change, to a file"),
    ),
    description=(
        "Everything after the command's name is the command's; the options of watch come before it. At a terminal the"
        " newest answer takes the place of the one before, with what changed in reverse video, and Ctrl-C ends it"
        " (exit code 130). Anywhere else each answer that differs from the one before is printed after it. An error of"
        " the command is shown like an answer, and the watch goes on; --timeout ends it (exit code 3).\n\n"
        "The condition of --until sees the rows of the answer; an answer that is no list of rows is one object, and a"
        " value that is neither is the field `value`."
    ),
    needs_source=True,
    exit_1_when="with --until: no row fulfilled the condition in as many runs as --times allows; "
    "without: the last run's",
)
