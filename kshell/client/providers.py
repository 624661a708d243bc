"""Variables in client properties, ``${provider:[path:]key}``, as Kafka's ``ConfigTransformer`` and providers read them.

Kafka leaves a variable that it cannot resolve as it is, and connects with that text for a password; here it is an
error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from kshell.client.properties import Properties, parse
from kshell.errors import UsageError

_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_LARGEST = 4 << 20
_PACKAGE = "org.apache.kafka.common.config.provider."

Lookup = Callable[[str, str], str]
"""(path, key) -> value. Raises LookupError with the reason."""


def resolve(properties: Properties) -> Properties:
    """The same properties with the variables of the providers that ``config.providers`` names replaced, once.

    Raises UsageError for a provider class that is none of Kafka's three, and for a variable without a value.
    """
    lookups: dict[str, Lookup] = {}
    for alias in properties.words("config.providers"):
        key = f"config.providers.{alias}.class"
        name = properties.filled(key)
        if name is None:
            continue  # as Kafka does
        make = _CLASSES.get(name.removeprefix(_PACKAGE))
        if make is None or not name.startswith(_PACKAGE):
            known = ", ".join(_CLASSES)
            raise properties.fault(key, f"{name} is not supported", hint=f"{_PACKAGE}… {known} are")
        lookups[alias] = make(properties, f"config.providers.{alias}.param.")
    made = Properties(places=properties.places)
    for key, value in properties.items():
        made[key] = _replaced(properties, key, value, lookups)
    return made


def _replaced(properties: Properties, key: str, value: str, lookups: Mapping[str, Lookup]) -> str:
    def replace(match: re.Match[str]) -> str:
        alias, path, name = match[1], match[2] or "", match[3]
        lookup = lookups.get(alias)
        if lookup is None:
            return match[0]
        try:
            return lookup(path, name)
        except LookupError as error:
            raise properties.fault(key, f"the variable {match[0]}: {error.args[0]}") from None

    return _VARIABLE.sub(replace, value)


def _environment(properties: Properties, prefix: str) -> Lookup:
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


def _file(properties: Properties, prefix: str) -> Lookup:
    allowed = _allowed(properties, prefix)

    def lookup(path: str, name: str) -> str:
        found = allowed(path)
        try:
            values = {key: value for _, key, value in parse(_text(found), found)}
        except UsageError as error:
            raise LookupError(error.message) from None
        if name not in values:
            raise LookupError(f"{found} has no key {name}")
        return values[name]

    return lookup


def _directory(properties: Properties, prefix: str) -> Lookup:
    allowed = _allowed(properties, prefix)

    def lookup(path: str, name: str) -> str:
        folder = allowed(path)
        if "/" in name or name in ("", ".", ".."):
            raise LookupError("names no file of the directory")
        return _text(os.path.join(folder, name))

    return lookup


def _allowed(properties: Properties, prefix: str) -> Callable[[str], str]:
    """A function from the path in a variable to the path to read, as ``AllowedPaths`` decides."""
    key = prefix + "allowed.paths"
    paths = [os.path.normpath(path) for path in properties.words(key)]
    for path in paths:
        if not os.path.isabs(path) or not os.path.exists(path):
            raise properties.fault(key, f"{path} is not an absolute path of something that exists")

    def allow(path: str) -> str:
        if not path:
            raise LookupError("a path is needed, as in ${alias:/path:key}")
        normal = os.path.normpath(path)
        if not paths:
            return path
        if not any(normal == one or normal.startswith(one.rstrip("/") + "/") for one in paths):
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
    "EnvVarConfigProvider": _environment,
    "FileConfigProvider": _file,
    "DirectoryConfigProvider": _directory,
}
