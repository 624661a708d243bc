"""Which source a command line, the environment and the configuration mean.

Flags > environment; a source given at a higher level discards the ones of lower levels, two at one level are an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from kshell.errors import UsageError
from kshell.sources.directory import DirectorySource
from kshell.sources.files import Listing

DIRECTORY, CONTROLLERS, SERVERS, CONTEXT, DEMO = (
    "directory",
    "bootstrap_controllers",
    "bootstrap_servers",
    "context",
    "demo",
)
FLAGS = {
    DIRECTORY: "--directory",
    CONTROLLERS: "--bootstrap-controllers",
    SERVERS: "--bootstrap-servers",
    CONTEXT: "--context",
    DEMO: "--demo",
}
ENVIRONMENT = {
    DIRECTORY: "KSHELL_DIRECTORY",
    CONTROLLERS: "KSHELL_BOOTSTRAP_CONTROLLERS",
    SERVERS: "KSHELL_BOOTSTRAP_SERVERS",
    CONTEXT: "KSHELL_CONTEXT",
}
NO_SOURCE = "no source was given"
_HOW = "kshell -d DIRECTORY …, or kshell --demo … for the sample"


class Choice(NamedTuple):
    """A kind of source (a key of :data:`FLAGS`) and what was given for it."""

    kind: str
    value: str


def choose(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Choice:
    """The source that is meant. Raises UsageError when there is none, or two at one level."""
    for level, names in ((flags, FLAGS), (_named(environment), ENVIRONMENT)):
        given = [Choice(kind, value) for kind in names if (value := level.get(kind))]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(names[choice.kind] for choice in given)} are two sources: give one")
        if given:
            return given[0]
    raise UsageError(NO_SOURCE, hint=_HOW)


def _named(environment: Mapping[str, str]) -> dict[str, str]:
    return {kind: environment[name] for kind, name in ENVIRONMENT.items() if environment.get(name)}


def open_source(choice: Choice) -> DirectorySource:
    """The source behind a choice. Raises SourceError, UsageError."""
    if choice.kind == DIRECTORY:
        return DirectorySource(choice.value)
    if choice.kind == DEMO:
        return DirectorySource(demo_directory(), name="demo")
    raise UsageError(
        f"{FLAGS[choice.kind]}: this release reads directories and files only",
        hint="copy the controller's metadata directory, or run kshell beside it, and use --directory",
    )


class NoSource(DirectorySource):
    """Stands in where none was given: commands that need none run, every other one says what is missing."""

    def __init__(self) -> None:
        self.path = ""
        self.name = "no source"
        self.is_sample = False

    def listing(self) -> Listing:
        """Raises UsageError."""
        raise UsageError(NO_SOURCE, hint=_HOW)


def demo_directory() -> str:
    """The sample that ships with the package: recorded from a real 4.3 cluster."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo")
