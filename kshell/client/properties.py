"""Java client properties: read a ``.properties`` file and overrides (``-X``), resolve config providers, hide secrets.

The file's syntax is that of ``java.util.Properties.load(InputStream)``, which Kafka's tools use (``Utils.loadProps``):
ISO-8859-1 with ``\\uXXXX``. Variables ``${provider:[path:]key}`` are resolved as by Kafka's ``ConfigTransformer`` and
its providers. One difference: a variable without a value is an error here, where Kafka would leave its text in place
and use that, for example, as a password.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ParamSpec, TypeVar

from kshell.errors import KshellError, UsageError


class Secret:
    """A password, a private key or a token. Only :attr:`value` shows it; ``str``, ``repr`` and pickle do not."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not serialised")

    def utf8(self) -> bytes:
        """Encode the secret as Java encodes a string: half a surrogate pair becomes a question mark."""
        return self.value.encode("utf-8", "replace")


_P = ParamSpec("_P")
_R = TypeVar("_R")


def hides_locals(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function with secret local variables: a KshellError leaves it without the traceback of its frames.

    Notebooks and error reporters print the local variables of every frame in a traceback.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except KshellError as error:
            del args, kwargs
            raise error.with_traceback(None) from None

    return call


_LARGEST = 4 << 20
"""Bytes of the largest properties file that is read; it may contain certificates."""
_TERMINATOR = re.compile(r"\r\n|\r|\n")
_SPACE = "".join(map(chr, range(0x21)))
"""What Java's ``String.trim`` removes; not what only Unicode calls space, such as U+00A0, which may end a password."""
_COMMAND_LINE = "-X"
"""The place of a property that the command line sets."""
_NAME = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)+")
"""A name as Kafka's are, with dots: neither base64, nor a token (JWT), nor most passwords are one."""


