"""The verbs (subcommands) of ``kshell-pipeline``. Each module here declares one as ``VERB``; there is no other list."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, NoReturn

from kshell.discovery import module_names
from kshell.engine.arguments import SHAPING, parse
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag
from kshell.engine.result import Result
from kshell.errors import UsageError, did_you_mean

_ANSWERS = ("output", "color", "no_header", "timeout")
"""Those of the shell's options for the format of answers that every verb has as well."""
ANSWER_FLAGS = tuple(flag for flag in SHAPING if flag.dest in _ANSWERS)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ValueError("spark.NAME=VALUE")
    return name, value


SPARK_FLAGS = (
    Flag(
        ("--master",), "where Spark runs: local[2], spark://…, yarn, k8s://…, sc://… (default: all local cores)", "URL"
    ),
    Flag(("--conf",), "a setting of Spark", "NAME=VALUE", convert=_setting, repeat=True),
    Flag(
        ("--spark-log",),
        "the level of Spark's log here: off, error, warn, info, debug (default: error)",
        "LEVEL",
        default="error",
    ),
)
"""Options of every verb that starts a session."""


class SparkArguments(Arguments):
    """The parsed values of :data:`SPARK_FLAGS`."""

    master: str | None
    conf: list[tuple[str, str]] | None
    spark_log: str


class Verb(NamedTuple):
    """The declaration of a verb. ``run`` gets the parsed command line (``arguments``) and returns a result to print."""

    name: str
    summary: str
    run: Callable[[Any], Result]
    args: tuple[Arg, ...] = ()
    flags: tuple[Flag, ...] = ()
    examples: tuple[Example, ...] = ()
    description: str = ""
    arguments: type[Arguments] = Arguments

    def declared(self) -> Command:
        """Return this verb as if it were a command of the shell, so that the shell's parser and help work for it."""
        return Command(
            self.name,
            self.summary,
            _no_shell,
            self.args,
            self.flags,
            self.examples,
            self.description,
            arguments=self.arguments,
            needs_source=False,
        )

    def parsed(self, tokens: list[str]) -> Arguments:
        """Parse the command line after the verb. Raises UsageError, also for options of the shell's commands alone."""
        args = parse(self.declared(), tokens)
        own = {flag.dest for flag in self.flags}
        for flag in SHAPING:
            if flag.dest not in own and flag.dest not in _ANSWERS and getattr(args, flag.dest):
                raise UsageError(
                    f"{self.name}: there is no option {flag.names[0]}", hint=f"`help {self.name}` lists them"
                )
        return args


def _no_shell(session: object, args: Arguments) -> NoReturn:
    raise AssertionError("a verb of the pipeline is no command of the shell")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all verbs, sorted, without importing them."""
    return tuple(name.replace("_", "-") for name in module_names(__path__))


def get(name: str) -> Verb:
    """Import and return the verb ``name``. Raises UsageError, which proposes names that exist."""
    if name not in names():
        hint = did_you_mean(name, names(), f"there are {', '.join(names())}")
        raise UsageError(f"{name}: no such verb", hint=hint)
    verb: Verb = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").VERB
    return verb
