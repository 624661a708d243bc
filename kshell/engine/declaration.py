"""How a command declares itself. Parser, completion, help, man, the reference and the magics derive from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Result

if TYPE_CHECKING:
    from kshell.engine.session import Session

Complete = Callable[["Session", str], Iterable[str]]
"""(session, what was typed of the word) -> whole words that it may become."""


CONDITION = "EXPR"
"""The ``metavar`` of an option that takes a condition."""


class Flag(NamedTuple):
    """An option. Without ``metavar`` it is a switch; with ``convert`` its word becomes a typed value.

    ``convert`` raises ValueError with what the word should have been ("a whole number"), or UsageError. With
    ``dashed``, the value may look like an option (``--as-of -1h``). Of an option that is given more than once the last
    counts, of one that may ``repeat`` all do; one that means something only ``once`` is refused. ``after`` completes a
    value whose candidates depend on the words before it: (those words, what was typed of the value). Usage shows one
    that is ``required`` without brackets; the command itself refuses.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    convert: Callable[[str], Any] = str
    default: Any = None
    choices: Collection[str] = ()
    complete: Complete | None = None
    repeat: bool = False
    dashed: bool = False
    once: bool = False
    after: Callable[[list[str], str], Iterable[str]] | None = None
    required: bool = False

    @property
    def dest(self) -> str:
        """The attribute on the parsed arguments: the first long name, or the first name."""
        name = next((n for n in self.names if n.startswith("--")), self.names[0])
        return name.lstrip("-").replace("-", "_") if not name.lstrip("-").isdigit() else f"n{name.lstrip('-')}"


class Arg(NamedTuple):
    """A positional argument. ``kind``: ``path`` (globs are expanded, paths are completed), ``text``, ``command`` or
    ``line`` (a command with its arguments and options; the last argument of all).

    ``arity``: ``1``, ``?`` (optional), ``*`` (any number) or ``+`` (at least one). ``after`` completes a word whose
    candidates depend on the words before it.
    """

    name: str
    help: str
    kind: str = "text"
    arity: str = "1"
    complete: Complete | None = None
    after: Callable[[list[str]], Iterable[str]] | None = None


class Example(NamedTuple):
    """A line that runs on the sample, what it is for, and the exit code that it ends with there."""

    line: str
    purpose: str
    exit_code: int = 0


class Task(StrEnum):
    """What somebody wants who looks for a command; `help` lists commands by it, in this order."""

    PROBLEMS = "What is wrong, and what to do next"
    CLUSTER = "Topics, partitions, brokers, configs"
    ACCESS = "Who may do what, and how much"
    PAST = "What changed, and when"
    TREE = "The metadata as a file tree"
    LOG = "The log, its files and copies"
    PROGRAMS = "For other programs"
    SHELL = "The shell itself"


class Command(NamedTuple):
    """A command. ``run`` gets the session and the parsed arguments (attributes by name) and returns a result.

    ``says_no`` is for predicates: when the exit code is 1. A command without it never ends with 1. ``meant``: what a
    word too many is taken to be meant for, in the hint: a column to compare with it (``topic``), an option,
    or its argument, which was to be quoted. ``asks_state``: its yes or no is about the state that the log holds.
    """

    name: str
    summary: str
    run: Callable[[Session, Any], Result]
    args: tuple[Arg, ...] = ()
    flags: tuple[Flag, ...] = ()
    examples: tuple[Example, ...] = ()
    description: str = ""
    needs_source: bool = True
    aliases: tuple[str, ...] = ()
    says_no: str = ""
    asks_state: bool = False
    task: Task = Task.SHELL
    meant: str = ""

    @property
    def takes_line(self) -> bool:
        """Whether its last argument is another command's line."""
        return bool(self.args) and self.args[-1].kind == "line"