class Properties(dict[str, str]):
    """Client properties: key -> value, as text. ``places`` is key -> where it was set: file and line, or ``-X``.

    The ``repr`` shows keys only, without those that may be part of a secret. The methods return a value as the type
    that is asked for; they raise UsageError for a wrong value, with the place and the key and never the value.
    """

    def __init__(self, values: Mapping[str, str] | None = None, places: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.places: dict[str, str] = dict(places or {})

    def __repr__(self) -> str:
        return f"Properties({', '.join(key for key in self if not self.may_hold_secret(key))})"

    def may_hold_secret(self, key: str) -> bool:
        """Whether the text of a key may itself be part of a secret, unless the key is known.

        In a file, a value that goes on in the next line without a backslash before it, such as a PEM key, leaves each
        of its lines as a key.
        """
        from_file = self.places.get(key, _COMMAND_LINE) != _COMMAND_LINE
        return from_file and not (self[key] and _NAME.fullmatch(key))

    def fault(self, key: str, reason: str, *, hint: str | None = None) -> UsageError:
        """Return an error about a key: ``client.properties: line 3: ssl.keystore.location: …``."""
        place = self.places.get(key)
        return UsageError(f"{place}: {key}: {reason}" if place else f"{key}: {reason}", hint=hint)

    def text(self, key: str) -> str | None:
        """Return a value without surrounding space, as Kafka's ConfigDef reads strings; ``None`` if it is not set."""
        value = self.get(key)
        return None if value is None else value.strip(_SPACE)

    def filled(self, key: str) -> str | None:
        """Return a value as :meth:`text` does, but ``None`` if it is empty."""
        return self.text(key) or None

    def secret(self, key: str) -> Secret | None:
        """Return a password, without surrounding space: Kafka's ConfigDef trims passwords, too."""
        value = self.text(key)
        return None if value is None else Secret(value)

    def entries(self, key: str) -> tuple[str, ...]:
        """Return the entries of a comma-separated list; none if the key is not set."""
        return tuple(entry.strip() for entry in (self.get(key) or "").split(",") if entry.strip())

    def switch(self, key: str, default: bool = False) -> bool:
        """Return the value of a boolean: ``true`` or ``false``, in any case."""
        value = (self.text(key) or str(default)).lower()
        if value not in ("true", "false"):
            raise self.fault(key, "is neither true nor false")
        return value == "true"

    def seconds(self, key: str, default: float) -> float:
        """Return a time in seconds; the property has it in milliseconds. ``default`` is in seconds."""
        value = self.text(key)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 18:
            raise self.fault(key, "is not a number of milliseconds")
        return int(value) / 1000


def read(path: str | None, above: Iterable[str] = ()) -> Properties:
    """Read a properties file, if any, and resolve variables. Raises UsageError.

    ``above`` are the ``key=value`` texts of ``-X``, which override the file.
    """
    properties = Properties()
    if path is not None:
        for number, key, value in parse(_read(path), path):
            properties[key], properties.places[key] = value, f"{path}: line {number}"
    for line in above:
        key, equals, value = line.partition("=")
        key = key.strip()
        if not equals or not key:
            # A text without "=" may be a password whose key was forgotten, so the message does not repeat it.
            raise UsageError("-X: what follows is not key=value", hint="kshell -X security.protocol=SSL …")
        properties[key], properties.places[key] = value, _COMMAND_LINE
    if properties.filled("config.providers"):
        return resolve(properties)
    return properties


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "cannot be a path"
        raise UsageError(f"{path}: {reason}", hint="--config takes a Java client properties file") from None
    if len(text) > _LARGEST:
        raise UsageError(f"{path}: too large to be a properties file")
    return text


def parse(text: bytes | str, name: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, key, value) of each entry; bytes are ISO-8859-1. Raises UsageError, which names file and line."""
    import javaproperties

    line = 1
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                yield line, element.key, element.value
            line += len(_TERMINATOR.findall(element.source))
    except javaproperties.InvalidUEscapeError:
        raise UsageError(
            f"{name}: line {line}: \\u without four hexadecimal digits after it",
            hint="a backslash itself is written \\\\ in a properties file",
        ) from None


# --- config providers -------------------------------------------------------------------------------------------------


_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_LARGEST = 4 << 20
_PACKAGE = "org.apache.kafka.common.config.provider."

Lookup = Callable[[str, str], str]
"""A config provider: (path, key) of a variable -> its value. Raises LookupError with the reason."""


def resolve(properties: Properties) -> Properties:
    """Return the properties with the variables of the providers in ``config.providers`` replaced, not recursively.

    Raises UsageError for a provider class that is not one of Kafka's three, and for a variable without a value.
    """
    lookups: dict[str, Lookup] = {}
    for alias in properties.entries("config.providers"):
        key = f"config.providers.{alias}.class"
        name = properties.filled(key)
        if name is None:
            continue  # Kafka ignores a provider without a class, too
        make = _CLASSES.get(name.removeprefix(_PACKAGE))
        if make is None or not name.startswith(_PACKAGE):
            supported = ", ".join(_CLASSES)
            raise properties.fault(key, f"{name} is not supported", hint=f"{_PACKAGE}… {supported} are")
        lookups[alias] = make(properties, f"config.providers.{alias}.param.")
    resolved = Properties(places=properties.places)
    for key, value in properties.items():
        resolved[key] = _replaced(properties, key, value, lookups)
    return resolved


def _replaced(properties: Properties, key: str, value: str, lookups: Mapping[str, Lookup]) -> str:
    def replace(match: re.Match[str]) -> str:
        alias, path, name = match[1], match[2] or "", match[3]
        lookup = lookups.get(alias)
        if lookup is None:
            return match[0]
        try:
            return lookup(path, name)
        except LookupError as error:
            reason = f"the variable {match[0]}: {error.args[0]}"
            if properties.may_hold_secret(key):
                raise UsageError(f"{properties.places[key]}: {reason}") from None
            raise properties.fault(key, reason) from None

    return _VARIABLE.sub(replace, value)


def _from_environment(properties: Properties, prefix: str) -> Lookup:
    key = prefix + "allowlist.pattern"
    try:
        allowed = re.compile(properties.get(key) or ".*")
    except re.error:
        raise properties.fault(key, "is not a regular expression") from None

    def lookup(path: str, name: str) -> str:
        if path:
            raise LookupError("an environment variable has no path")
        if not allowed.fullmatch(name):
            raise LookupError(f"{key} does not allow it")
        if name not in os.environ:
            raise LookupError(f"the environment has no {name}")
        return os.environ[name]

    return lookup


def _from_file(properties: Properties, prefix: str) -> Lookup:
    allowed = _allowed(properties, prefix)

    def lookup(path: str, name: str) -> str:
        file = allowed(path)
        try:
            values = {key: value for _, key, value in parse(_text(file), file)}
        except UsageError as error:
            raise LookupError(error.message) from None
        if name not in values:
            raise LookupError(f"{file} has no key {name}")
        return values[name]

    return lookup


def _from_directory(properties: Properties, prefix: str) -> Lookup:
    allowed = _allowed(properties, prefix)

    def lookup(path: str, name: str) -> str:
        folder = allowed(path)
        if "/" in name or name in ("", ".", ".."):
            raise LookupError("names no file of the directory")
        return _text(os.path.join(folder, name))

    return lookup


def _allowed(properties: Properties, prefix: str) -> Callable[[str], str]:
    """Return a function that checks the path in a variable by ``allowed.paths`` (Kafka's ``AllowedPaths``)."""
    key = prefix + "allowed.paths"
    paths = [os.path.normpath(path) for path in properties.entries(key)]
    for path in paths:
        if not os.path.isabs(path) or not os.path.exists(path):
            raise properties.fault(key, f"{path} is not an absolute path of something that exists")

    def allow(path: str) -> str:
        if not path:
            raise LookupError("a path is needed, as in ${alias:/path:key}")
        normal = os.path.normpath(path)
        if not paths:
            return path
        if not any(normal == allowed or normal.startswith(allowed.rstrip("/") + "/") for allowed in paths):
            raise LookupError(f"{key} does not allow {path}")
        return normal

    return allow


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise LookupError(f"{path}: {reason}") from None
    if len(text) > _LARGEST:
        raise LookupError(f"{path}: too large")
    return text


_CLASSES: dict[str, Callable[[Properties, str], Lookup]] = {
    "EnvVarConfigProvider": _from_environment,
    "FileConfigProvider": _from_file,
    "DirectoryConfigProvider": _from_directory,
}
