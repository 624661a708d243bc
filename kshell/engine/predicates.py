"""Answers yes or no as exit codes: which end with 1, and when.

1 says no, and nothing else says 1: what could not be found out has another code (:data:`kshell.errors.EXIT_CODES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Flag
from kshell.engine.result import Result, Row, Rows
from kshell.errors import EXIT_FINDING, EXIT_OK, EXIT_SOURCE

if TYPE_CHECKING:
    from kshell.engine.session import Session

FAIL_IF_ANY = Flag(("--fail-if-any",), "exit code 1 when a row is left, 0 when none is: for alerts")


def code_of(verdicts: Iterable[bool | None]) -> int:
    """The exit code of several verdicts: 1 if one is no, else 3 if one is unknown (``None``), else 0."""
    answers = set(verdicts)
    return EXIT_FINDING if False in answers else EXIT_SOURCE if None in answers else EXIT_OK


def exit_code_of(result: Result, session: Session) -> int:
    """The exit code of an answer: the command's own, or that of the data that was loaded for it.

    Nobody can tell yes or no from a log without a record, so that no alert is silent about it.
    """
    if result.judges_data:
        return result.exit_code
    unknown = EXIT_SOURCE if result.asks_state and session.is_empty() else EXIT_OK
    return max(result.exit_code, session.exit_code(), unknown)


def answers_by_rows(result: Rows, *, some: int, none: int) -> None:
    """Make the result's exit code hang on whether its rows, once they are read, are any: ``some``, or ``none``.

    A code above 1 that the result has by then (damage) stays.
    """
    result.rows = _Answering(result, result.rows, some, none)


def answers_unknown_without_rows(result: Rows) -> None:
    """Where it could not be told of all rows whether they are to be there, none is no good news: 3, not 0."""
    assert isinstance(result.rows, _Answering)
    result.rows.none = EXIT_SOURCE


class _Answering:
    """Rows that set the exit code of the result they belong to, each time they are read."""

    def __init__(self, result: Rows, rows: Iterable[Row], some: int, none: int) -> None:
        self._result = result
        self._rows = rows
        self._some = some
        self.none = none
        self._has_row = False

    def __iter__(self) -> Iterator[Row]:
        self._set(self.none)
        for row in self._rows:
            self._has_row = True
            self._set(self._some)
            yield row

    def settle(self) -> None:
        """Look for a row, if none has been read so far."""
        if not self._has_row:
            next(iter(self), None)

    def _set(self, code: int) -> None:
        if self._result.exit_code in (EXIT_OK, EXIT_FINDING, self.none):
            self._result.exit_code = code


def settle(result: Result) -> None:
    """Find out the exit code of an answer whose rows are no longer written: nobody reads them any more."""
    if isinstance(result, Rows) and isinstance(result.rows, _Answering):
        result.rows.settle()


def meaning_of_no(command: Command) -> str:
    """When the command ends with 1; empty for one that never does."""
    alone = command.says_no
    if FAIL_IF_ANY not in command.flags:
        return alone
    with_rows = "a row is left with --fail-if-any"
    return f"{alone}; or {with_rows}" if alone else with_rows
