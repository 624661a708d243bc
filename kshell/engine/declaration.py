"""The classes with which the module of each command declares its name, arguments and options (:class:`Command`).

Parser, completion, help, man, the reference and the magics of notebooks derive from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Result

if TYPE_CHECKING:
    from kshell.engine.session import Session

Complete = Callable[["Session", str], Iterable[str]]
"""Completion of a word: (session, the part of the word that is typed) -> candidates for the whole word."""


CONDITION = "EXPR"
"""The ``metavar`` of an option that takes a condition."""


class Flag(NamedTuple):
    """An option of a command; a switch if it has no ``metavar``. Of several values the last one counts.

    ``convert`` converts the typed value; it raises ValueError whose text says what is expected ("a whole number"), or
    UsageError. A ``dashed`` value may look like an option (``--as-of -1h``). With ``repeat`` the value is a list of all
    that are given; with ``once`` a second one is an error. ``after`` completes a value that depends on the words before
    it: (these words, the typed part) -> candidates. ``required`` only changes the usage: the command itself refuses.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    convert: Callable[[str], object] = str
    default: object = None
    choices: Collection[str] = ()
    complete: Complete | None = None
    repeat: bool = False
    dashed: bool = False
    once: bool = False
    after: Callable[[list[str], str], Iterable[str]] | None = None
    required: bool = False

    @property
    def dest(self) -> str:
        """The attribute of the parsed arguments that gets the value: the first long name, or the first name."""
        name = next((n for n in self.names if n.startswith("--")), self.names[0])
        return name.lstrip("-").replace("-", "_") if not name.lstrip("-").isdigit() else f"n{name.lstrip('-')}"


class Arg(NamedTuple):
    """A positional argument of a command.

    ``kind``: ``path`` (may hold globs, and is completed), ``text``, ``text or path`` (of one node, from ``/`` on),
    ``command`` (the name of one) or ``line`` (another command with its arguments; only as the last argument).
    ``arity``: ``1``, ``?`` (optional), ``*`` (any number) or ``+`` (at least one). ``after`` completes a word that
    depends on the words before it.
    """

    name: str
    help: str
    kind: str = "text"
    arity: str = "1"
    complete: Complete | None = None
    after: Callable[[list[str]], Iterable[str]] | None = None


class Arguments(SimpleNamespace):
    """The parsed arguments of a line: an attribute for every argument and option of the command, given or not.

    A command annotates its own attributes in a subclass and names that in its declaration, so that mypy can check the
    command's code. The attributes here are the options of every command.
    """

    output: str | None
    as_of: str | None
    show_secrets: bool
    color: str | None
    no_header: bool
    tz: str | None
    timeout: float | None
    help: bool


class Example(NamedTuple):
    """An example line of a command, with its purpose and the exit code that it has on kshell's sample data."""

    line: str
    purpose: str
    exit_code: int = 0


class Task(StrEnum):
    """The question or subject under which `help` lists a command, in this order."""

    PROBLEMS = "What is wrong, and what to do next"
    CLUSTER = "Topics, partitions, brokers, configs"
    ACCESS = "Who may do what, and how much"
    PAST = "What changed, and when"
    TREE = "The metadata as a file tree"
    LOG = "The log, its files and copies"
    PROGRAMS = "For other programs"
    SHELL = "The shell itself"


class Command(NamedTuple):
    """The declaration of a command. ``run`` gets the session and the parsed ``arguments``, and returns a result.

    ``exit_1_when`` is for predicates, and says when the exit code is 1; a command without it never ends with 1.
    ``needs_records``: its yes or no is about the state of the cluster, which an empty log cannot answer.
    ``extra_words_for``: what a hint assumes that an extra word was meant for: a column to compare with it (``topic``),
    an option, or part of the argument before it.
    """

    name: str
    summary: str
    run: Callable[[Session, Any], Result]
    args: tuple[Arg, ...] = ()
    flags: tuple[Flag, ...] = ()
    examples: tuple[Example, ...] = ()
    description: str = ""
    arguments: type[Arguments] = Arguments
    needs_source: bool = True
    aliases: tuple[str, ...] = ()
    exit_1_when: str = ""
    needs_records: bool = False
    task: Task = Task.SHELL
    extra_words_for: str = ""

    @property
    def takes_line(self) -> bool:
        """Whether its last argument is another command's line."""
        return bool(self.args) and self.args[-1].kind == "line"
