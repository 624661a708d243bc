"""The open sessions of a notebook, by name. ``%kafka connect`` opens one, and lines run on the current one."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping

from kshell.engine.arguments import parse_options
from kshell.engine.execution import deadline
from kshell.engine.language import Word
from kshell.engine.result import Column, Rows
from kshell.engine.session import Session
from kshell.engine.source_flags import given_sources
from kshell.errors import UsageError
from kshell.magic.display import CellProgress
from kshell.magic.lines import CONNECT_FLAGS
from kshell.sources.choose import CONTEXT, DEMO, NO_SOURCE, Choice, NoSource, choose, open_source
from kshell.sources.directory.files import local_path

_COLUMNS = (
    Column("name", type="string"),
    Column("isCurrent", type="boolean"),
    Column("source", type="string"),
    Column("directory", type="string"),
    Column("asOf", type="int64"),
)
_HINT = "%kafka connect -d DIRECTORY, -q HOST:PORT, --context NAME, or --demo for the sample"
_SECRET = ("password", "passphrase", "jaas", "secret", "keystore.key")


class Sessions:
    """The open sessions. ``current`` is the name of the one that lines run on by default; ``None`` without any."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self.current: str | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def opened(self, name: str | None) -> Session | None:
        """Return the session of that name, or the current one; ``None`` if it is not open."""
        name = name or self.current
        return None if name is None else self._open.get(name)

    def connect(self, tokens: list[Word]) -> tuple[Session, str]:
        """Open the source that the arguments of ``connect`` name, as the current session; return it, and the value of
        ``-o``.

        An open session of the same name, or by default of the same source, is closed. The image is loaded now, so that
        errors appear here. Raises KshellError.
        """
        options, rest = parse_options("%kafka connect", CONNECT_FLAGS, [token.text for token in tokens])
        if rest or options.name == "":
            problem = f"too many arguments: {' '.join(rest)}" if rest else "--name needs a name"
            raise UsageError(f"connect: {problem}", hint=_HINT)
        for pair in options.X or ():
            _refuse_secret(pair)
        flags = given_sources(options)
        if flags["directory"]:
            flags["directory"] = local_path(flags["directory"])
        choice = _choice(flags, options.config, options.X or ())
        session = _session(choice, options.on_corruption)
        try:
            with deadline(options.timeout):
                then = session if options.as_of is None else session.reshape(point=options.as_of)
                _ = then.loaded  # load first: this may resolve the point once more
                if then is not session:
                    session.travel(then)
        except BaseException:
            session.source.close()
            raise
        self._put(options.name or self._free(_name_of(choice, flags), session), session)
        return session, options.output or ""

    def _free(self, name: str, session: Session) -> str:
        """Return the name, with a number if the session of another source has it, which must not be closed."""
        free, number = name, 1
        while free in self._open and self._open[free].source.path != session.source.path:
            number += 1
            free = f"{name}-{number}"
        return free

    def get(self, name: str | None) -> tuple[str, Session]:
        """Return the name and session of that name, or the current one. Raises UsageError.

        If it is not open, the context of that name is opened; without a name, the source that the environment names.
        """
        name = name or self.current
        if name is not None and name in self._open:
            return name, self._open[name]
        if name is None:
            try:
                choice = choose({}, os.environ)
            except UsageError as error:
                if error.message != NO_SOURCE:
                    raise
                return "", _prepared(Session(NoSource(_HINT)))
            name = _name_of(choice, {})
        else:
            choice = self._context(name)
        self._put(name, _session(choice), is_current=self.current is None)
        return name, self._open[name]

    def _context(self, name: str) -> Choice:
        try:
            return choose({CONTEXT: name}, os.environ)
        except UsageError as error:
            open_sessions = ", ".join(self._open) or "none"
            raise UsageError(
                f"{name}: neither an open session nor a context ({error.message})",
                hint=f"open sessions: {open_sessions}",
            ) from None

    def close(self, name: str | None) -> None:
        """Close a session, by default the current one, which the newest other one replaces. Raises UsageError."""
        name = name or self.current
        if name is None or name not in self._open:
            raise UsageError(f"{name or 'close'}: no such session is open", hint="%kafka -l lists them")
        self._open.pop(name).source.close()
        if self.current == name:
            self.current = next(reversed(self._open), None)

    def rows(self) -> Rows:
        """Return the list of open sessions, one row per session."""
        return Rows(
            _COLUMNS,
            [
                {
                    "name": name,
                    "isCurrent": name == self.current,
                    "source": session.source.name,
                    "directory": session.cwd_path,
                    "asOf": session.until,
                }
                for name, session in self._open.items()
            ],
        )

    def _put(self, name: str, session: Session, *, is_current: bool = True) -> None:
        before = self._open.pop(name, None)
        if before is not None:
            before.source.close()
        self._open[name] = session
        if is_current:
            self.current = name


def _choice(flags: Mapping[str, str | None], config: str | None, above: Iterable[str]) -> Choice:
    try:
        return choose(flags, os.environ, config, above)
    except UsageError as error:
        if error.message == NO_SOURCE:
            error.hint = _HINT
        raise


def _session(choice: Choice, on_corruption: str | None = None) -> Session:
    for warning in choice.warnings:
        warnings.warn(warning, stacklevel=2)
    return _prepared(Session(open_source(choice, on_corruption), progress=CellProgress()))


def _prepared(session: Session) -> Session:
    session.front = session
    session.travels()
    return session


def _name_of(choice: Choice, flags: Mapping[str, str | None]) -> str:
    """Return the default name of a session: the context, ``demo``, the last part of a directory, or the first node."""
    if flags.get(CONTEXT):
        return str(flags[CONTEXT])
    if choice.kind == DEMO:
        return DEMO
    path = os.path.realpath(choice.value)
    if os.path.exists(path):
        last = os.path.basename(path)
        return os.path.basename(os.path.dirname(path)) if last == "__cluster_metadata-0" else last
    return choice.value.split(",")[0]


def _refuse_secret(pair: str) -> None:
    """Raise UsageError for a client property that is a credential, because a notebook saves its cells."""
    key, _, value = pair.partition("=")
    if any(secret_part in key.lower() for secret_part in _SECRET) and not re.fullmatch(r"\$\{[^{}]*\}", value):
        raise UsageError(
            f"-X {key}: do not put a credential into a notebook: the notebook saves it",
            hint="put it into a properties file (--config FILE) or a context, or refer to it: ${env:NAME}",
        )
