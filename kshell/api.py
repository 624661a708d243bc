"""For Python callers: ``kshell.open(directory=…)`` gives a session, ``session.run("ls /image")`` a result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from kshell.commands.base.execute import prepare, prepare_words
from kshell.commands.base.result import Result as Answer
from kshell.commands.base.result import Rows
from kshell.errors import UsageError
from kshell.metadata.image import Image
from kshell.render import render
from kshell.session import Session as Shell
from kshell.sources.choose import choose, open_source


class Result:
    """What a command gave. Rows that are made while they are read are read here, once."""

    def __init__(self, answer: Answer) -> None:
        if isinstance(answer, Rows):
            answer.rows = list(answer.rows)
        self._answer = answer

    @property
    def exit_code(self) -> int:
        """The command's own: 1 for a predicate's finding."""
        return self._answer.exit_code

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The result as rows, keys in Kafka's lowerCamelCase: of an object, one row; of a list, its elements."""
        value = self.to_dict()
        found = value if isinstance(value, list) else [value]
        return [row if isinstance(row, dict) else {"value": row} for row in found]

    def to_dict(self) -> Any:
        """The exact value that ``-o json`` prints, as Python objects."""
        return json.loads(self.to_json() or "null")

    def to_json(self) -> str:
        """JSON, exact; 64-bit integers are integers."""
        return "".join(render(self._answer, "json"))

    def __str__(self) -> str:
        return "".join(render(self._answer, "text"))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        return "".join(render(self._answer, "html"))

    def _repr_markdown_(self) -> str:
        return "".join(render(self._answer, "markdown"))


class Session:
    """A source that stays open, and a working directory. A context manager."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(self, line: str) -> Result:
        """Runs a line of the command language. Raises KshellError; a pipe or a redirection is not for Python."""
        call = prepare(self._shell, line)
        if call is None:
            raise UsageError("there is no command in the line")
        if call.line.target or call.line.program:
            raise UsageError("the result is returned: it cannot be redirected or piped")
        return Result(call.run())

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
        words = ["diff", str(a), str(b), path, *(["--ignore-epochs"] if ignore_epochs else [])]
        return Result(prepare_words(self._shell, words).run())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what was read."""
        self._shell.reload()


def open(
    directory: str | None = None,
    *,
    bootstrap_controllers: str | None = None,
    bootstrap_servers: str | None = None,
    context: str | None = None,
    config: str | None = None,
    properties: Mapping[str, str] | None = None,
    as_of: str | int | None = None,
    show_secrets: bool = False,
) -> Session:
    """Opens a source; without one, the environment's (``KSHELL_DIRECTORY``), the default context's, the config's.

    ``config`` is a Java client properties file, ``properties`` win over what is in it. What is odd about them is warned
    about (:class:`UserWarning`). Raises KshellError.
    """
    import os
    import warnings

    flags = {
        "directory": directory,
        "bootstrap_controllers": bootstrap_controllers,
        "bootstrap_servers": bootstrap_servers,
        "context": context,
    }
    above = [f"{key}={value}" for key, value in (properties or {}).items()]
    choice = choose(flags, os.environ, config, above)
    for warning in choice.warnings:
        warnings.warn(warning, stacklevel=2)
    shell = Shell(open_source(choice), show_secrets=show_secrets)
    shell = shell if as_of is None else shell.reshape(point=str(as_of))
    shell.front = shell
    shell.travels()
    return Session(shell)
