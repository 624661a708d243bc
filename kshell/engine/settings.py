"""The settings of a session: what ``set`` knows. What they hold is in ``Session.settings``, under their names.

Showing secrets is no setting: it is asked for anew each time.
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
    """A setting. ``convert`` makes its value of a word, or raises ValueError with what the word may be."""

    name: str
    help: str
    convert: Callable[[str], Any]
    default: Any
    choices: Collection[str] = ()

    def format_value(self, value: Any) -> Any:
        """A value as it would be typed."""
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
        Setting("timeout", "give up after so many seconds", seconds, None),
        Setting("timezone", "time zone of text, and of times that name none", timezone, None),
        Setting("width", "columns of an answer; those of the terminal when not set", _columns, None),
    )
}


def setting(name: str) -> Setting:
    """The setting of that name. Raises UsageError, which proposes names that exist."""
    match = SETTINGS.get(name)
    if match is None:
        hint = did_you_mean(name, SETTINGS, f"settings: {', '.join(SETTINGS)}")
        raise UsageError(f"set: there is no setting {name}", hint=hint)
    return match


def assign(session: Session, name: str, text: str) -> None:
    """Sets one. Raises UsageError for a name or a word that is not right."""
    chosen = setting(name)
    try:
        session.settings[name] = chosen.convert(text)
    except ValueError as error:
        raise UsageError(f"set {name}: {text!r} is not {error}") from None


def value_of(session: Session, name: str) -> Any:
    """What holds now."""
    return session.settings.get(name, SETTINGS[name].default)


def complete_name(session: Session, typed: str) -> Iterable[str]:
    """The settings that begin like what was typed."""
    return [name for name in SETTINGS if name.startswith(typed)]


def words_after(tokens: list[str]) -> Iterable[str]:
    """What the setting that was named last may become."""
    named = SETTINGS.get(tokens[-1]) if tokens else None
    return tuple(named.choices) if named else ()
