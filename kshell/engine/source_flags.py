"""The options that name a source and say how to read it or connect to it, for the command line and for notebooks.

The options that only the command line takes are here as well, for its completion.
"""

from __future__ import annotations

from types import SimpleNamespace

from kshell.engine.declaration import Flag
from kshell.errors import UsageError
from kshell.sources.directory.files import ON_CORRUPTION

SOURCES = (
    Flag(
        ("-d", "--directory"),
        "a __cluster_metadata-0 directory, the log directory around it, or one file",
        "DIR",
        repeat=True,
    ),
    Flag(("-s", "--snapshot"), "the same as -d FILE, for users of Kafka's own shell", "FILE", repeat=True),
    Flag(("-q", "--bootstrap-controllers", "--bootstrap-controller"), "controllers, host:port,…", "LIST", repeat=True),
    Flag(("-b", "--bootstrap-servers", "--bootstrap-server"), "brokers, host:port,…", "LIST", repeat=True),
    Flag(("--context",), "a named source from the configuration", "NAME", repeat=True),
    Flag(("--demo",), "the sample that ships with kshell"),
)
READING = (
    Flag(
        ("--on-corruption",),
        "at damage in a directory: stop (default), tail (take a bad end as torn), skip",
        "HOW",
        choices=ON_CORRUPTION,
    ),
)
PROPERTIES = (
    Flag(("--config", "--command-config"), "a Java client properties file", "FILE"),
    Flag(("-X",), "one client property, key=value", "KEY=VALUE", repeat=True),
)
NAMING = (*SOURCES, *PROPERTIES, *READING)
"""All options about the source together."""
RUNNING = (
    Flag(("-c",), "run a command line", "COMMAND", repeat=True),
    Flag(("-f",), "run a file of command lines; - is standard input", "FILE", repeat=True),
    Flag(("--keep-going",), "go on after a command that fails"),
    Flag(("--no-cache",), "use no cached data (this release caches none)"),
    Flag(("-v", "--verbose"), "say more on standard error"),
    Flag(("--version",), "print the version"),
    Flag(("-h", "--help"), "print this help"),
)
"""The options that only the command line takes: which commands it runs, and how."""


def given_sources(options: SimpleNamespace) -> dict[str, str | None]:
    """Return the source that options name, as :func:`kshell.sources.choose.choose` takes it. Raises UsageError."""
    return {
        "directory": _only(options.directory, "--directory", options.snapshot, "--snapshot"),
        "bootstrap_controllers": _only(options.bootstrap_controllers, "--bootstrap-controllers"),
        "bootstrap_servers": _only(options.bootstrap_servers, "--bootstrap-servers"),
        "context": _only(options.context, "--context"),
        "demo": "demo" if options.demo else None,
    }


def _only(*values_and_flags: list[str] | str | None) -> str | None:
    """Return the only value among alternating values and flag names. Raises UsageError for several values."""
    pairs = [
        (values_and_flags[at + 1], value)
        for at in range(0, len(values_and_flags), 2)
        for value in values_and_flags[at] or ()
    ]
    if len(pairs) > 1:
        raise UsageError(f"{' and '.join(str(name) for name, _ in pairs)} are two sources: give one")
    if pairs and not pairs[0][1]:
        raise UsageError(f"{pairs[0][0]}: the value is empty", hint="is a shell variable on the command line empty?")
    return pairs[0][1] if pairs else None


def sources_of(options: SimpleNamespace) -> list[tuple[str, str]]:
    """Return (kind, value) for every source that the options name, for a front end that opens several sources."""
    kinds = {
        "directory": [*(options.directory or ()), *(options.snapshot or ())],
        "bootstrap_controllers": options.bootstrap_controllers or (),
        "bootstrap_servers": options.bootstrap_servers or (),
        "context": options.context or (),
        "demo": ["demo"] if options.demo else (),
    }
    return [(kind, value) for kind, values in kinds.items() for value in values]
