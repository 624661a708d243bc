"""Exit codes of commands that answer yes or no: predicates, and tables with ``--fail-if-any``.

Exit code 1 always means no (or: a row is left). If the answer could not be found out, the code is another one
(:data:`kshell.errors.EXIT_CODES`), so that a script can distinguish the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Flag
from kshell.engine.result import Result, Row, Rows
from kshell.errors import EXIT_FINDING, EXIT_OK, EXIT_SOURCE, UsageError

if TYPE_CHECKING:
    from kshell.engine.session import Session

FAIL_IF_ANY = Flag(("--fail-if-any",), "exit code 1 when the answer has a row, 0 when it has none: for alerts")


def code_of_verdicts(verdicts: Iterable[bool | None]) -> int:
    """Return the exit code of several verdicts: 1 if one is ``False``, else 3 if one is unknown (``None``), else 0."""
    answers = set(verdicts)
    return EXIT_FINDING if False in answers else EXIT_SOURCE if None in answers else EXIT_OK


def exit_code_of(result: Result, session: Session) -> int:
    """Return the exit code of an answer: the higher one of the command's own and that of damage in the loaded data.

    A question about the state of the cluster has at least code 3 if the log is empty, so that no alert stays silent.
    """
    if result.overrides_exit_code:
        return result.exit_code
    unknown = EXIT_SOURCE if result.needs_records and session.is_empty() else EXIT_OK
    return max(result.exit_code, session.exit_code(), unknown)


def answers_by_rows(result: Rows, *, some: int, none: int) -> None:
    """Set the result's exit code by its rows, when they are read: ``some`` if there is a row, else ``none``.

    If the result has another code above 1 by then (damage), it stays. Rows for users that the result has already count
    as well, because text output reads only these.
    """
    for answer in (result, result.readable):
        if isinstance(answer, Rows):
            answer.rows = _Answering(result, answer.rows, some, none)


def fail_if_any(result: Rows, limit: int | None = None, option: str = "--limit") -> None:
    """Carry out ``--fail-if-any``: exit code 1 if a row is left, else 0. ``limit`` is the value of ``option``.

    Raises:
        UsageError: the limit is 0, which leaves no row to decide by.
    """
    if limit == 0:
        hint = f"without {option}; `> /dev/null` keeps it quiet"
        raise UsageError(f"{option} 0 leaves no row for --fail-if-any to see", hint=hint)
    answers_by_rows(result, some=EXIT_FINDING, none=EXIT_OK)


def answers_unknown_without_rows(result: Rows) -> None:
    """Make the exit code 3, not 0, if no row is left, because it is unknown for some rows whether they belong there.

    Call it after :func:`answers_by_rows`.
    """
    assert isinstance(result.rows, _Answering)
    result.rows.end_without_rows(EXIT_SOURCE)


class _Answering:
    """Rows that set the exit code of their result while they are read."""

    def __init__(self, result: Rows, rows: Iterable[Row], some: int, none: int) -> None:
        self._result = result
        self._rows = rows
        self._some = some
        self._none = none
        self._is_read = False
        self._has_row = False

    def __iter__(self) -> Iterator[Row]:
        self._is_read = True
        self._set(self._none)
        for row in self._rows:
            self._has_row = True
            self._set(self._some)
            yield row

    def determine_exit_code(self) -> None:
        """Read the first row if none was read yet, so that the exit code is known."""
        if not self._has_row:
            next(iter(self), None)

    def end_without_rows(self, code: int) -> None:
        """Set the exit code without a row, also if the rows were read already."""
        self._none = code
        if self._is_read and not self._has_row:
            self._set(code)

    def _set(self, code: int) -> None:
        if self._result.exit_code in (EXIT_OK, EXIT_FINDING, self._none):
            self._result.exit_code = code


def determine_exit_code(result: Result) -> None:
    """Determine the exit code of an answer by rows after its output was closed (``| head``) before they were read."""
    if isinstance(result, Rows) and isinstance(result.rows, _Answering):
        result.rows.determine_exit_code()


def meaning_of_no(command: Command) -> str:
    """Return when the command ends with exit code 1, as a phrase; empty if it never does."""
    alone = command.exit_1_when
    if FAIL_IF_ANY not in command.flags:
        return alone
    with_rows = "the answer has a row, with --fail-if-any"
    return f"{alone}; or {with_rows}" if alone else with_rows
