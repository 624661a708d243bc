"""Java client properties: a ``.properties`` file, what stands above it (``-X``), and variables of config providers.

The file's syntax is that of ``java.util.Properties.load(InputStream)``, which Kafka's tools use (``Utils.loadProps``):
ISO-8859-1 with ``\\uXXXX``. Variables ``${provider:[path:]key}`` are those of Kafka's ``ConfigTransformer``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kshell.client.secret import Secret
from kshell.errors import UsageError
from kshell.extras import require

_LARGEST = 4 << 20
"""Bytes of a properties file; certificates in it included."""
_TERMINATOR = re.compile(r"\r\n|\r|\n")


class Properties(dict[str, str]):
    """Client properties, the later of two values in effect. ``places`` has the file and line, or the flag, of a key.

    Its repr shows keys only. Every reading method raises UsageError: it names the place and the key, never the value.
    """

    def __init__(self, values: Mapping[str, str] | None = None, places: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.places: dict[str, str] = dict(places or {})

    def __repr__(self) -> str:
        return f"Properties({', '.join(self)})"

    def fault(self, key: str, reason: str, *, hint: str | None = None) -> UsageError:
        """The error of one key: ``client.properties: line 3: ssl.keystore.location: …``."""
        place = self.places.get(key)
        return UsageError(f"{place}: {key}: {reason}" if place else f"{key}: {reason}", hint=hint)

    def text(self, key: str) -> str | None:
        """A value without the space around it, as Kafka's ConfigDef takes strings; ``None`` when it is not set."""
        value = self.get(key)
        return None if value is None else value.strip()

    def filled(self, key: str) -> str | None:
        """A text that is not empty, or ``None``."""
        return self.text(key) or None

    def secret(self, key: str) -> Secret | None:
        """A password, as it is: Kafka's ConfigDef trims every value that is a string, passwords too."""
        value = self.text(key)
        return None if value is None else Secret(value)

    def words(self, key: str) -> tuple[str, ...]:
        """A comma-separated list; empty when it is not set."""
        return tuple(word.strip() for word in (self.get(key) or "").split(",") if word.strip())

    def switch(self, key: str, default: bool = False) -> bool:
        """``true`` or ``false``, as Java writes them."""
        value = (self.text(key) or str(default)).lower()
        if value not in ("true", "false"):
            raise self.fault(key, "is neither true nor false")
        return value == "true"

    def seconds(self, key: str, default: float) -> float:
        """Milliseconds in the file, seconds here."""
        value = self.text(key)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 18:
            raise self.fault(key, "is not a number of milliseconds")
        return int(value) / 1000


def read(path: str | None, above: Iterable[str] = ()) -> Properties:
    """The properties of a file, with ``key=value`` lines ``above`` it. Raises UsageError."""
    made = Properties()
    if path is not None:
        for number, key, value in parse(_read(path), path):
            made[key], made.places[key] = value, f"{path}: line {number}"
    for line in above:
        key, equals, value = line.partition("=")
        key = key.strip()
        if not equals or not key:
            # What has no "=" may be a password whose key was forgotten: it is not repeated.
            raise UsageError("-X: what follows is not key=value", hint="kshell -X security.protocol=SSL …")
        made[key], made.places[key] = value, "-X"
    if made.filled("config.providers"):
        from kshell.client.providers import resolve

        return resolve(made)
    return made


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
    """(line, key, value) of each entry, in their order; bytes are ISO-8859-1. Raises UsageError with file and line."""
    require("a properties file", "live", "javaproperties")
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
