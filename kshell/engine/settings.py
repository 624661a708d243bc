"""The settings that the command ``set`` can change. Their values are in ``Session.settings``, by name.

Whether secrets are shown is deliberately not a setting: each line has to ask for it with ``--show-secrets``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.arguments import COLORS, count, seconds, timezone
from kshell.engine.formats import FORMATS
from kshell.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.engine.session import Session

_ON = ("on", "true", "yes", "1")
_OFF = ("off", "false", "no", "0")


def _switch(text: str) -> bool:
    if text.lower() in _ON:
        return True
    if text.lower() in _OFF:
        return False
    raise ValueError("on or off")


def _one_of(choices: Collection[str]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return convert


def _columns(text: str) -> int:
    try:
        number = count(text)
    except ValueError:
        number = 0
    if not number:
        raise ValueError("a number of columns, 1 or more")
    return number


class Setting(NamedTuple):
    """A setting. ``convert`` converts a word to its value, or raises ValueError whose text says what is allowed."""

    name: str
    help: str
    convert: Callable[[str], object]
    default: object
    choices: Collection[str] = ()

    def format_value(self, value: object) -> Any:
        """Return a value as the user would type it: ``on`` and ``off`` for booleans."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("color", "colours in answers", _one_of(COLORS), "auto", COLORS),
        Setting("editing-mode", "keys of the interactive shell", _one_of(("emacs", "vi")), "emacs", ("emacs", "vi")),
        Setting("header", "the header line of tables", _switch, True, ("on", "off")),
        Setting("keep-going", "go on after a line that fails", _switch, False, ("on", "off")),
        Setting("output", "format of answers", _one_of(FORMATS), "text", FORMATS),
        Setting("pager", "show long answers in the pager", _switch, True, ("on", "off")),
        Setting("timeout", "give up after this many seconds", seconds, None),
        Setting("timezone", "time zone of times in text, and of times without a zone", timezone, None),
        Setting("width", "columns of an answer; those of the terminal when not set", _columns, None),
    )
}


def setting(name: str) -> Setting:
    """Return the setting of that name. Raises UsageError with a hint of similar names."""
    match = SETTINGS.get(name)
    if match is None:
        hint = did_you_mean(name, SETTINGS, f"settings: {', '.join(SETTINGS)}")
        raise UsageError(f"set: there is no setting {name}", hint=hint)
    return match


def assign(session: Session, name: str, text: str) -> None:
    """Set a setting of the session to a typed value. Raises UsageError for an unknown name or a wrong value."""
    chosen = setting(name)
    try:
        session.settings[name] = chosen.convert(text)
    except ValueError as error:
        raise UsageError(f"set {name}: {text!r} is not {error}") from None


def value_of(session: Session, name: str) -> Any:
    """Return the current value of a setting, or its default."""
    return session.settings.get(name, SETTINGS[name].default)


def complete_name(session: Session, typed: str) -> Iterable[str]:
    """Return the names of settings that begin with the typed text."""
    return [name for name in SETTINGS if name.startswith(typed)]


def words_after(tokens: list[str]) -> Iterable[str]:
    """Return the values that completion proposes after the name of a setting, the last of ``tokens``."""
    named = SETTINGS.get(tokens[-1]) if tokens else None
    return tuple(named.choices) if named else ()
