"""The command ``kshell-pipeline``: parse options, run one verb (:mod:`kshell.spark.verbs`), print its answer.

Exit codes are those of the shell. Standard output has only the answer; all else goes to standard error.
"""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import NoReturn

from kshell.engine.arguments import parse_options
from kshell.engine.declaration import Flag
from kshell.engine.execution import deadline
from kshell.engine.result import Result, Text
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, KshellError
from kshell.lossy_stream import prepare_streams
from kshell.render.answer import terminal_width
from kshell.render.color import use_color
from kshell.render.output import OutputClosed, describe_error, emit
from kshell.spark import verbs
from kshell.spark.interrupts import EXIT_TERMINATED, Terminated, terminable
from kshell.spark.session import NAME
from kshell.version import __version__

_OPTIONS = (
    *verbs.ANSWER_FLAGS,
    Flag(("-v", "--verbose"), "show where a fault of kshell comes from"),
    Flag(("--version",), "print the version"),
    Flag(("-h", "--help"), "print this help"),
)


def entry() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    logging.disable(logging.CRITICAL)  # py4j logs stack traces at an interrupt; errors are raised as well
    prepare_streams()
    with terminable():
        sys.exit(main())


def main(argv: list[str] | None = None) -> int:
    """Run one verb; return the exit code: 0, 1, 2, 3, 4, 130 after Ctrl-C, or 143 after SIGTERM."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _main(arguments)
    except KshellError as error:
        _say(describe_error(error, color=use_color("auto", sys.stderr)))
        return error.exit_code
    except KeyboardInterrupt as error:
        is_terminated = isinstance(error, Terminated)
        _say("terminated" if is_terminated else "interrupted")
        return EXIT_TERMINATED if is_terminated else EXIT_INTERRUPTED
    except OutputClosed:
        return EXIT_OK
    except Exception as error:
        from kshell.render.faults import tell_own_fault  # late: needed only for a bug in kshell
        from kshell.spark.failures import of_task

        if (task_error := of_task(error)) is not None:
            _say(describe_error(task_error, color=use_color("auto", sys.stderr)))
            return task_error.exit_code
        return tell_own_fault(NAME, error, verbose="-v" in arguments or "--verbose" in arguments)


def _main(arguments: list[str]) -> int:
    options, rest = parse_options(NAME, _OPTIONS, arguments)
    if options.version:
        return emit(Text(f"{NAME} {__version__}"), "text")
    if options.help or not rest:
        rest = ["help"]
    verb = verbs.get(rest[0])
    args = verb.parsed(rest[1:])
    for flag in verbs.ANSWER_FLAGS:  # a flag before the verb counts unless it is given after the verb, too
        if not getattr(args, flag.dest):
            setattr(args, flag.dest, getattr(options, flag.dest))
    if args.help:
        args.verb, verb = verb.name, verbs.get("help")
    with deadline(args.timeout):
        result = verb.run(args)
    return max(_show(result, args), result.exit_code)


def _show(result: Result, args: SimpleNamespace) -> int:
    return emit(
        result,
        args.output or "text",
        header=not args.no_header,
        width=terminal_width(sys.stdout),
        color=use_color(args.color or "auto", sys.stdout),
    )


def _say(message: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"{NAME}: {message}\n")


if __name__ == "__main__":
    entry()
