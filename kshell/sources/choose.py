"""Choose the source that a command line, the environment or the configuration names (:func:`choose`), and open it.

Flags win over environment, context and properties file, in this order; two sources at one level are an error. A context
that is not used is ignored together with its properties file, because the passwords in it are for its own source.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import SourceError, SourceNotFoundError, UsageError
from kshell.sources.directory.files import ON_CORRUPTION, STOP, Listing
from kshell.sources.directory.source import DirectorySource
from kshell.sources.source import Source

if TYPE_CHECKING:
    from kshell.client.contexts import Context
    from kshell.client.settings import Settings

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
_PROPERTIES = {CONTROLLERS: "bootstrap.controllers", SERVERS: "bootstrap.servers"}
NO_SOURCE = "no source was given"
_HOW = "kshell -d DIRECTORY …, kshell -q HOST:PORT …, or kshell --demo … for the sample"


class TwoSourcesError(UsageError):
    """Two sources were given at one level: an error for every command, even for one that needs no source."""


class Choice(NamedTuple):
    """The chosen source: its kind (a key of :data:`FLAGS`, but never ``context``), and its path or addresses."""

    kind: str
    value: str
    settings: Settings | None = None
    """How to connect; ``None`` for a source that is not connected to, if no properties were given."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user about the properties, to be printed once; they contain no values."""
    variable: str | None = None
    """The environment variable that names the source, for errors: the user does not see it on the command line."""


def choose(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    config: str | None = None,
    above: Iterable[str] = (),
) -> Choice:
    """Choose a source; ``flags`` maps its kind to the value of the flag.

    ``config`` is the properties file that a flag names, ``above`` are ``key=value`` lines that override the file.
    Raises UsageError if there is no source, if there are two at one level, or if the properties cannot be used.
    """
    above = list(above)
    choice = _chosen_source(flags, environment)
    context = _context(choice, environment)
    path = config or environment.get("KSHELL_CONFIG") or (context.config if context else None)
    if choice is not None and choice.kind == CONTEXT:
        choice = None
    if context is not None and context.kind is not None and context.value is not None:
        choice = Choice(context.kind, context.value)
    if choice is not None and choice.kind in (DIRECTORY, DEMO) and not config and not above:
        return choice  # no connection is needed: read no properties file that the user did not ask for
    if choice is None and path is None and not above:
        raise UsageError(NO_SOURCE, hint=_HOW)
    return _configured(choice, path, above, context)


