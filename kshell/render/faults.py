"""Report unexpected exceptions, that is, bugs of kshell, without their texts, which may hold secrets of the data."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator

from kshell import escape
from kshell.errors import EXIT_INTERRUPTED, CommandError


def own_fault(error: BaseException) -> CommandError:
    """Convert an unexpected exception to an error with its type and place only: its text may hold values of records."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return CommandError(
        f"this is a fault of kshell, not of the data: {type(error).__name__} at {where}", hint="please report it"
    )


def tell_own_fault(program: str, error: BaseException, *, verbose: bool) -> int:
    """Report an unexpected exception on standard error, with its traceback if ``verbose``; return the exit code."""
    if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps a Ctrl-C that interrupts a class statement
        sys.stderr.write(f"{program}: interrupted\n")
        return EXIT_INTERRUPTED
    fault = own_fault(error)
    lines = [f"{program}: {fault.message}"]
    if verbose:
        lines += map(escape.terminal, "".join(_without_texts(error)).splitlines())
    else:
        lines.append("-v shows where it came from; please report it")
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return fault.exit_code


def _without_texts(error: BaseException) -> Iterator[str]:
    """Format a traceback, the first cause first, with the types of the exceptions but without their texts."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _without_texts(cause)
        yield "which led to:\n"
    yield from traceback.format_list(traceback.extract_tb(error.__traceback__))
    yield f"{type(error).__name__}\n"
