"""What ``kshell-pipeline`` can do: a verb is one module here, which declares its ``VERB``. Nothing else lists them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from kshell.discovery import module_names
from kshell.engine.arguments import SHAPING, parse
from kshell.engine.declaration import Arg, Command, Example, Flag
from kshell.engine.result import Result
from kshell.errors import UsageError, did_you_mean

_ANSWERS = ("output", "color", "no_header", "timeout")
"""The shell's shaping options that every verb has, too."""
ANSWER_FLAGS = tuple(flag for flag in SHAPING if flag.dest in _ANSWERS)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ValueError("spark.NAME=VALUE")
    return name, value


SPARK_FLAGS = (
    Flag(("--master",), "where Spark runs: local[2], spark://…, yarn, k8s://…, sc://… (all cores of here)", "URL"),
    Flag(("--conf",), "a setting of Spark", "NAME=VALUE", convert=_setting, repeat=True),
    Flag(("--spark-log",), "what Spark says here: off, error, warn, info, debug (error)", "LEVEL", default="error"),
)
"""Options of every verb that starts a session."""


class Verb(NamedTuple):
    """A verb. ``run`` gets the parsed arguments (attributes by name) and returns a result; it never prints."""

    name: str
    summary: str
    run: Callable[[Any], Result]
    args: tuple[Arg, ...] = ()
    flags: tuple[Flag, ...] = ()
    examples: tuple[Example, ...] = ()
    description: str = ""

    def declared(self) -> Command:
        """The declaration of this verb as a command of the shell, for its parser and help."""
        return Command(
            self.name,
            self.summary,
            _no_shell,
            self.args,
            self.flags,
            self.examples,
            self.description,
            needs_source=False,
        )

    def parsed(self, arguments: list[str]) -> SimpleNamespace:
        """Parse the arguments of a line. Raises UsageError, also for options that only the shell's commands have."""
        args = parse(self.declared(), arguments)
        own = {flag.dest for flag in self.flags}
        for flag in SHAPING:
            if flag.dest not in own and flag.dest not in _ANSWERS and getattr(args, flag.dest):
                raise UsageError(
                    f"{self.name}: there is no option {flag.names[0]}", hint=f"`help {self.name}` lists them"
                )
        return args


def _no_shell(session: Any, args: Any) -> NoReturn:
    raise AssertionError("a verb of the pipeline is no command of the shell")


@cache
def names() -> tuple[str, ...]:
    """Every verb's name, sorted; none is imported."""
    return tuple(name.replace("_", "-") for name in module_names(__path__))


def get(name: str) -> Verb:
    """The verb, imported now. Raises UsageError, which proposes names that exist."""
    if name not in names():
        hint = did_you_mean(name, names(), f"there are {', '.join(names())}")
        raise UsageError(f"{name}: no such verb", hint=hint)
    verb: Verb = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").VERB
    return verb
