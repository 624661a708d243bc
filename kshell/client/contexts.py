"""Contexts: names that users give to sources (``kshell context``), with the properties file of each; load and save.

They are stored in ``$XDG_CONFIG_HOME/kshell/contexts.json``, which only its owner can read. Passwords are not: a
context has the *path* of a properties file. The file is replaced atomically, so a reader never sees half of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell import own_files
from kshell.errors import CommandError, UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

DIRECTORY, CONTROLLERS, SERVERS = "directory", "bootstrap_controllers", "bootstrap_servers"
"""The kinds of sources that a context may name; without a kind, the context's properties file names the source."""
_KINDS = (DIRECTORY, CONTROLLERS, SERVERS)
_KEYS = {DIRECTORY: "directory", CONTROLLERS: "bootstrapControllers", SERVERS: "bootstrapServers"}
_NAME = re.compile(r"[\w.+-][\w.+:@-]*\Z")
_LARGEST = 1 << 20
_HOLDS, _MOVE = "contexts", "move the file away and add the contexts again"
_HINT = "`kshell context list` shows the contexts there are"


class Context(NamedTuple):
    """A name for a source: its kind and value (both ``None`` if the properties file names it), and that file's path."""

    name: str
    kind: str | None
    value: str | None
    config: str | None


class Contexts:
    """The contexts of the file, by name, and the ``current`` (default) one. Only :meth:`save` writes the file."""

    def __init__(
        self, path: str | None, current: str | None = None, named: Mapping[str, Context] | None = None
    ) -> None:
        self.path = path
        self.current = current
        self.named: dict[str, Context] = dict(named or {})

    def get(self, name: str) -> Context:
        """Return the context of that name. Raises UsageError, which proposes similar names."""
        if name not in self.named:
            raise UsageError(f"{name}: no such context", hint=did_you_mean(name, self.named, _HINT))
        return self.named[name]

    def add(self, context: Context) -> None:
        """Add a context. Raises UsageError if its name is taken or not valid."""
        if not _NAME.match(context.name) or context.name.startswith("-"):
            raise UsageError(f"{context.name!r} cannot be a context's name", hint="letters, digits, and . + - _ : @")
        if context.name in self.named:
            raise UsageError(
                f"{context.name}: there is a context of that name", hint=f"kshell context remove {context.name}"
            )
        self.named[context.name] = context

    def use(self, name: str) -> None:
        """Make a context the default. Raises UsageError if there is none of that name."""
        self.current = self.get(name).name

    def remove(self, name: str) -> None:
        """Delete a context. Raises UsageError if there is none of that name."""
        del self.named[self.get(name).name]
        if self.current == name:
            self.current = None

    def save(self) -> None:
        """Replace the file, with mode 0600. Raises CommandError."""
        if self.path is None:
            raise CommandError(
                "contexts cannot be stored: there is no home directory", hint="set HOME or XDG_CONFIG_HOME"
            )
        named = {name: _stored(context) for name, context in self.named.items()}
        own_files.write(self.path, {"current": self.current, "contexts": named})


def file_path(environment: Mapping[str, str]) -> str | None:
    """Return ``$XDG_CONFIG_HOME/kshell/contexts.json``, or that below ``~/.config``; ``None`` without a home."""
    return own_files.path_of(environment, "XDG_CONFIG_HOME", "contexts.json")


def load(environment: Mapping[str, str]) -> Contexts:
    """Load the contexts; without a file, there are none. Raises UsageError for a file that cannot be read."""
    path = file_path(environment)
    if path is None:
        return Contexts(None)
    stored = own_files.read(path, _HOLDS, _LARGEST, _MOVE)
    return Contexts(path) if stored is None else _loaded(path, stored)


def _loaded(path: str, stored: JsonObject) -> Contexts:
    contexts = Contexts(path)
    if not isinstance(stored.get("contexts"), dict):
        raise own_files.unreadable(path, _HOLDS, _MOVE)
    for name, fields in stored["contexts"].items():
        if not isinstance(fields, dict) or not all(
            value is None or isinstance(value, str) for value in fields.values()
        ):
            raise own_files.unreadable(path, _HOLDS, _MOVE)
        kind = next((kind for kind in _KINDS if fields.get(_KEYS[kind])), None)
        contexts.named[name] = Context(name, kind, fields[_KEYS[kind]] if kind else None, fields.get("config"))
    current = stored.get("current")
    contexts.current = current if current in contexts.named else None
    return contexts


def _stored(context: Context) -> dict[str, str]:
    fields = {_KEYS[context.kind]: context.value or ""} if context.kind else {}
    return fields | ({"config": context.config} if context.config else {})


def described(context: Context) -> dict[str, str | None]:
    """Return the context as a row: name and the keys of the file, with ``None`` for each that is not set."""
    stored = _stored(context)
    return {"name": context.name} | {key: stored.get(key) for key in (*_KEYS.values(), "config")}
