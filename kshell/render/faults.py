"""What nobody foresaw, told without what it may hold of the data."""

from __future__ import annotations

import os
import sys
import traceback

from kshell import escape
from kshell.errors import EXIT_INTERRUPTED, CommandError


def own_fault(error: BaseException) -> CommandError:
    """What nobody foresaw, as an error. The exception's text may hold values of records: its place alone is told."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return CommandError(
        f"this is a fault of kshell, not of the data: {type(error).__name__} at {where}", hint="please report it"
    )


def tell_own_fault(program: str, error: BaseException, *, verbose: bool) -> int:
    """Tells it on standard error, with all that Python knows where ``verbose``; returns the exit code."""
    if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps what interrupts the making of a class
        sys.stderr.write(f"{program}: interrupted\n")
        return EXIT_INTERRUPTED
    fault = own_fault(error)
    lines = [f"{program}: {fault.message}"]
    if verbose:
        lines += map(escape.terminal, "".join(traceback.format_exception(error)).splitlines())
    else:
        lines.append("-v shows where it came from; please report it")
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return fault.exit_code