def _chosen_source(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Choice | None:
    """The source that a flag names, else the one of an environment variable. Raises UsageError for two at one level."""
    for level, names in ((flags, FLAGS), (_named(environment), ENVIRONMENT)):
        choices = [
            Choice(kind, value, variable=names[kind] if names is ENVIRONMENT else None)
            for kind in names
            if (value := level.get(kind))
        ]
        if len(choices) > 1:
            raise TwoSourcesError(f"{' and '.join(names[choice.kind] for choice in choices)} are two sources: give one")
        if choices:
            return choices[0]
    return None


def _named(environment: Mapping[str, str]) -> dict[str, str]:
    """Kind of source -> the value of its environment variable, for those that are set."""
    return {kind: environment[name] for kind, name in ENVIRONMENT.items() if environment.get(name)}


def _context(choice: Choice | None, environment: Mapping[str, str]) -> Context | None:
    """The context that was named, or the default one if no source is given; else ``None``. Raises UsageError."""
    if choice is not None and choice.kind != CONTEXT:
        return None
    from kshell.client import contexts

    stored = contexts.load(environment)
    if choice is not None:
        return stored.get(choice.value)
    return stored.get(stored.current) if stored.current is not None else None


def _configured(choice: Choice | None, path: str | None, above: list[str], context: Context | None) -> Choice:
    """Add the settings to a choice. If no source was given, the properties name it. Raises UsageError."""
    from kshell.client.properties import read
    from kshell.client.settings import Settings, source_of

    settings = Settings.of(read(path, above))
    warnings = list(settings.warnings)
    if choice is None:
        configured = source_of(settings)
        if configured is None:
            raise UsageError(NO_SOURCE, hint=f"{path or '-X'} sets neither bootstrap.controllers nor bootstrap.servers")
        choice = Choice(*configured)
    elif context is not None and path != context.config:
        # The user named this file now and the context perhaps long ago, so they may expect the file's source.
        unused = [name for kind, name in _PROPERTIES.items() if getattr(settings, kind)]
        warnings += [f"{name} in {path} is not used: the context {context.name} names the source" for name in unused]
    # Only the address list of the chosen source stays, unchanged (KIP-919).
    own = {CONTROLLERS: None, SERVERS: None} | ({choice.kind: choice.value} if choice.kind in _PROPERTIES else {})
    settings = settings._replace(bootstrap_controllers=own[CONTROLLERS], bootstrap_servers=own[SERVERS], file=path)
    return Choice(choice.kind, choice.value, settings, tuple(warnings))


def open_source(choice: Choice, on_corruption: str | None = None) -> Source:
    """Open the source of a choice.

    Args:
        choice: what to open.
        on_corruption: what to do at a damaged batch of a directory's log: ``stop`` (the default), ``tail`` or ``skip``.

    Raises:
        SourceError: there is nothing to read.
        UsageError: ``on_corruption`` is none of these, or the source is no directory.
    """
    if on_corruption is not None and on_corruption not in ON_CORRUPTION:
        raise UsageError(f"on_corruption: {on_corruption}: not one of {', '.join(ON_CORRUPTION)}")
    if choice.kind in (DIRECTORY, DEMO):
        path, name = (demo_directory(), "demo") if choice.kind == DEMO else (choice.value, None)
        try:
            return DirectorySource(path, name=name, on_corruption=on_corruption or STOP)
        except SourceNotFoundError as error:
            if choice.variable is not None and error.hint is None:
                error.hint = f"the path is that of {choice.variable}; -d names another one"
            raise
    if on_corruption is not None:
        raise UsageError("--on-corruption is for directories", hint="what nodes send is verified before it is used")
    from kshell.client.settings import Settings

    settings = choice.settings or Settings.of({})
    # Imported late: most commands read a directory and need neither sockets nor TLS.
    if choice.kind == CONTROLLERS:
        from kshell.sources.quorum.source import QuorumSource

        return QuorumSource(choice.value, settings)
    from kshell.sources.brokers.source import BrokerSource

    return BrokerSource(choice.value, settings)


class NoSource(DirectorySource):
    """The placeholder if no source is given: commands that need none run, all others raise UsageError."""

    def __init__(self, how: str = _HOW) -> None:
        """``how``: the hint that says how to name a source."""
        self._how = how
        self.path = ""
        self.name = "no source"
        self.is_sample = False

    def listing(self, *, full_log: bool = False) -> Listing:
        """Raise UsageError, because there is nothing to list."""
        raise UsageError(NO_SOURCE, hint=self._how)


def demo_directory() -> str:
    """The directory of the sample that ships with the package, recorded from a real Kafka 4.3 cluster.

    Raises:
        SourceError: kshell runs from one file, and there is no private directory to unpack the sample in.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.join(package, "demo")
    if os.path.isdir(folder):
        return folder
    from zipfile import ZipFile

    from kshell.unpacking import unpack

    with ZipFile(os.path.dirname(package)) as archive:
        names = [
            name for name in archive.namelist() if name.startswith("kshell/demo/") and not name.endswith((".py", "/"))
        ]
        unpacked = unpack({name.removeprefix("kshell/demo/"): archive.read(name) for name in names})
    if unpacked is None:
        raise SourceError(
            "no directory that only you can write to, to unpack the sample in",
            hint="set TMPDIR to a directory of yours",
        )
    return unpacked
