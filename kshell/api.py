"""For Python callers: ``kshell.open(directory=…)`` gives a session, ``session.run("ls /image")`` a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from kshell.engine import registry
from kshell.engine.arguments import option_words
from kshell.engine.execution import Call, prepare, prepare_words
from kshell.engine.session import Session as Shell
from kshell.errors import UsageError
from kshell.metadata.image import Image
from kshell.result import Result
from kshell.sources.choose import choose, open_source


class Session:
    """A source that stays open, and a working directory. A context manager."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(self, line: str, *arguments: object) -> Result:
        """Run a command.

        Args:
            line: a line of the command language; or, with ``arguments``, the command's name alone.
            arguments: its arguments and options, one each. They need no quotes, and are taken literally: no globs.

        Raises:
            UsageError: there is no such command, or the line pipes or redirects, which is not for Python.
            KshellError: whatever else goes wrong.
        """
        if arguments:
            return _result(prepare_words(self._shell, [line, *map(str, arguments)]))
        call = prepare(self._shell, line)
        if call is None:
            raise UsageError("there is no command in the line")
        if call.line.target or call.line.program:
            raise UsageError("the result is returned: it cannot be redirected or piped")
        return _result(call)

    @property
    def image(self) -> Image:
        """The metadata image."""
        return self._shell.image

    @property
    def problems(self) -> list[str]:
        """What is wrong with the data, one sentence each; empty when all is well."""
        return self._shell.problems()

    def at(self, point: str | int) -> Session:
        """The same source at an offset, a time or ``@mark``. The first one reads the log for all that follow."""
        return Session(self._shell.reshape(point=str(point)))

    def diff(self, a: str | int, b: str | int, path: str = "/image", *, ignore_epochs: bool = False) -> Result:
        """What changed from ``a`` to ``b``: points, directories, files or ``context:NAME``. Raises KshellError."""
        tokens = ["diff", str(a), str(b), path, *(["--ignore-epochs"] if ignore_epochs else [])]
        return _result(prepare_words(self._shell, tokens))

    def __getattr__(self, name: str) -> Callable[..., Result]:
        """Every command is a method: ``topics(where="offline > 0")``, ``can("User:alice", "READ", "TOPIC:orders")``.

        Options are keywords, with underscores for dashes: ``True`` for a switch, a list for what may be given several
        times or takes several names (``columns=["name", "offline"]``).
        """
        command = name.replace("_", "-")
        if name.startswith("_") or command not in registry.names():
            raise AttributeError(f"a session has no attribute {name!r}, and there is no command {command}")

        def run(*arguments: object, **options: object) -> Result:
            return (
                self.run(command, *arguments, *option_words(registry.get(command), options))
                if arguments or options
                else self.run(command)
            )

        run.__name__ = name
        run.__doc__ = registry.get(command).summary
        return run

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.replace("-", "_") for name in registry.names())})

    def __repr__(self) -> str:
        source, until = self._shell.source, self._shell.until
        moment = "newest state" if until is None else f"as of offset {until}"
        return f"<kshell session on {source.name or source.path or source.kind}: {moment}; try .status(), .health()>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what was read."""
        self._shell.reload()


def _result(call: Call) -> Result:
    return Result.of(call, call.run(), lambda session: (*session.problems(), *session.notes()))


def open(
    directory: str | None = None,
    *,
    demo: bool = False,
    bootstrap_controllers: str | None = None,
    bootstrap_servers: str | None = None,
    context: str | None = None,
    config: str | None = None,
    properties: Mapping[str, str] | None = None,
    as_of: str | int | None = None,
    show_secrets: bool = False,
    on_corruption: str | None = None,
) -> Session:
    """Open a source; without one, the environment's (``KSHELL_DIRECTORY``), the default context's, the config's.

    ``demo`` opens the sample that ships with kshell. ``config`` is a Java client properties file, ``properties`` win
    over what is in it. What is odd about them is warned about (:class:`UserWarning`). ``on_corruption``: what happens
    at a damaged batch of a directory: ``stop`` (the default: the last good state before it is the answer), ``tail``
    (the same, and what cannot be read at the end counts as torn) or ``skip`` (the batches behind it count, too; what is
    left out is among the notes). Raises KshellError.
    """
    import os
    import warnings

    flags = {
        "directory": directory,
        "bootstrap_controllers": bootstrap_controllers,
        "bootstrap_servers": bootstrap_servers,
        "context": context,
        "demo": "demo" if demo else None,
    }
    above = [f"{key}={value}" for key, value in (properties or {}).items()]
    choice = choose(flags, os.environ, config, above)
    for warning in choice.warnings:
        warnings.warn(warning, stacklevel=2)
    shell = Shell(open_source(choice, on_corruption), show_secrets=show_secrets)
    shell = shell if as_of is None else shell.reshape(point=str(as_of))
    shell.front = shell
    shell.travels()
    return Session(shell)
