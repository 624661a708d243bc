"""Parse the words of a command into typed arguments, as its declaration describes them.

kshell has its own parser, because completion and help use the same declarations (docs/decisions/0010). The module also
has the options of every command (:data:`SHAPING`) and the converters of common values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kshell.engine.declaration import CONDITION, Arguments, Command, Flag
from kshell.engine.formats import FORMATS
from kshell.engine.language import quote
from kshell.errors import UsageError, did_you_mean

COLORS = ("auto", "always", "never")
_LONGEST = 1e8
"""Seconds (about three years); the timer of the operating system takes no more."""
_DIGITS = 18
"""The most digits of a number, so that it fits into 64 bits."""
_DATE = re.compile(r"(?:--[\w-]+=)?\d{4}-\d\d-\d\d", re.ASCII)
_TIME_OF_DAY = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)


def seconds(text: str) -> float:
    """Convert a word to a positive number of seconds. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ValueError("a positive number of seconds")
    return min(value, _LONGEST)


def count(text: str) -> int:
    """Convert a word to a whole number of 0 or more, such as a depth or an offset. Raises ValueError."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError("a whole number of 0 or more")
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {_DIGITS} digits or fewer")
    return int(text)


def regex(text: str) -> re.Pattern[str]:
    """Compile a regular expression. Raises UsageError with the position of the fault."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None


def timezone(text: str) -> str:
    """Check the name of a time zone and return it. Raises ValueError."""
    from kshell.engine.zones import zone_name  # late: few lines name one

    return zone_name(text)


SHAPING = (
    Flag(("-o", "--output"), "format of the answer", metavar="FORMAT", choices=FORMATS),
    Flag(("--as-of",), "the state at an offset or time, not the newest", metavar="POINT", dashed=True),
    Flag(("--show-secrets",), "show secret values instead of [redacted]"),
    Flag(("--color",), "colours: auto, always or never", metavar="WHEN", choices=COLORS),
    Flag(("--no-header",), "no header line in tables"),
    Flag(
        ("--tz",),
        "time zone of times in text, and of times without a zone: Europe/Berlin, local",
        "ZONE",
        convert=timezone,
    ),
    Flag(("--timeout",), "give up after this many seconds", metavar="SECONDS", convert=seconds),
)
"""The options of every command, which shape its answer. A front end also accepts them before the command."""

_HELP = Flag(("-h", "--help"), "help on this command")


def shaping_of(command: Command) -> list[Flag]:
    """Return :data:`SHAPING` without the options whose names the command uses for its own."""
    return _untaken(command, SHAPING)


def flags_of(command: Command) -> list[Flag]:
    """Return all options that a command accepts: its own, then those of :data:`SHAPING` and help with other names."""
    return [*command.flags, *_untaken(command, (*SHAPING, _HELP))]


def _untaken(command: Command, flags: Iterable[Flag]) -> list[Flag]:
    taken = {name for flag in command.flags for name in flag.names}
    return [flag for flag in flags if taken.isdisjoint(flag.names)]


def option_words(command: Command, options: Mapping[str, object]) -> Iterator[str]:
    """Convert options that a program gives by name (``as_of``) to words of a command line for :func:`parse`.

    A switch is ``True``; a list is for options that may be repeated or take several names; ``None`` means not given.

    Raises:
        UsageError: the command has no such option.
    """
    declared = {flag.dest: flag for flag in flags_of(command)}
    for name, value in options.items():
        flag = declared.get(name)
        if flag is None:
            hint = did_you_mean(name, declared, f"`help {command.name}` lists the options")
            raise UsageError(f"{command.name}: there is no option {name}", hint=hint)
        option = max(flag.names, key=len)
        if flag.metavar is None:
            if value:
                yield option
        elif isinstance(value, list | tuple):
            texts = [str(each) for each in value]
            for text in texts if flag.repeat else [",".join(texts)]:
                yield f"{option}={text}"
        elif value is not None:
            yield f"{option}={value}"


def take_out(flags: Iterable[Flag], command: Command, tokens: list[str]) -> tuple[SimpleNamespace, list[str]]:
    """Separate the options of the whole program from the tokens of a command.

    Args:
        flags: the options to take out, except those whose names the command uses for its own.
        command: the command that the tokens are for.
        tokens: its arguments and options.

    Returns:
        A namespace with an attribute for each option that was looked for, and the tokens without these options.

    Raises:
        UsageError: an option is unknown or has a wrong value.
    """
    taken = _untaken(command, flags)
    reader = _Reader(command, [*flags_of(command), *taken], f"`help {command.name}` shows how it is used")
    names = {name for flag in taken for name in flag.names}
    rest = tokens
    if any(_is_one_of(token, names) for token in tokens):
        rest = reader.rest_without(names, tokens, intermixed=not command.takes_line)
    return SimpleNamespace(**{flag.dest: getattr(reader.namespace, flag.dest) for flag in taken}), rest


def parse(command: Command, tokens: list[str], *, explains: bool = True) -> Arguments:
    """Parse the tokens after a command's name into typed arguments; options may stand anywhere. Raises UsageError.

    If the last argument is a command line (``watch``), the first positional token ends the options, as the rest belongs
    to that line. ``explains``: the hint of an error proposes a correct line; ``False`` while such proposals are
    checked.
    """
    hint = f"`help {command.name}` shows how it is used"
    reader = _Reader(command, flags_of(command), hint, explains=explains)
    rest = reader.read(tokens, intermixed=not command.takes_line)
    missing = None
    for arg in command.args:
        if arg.arity in "1?":
            value: Any = rest.pop(0) if rest else None
        else:
            value, rest = rest, []
        setattr(reader.namespace, arg.name, value)
        if not value and value != "" and arg.arity in "1+":
            missing = missing or arg.name.upper()
    # Counts matter only without `--help`, so that `ls --help` needs no arguments.
    if not getattr(reader.namespace, "help", False):
        if missing:
            values = [getattr(reader.namespace, arg.name) for arg in command.args if arg.arity == "1"]
            raise UsageError(f"{command.name}: {missing} is missing", hint=_with_example(command, hint, values))
        if rest:
            from kshell.engine.habits import excess_hint  # late: only mistakes need it

            meant = excess_hint(command, reader.namespace, rest) if explains else None
            raise UsageError(
                f"{command.name}: too many arguments: {' '.join(rest)}", hint=meant or _with_example(command, hint)
            )
    return reader.namespace


def _with_example(command: Command, hint: str, values: Sequence[str | None] = ()) -> str:
    """Put a correct line before a hint: the command's first example, with the arguments that the user gave already."""
    if not (command.args and command.examples):
        return hint
    words = command.examples[0].line.split()
    named = words[1 : 1 + len(values)]
    if any(values) and len(named) == len(values) and not any(word[0] in "-'\"" for word in named):
        words = [words[0], *(quote(value) if value else word for value, word in zip(values, named, strict=True))]
    return f"such as `{' '.join(words)}`; {hint}"


def parse_options(program: str, flags: Iterable[Flag], tokens: list[str]) -> tuple[SimpleNamespace, list[str]]:
    """Parse the options at the front of tokens; return their values, and the rest of the tokens. Raises UsageError."""
    reader = _Reader(None, flags, f"`{program} --help` lists the options")
    return reader.namespace, reader.read(tokens, intermixed=False)


def _joined(flag: Flag, name: str) -> str:
    """Say how several values are written for an option that may be given only once."""
    if flag.metavar == CONDITION:
        return "join conditions: --where 'A and B'"
    return f"join them: {name} {flag.metavar}" if "," in (flag.metavar or "") else f"{name} takes one value"


def _with_moments(tokens: Iterable[str]) -> list[str]:
    """Join a date and the time of day after it, as in ``--since 2026-11-21 15:11``: two words of one point."""
    joined: list[str] = []
    for token in tokens:
        if joined and _TIME_OF_DAY.fullmatch(token) and _DATE.fullmatch(joined[-1]):
            joined[-1] = f"{joined[-1]} {token}"
        else:
            joined.append(token)
    return joined


class _Reader:
    """Reads options out of tokens, once; their values, given or not, are then the attributes of ``namespace``."""

    def __init__(self, command: Command | None, flags: Iterable[Flag], hint: str, *, explains: bool = True) -> None:
        """``command``: the command that the tokens belong to; ``None`` for options that stand before a command."""
        self.namespace = Arguments() if command is None else command.arguments()
        self._explains = explains
        self._command = command
        self._hint = hint
        self._flags: dict[str, Flag] = {}
        for flag in flags:
            setattr(self.namespace, flag.dest, flag.default if flag.metavar is not None else bool(flag.default))
            for name in flag.names:
                self._flags[name] = flag

    def read(self, tokens: Iterable[str], *, intermixed: bool) -> list[str]:
        """Take the options, and return the other tokens. Unless ``intermixed``, the first of these ends the options."""
        queue, rest = iter(_with_moments(tokens)), list[str]()
        for token in queue:
            if token == "--":
                rest.extend(queue)
            elif self._is_flag(token):
                self._take(token, queue)
            else:
                rest.append(token)
                if not intermixed:
                    rest.extend(queue)
        return rest

    def rest_without(self, names: Collection[str], tokens: list[str], *, intermixed: bool) -> list[str]:
        """Take the options, and return all tokens but the options of these names with their values."""
        rest: list[str] = []
        tokens = _with_moments(tokens)
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token == "--" or not (self._is_flag(token) or intermixed):
                return [*rest, *tokens[at:]]
            end = at + 1
            if self._is_flag(token):
                queue = iter(tokens[end:])
                self._take(token, queue)
                end = len(tokens) - len(list(queue))
            if not _is_one_of(token, names):
                rest += tokens[at:end]
            at = end
        return rest

    def _is_flag(self, token: str) -> bool:
        """Whether a token is an option: it begins with a dash, and is no number, duration (``-15m``) or longer text."""
        if len(token) < 2 or token[0] != "-":
            return False
        if _is_one_of(token, self._flags):
            return True
        return " " not in token and not (is_negative(token) and not any(map(_is_number, self._flags)))

    def _take(self, token: str, queue: Iterator[str]) -> None:
        name, equals, value = token.partition("=")
        flag = self._flags.get(name)
        if flag is None:
            self._take_bundle(token, queue)
        elif not equals:
            self._set(flag, name, self._next(flag, name, queue))
        elif flag.metavar is None:
            raise self._fault(f"{name} takes no value")
        else:
            self._set(flag, name, value)

    def _take_bundle(self, token: str, queue: Iterator[str]) -> None:
        """Take short options that share a token, the last perhaps with its value: ``-lR``, ``-ojson``, ``-lo json``."""
        if token[:2] not in self._flags:
            raise self._unknown(token, queue)
        for at, char in enumerate(token[1:], 1):
            name, rest = f"-{char}", token[at + 1 :]
            flag = self._flags.get(name)
            if flag is None:
                raise self._unknown(name, queue, f" (in {token})")
            if flag.metavar is not None and rest:
                self._set(flag, name, rest.removeprefix("="))
                return
            self._set(flag, name, self._next(flag, name, queue))

    def _next(self, flag: Flag, name: str, queue: Iterator[str]) -> str:
        """Take the next token as the value of an option; return ``""`` for a switch, which has no value."""
        if flag.metavar is None:
            return ""
        value = next(queue, None)
        if value is None or value == "--" or (self._is_flag(value) and not flag.dashed):
            raise self._fault(f"{name} needs a value, {flag.metavar}")
        return value

    def _set(self, flag: Flag, name: str, text: str) -> None:
        value = True if flag.metavar is None else self._converted(flag, name, text)
        if flag.once and getattr(self.namespace, flag.dest) is not None:
            raise self._fault(f"{name} is given twice", _joined(flag, name))
        if flag.repeat:
            value = [*(getattr(self.namespace, flag.dest) or ()), value]
        setattr(self.namespace, flag.dest, value)

    def _converted(self, flag: Flag, name: str, text: str) -> object:
        try:
            value = flag.convert(text)
        except ValueError as error:
            raise self._fault(f"{name}: {text!r} is not {error}") from None
        if flag.choices and value not in flag.choices:
            raise self._fault(f"{name}: {text!r} is none of {', '.join(flag.choices)}")
        return value

    def _fault(self, message: str, hint: str | None = None) -> UsageError:
        owner = "" if self._command is None else f"{self._command.name}: "
        return UsageError(f"{owner}{message}", hint=hint or self._hint)

    def _unknown(self, token: str, queue: Iterator[str], where: str = "") -> UsageError:
        name, _, value = token.partition("=")
        return self._fault(f"there is no option {name}{where}", self._meant(name, value or next(queue, None)))

    def _meant(self, name: str, value: str | None) -> str | None:
        """Return a hint for an unknown option: what the user may have meant. ``value``: the word after it."""
        if not self._explains:
            return None
        if self._command is not None:
            from kshell.engine.habits import option_hint  # late: only mistakes need it
            from kshell.engine.source_flags import NAMING

            if hint := option_hint(self._command, name, value):
                return hint
            source = next((flag for flag in NAMING if name in flag.names), None)
            if source is not None:
                source_words = name if source.metavar is None else f"{name} {source.metavar}"
                return f"the source comes first, when kshell starts: `kshell {source_words} {self._command.name}`"
        bare = {flag.lstrip("-"): flag for flag in self._flags}  # dashes are alike in all of them
        return did_you_mean(name.lstrip("-"), bare, write=bare.__getitem__)


def _is_one_of(token: str, names: Collection[str]) -> bool:
    """Whether a token is one of these options, alone or with its value (``--name=VALUE``, ``-nVALUE``)."""
    return token.partition("=")[0] in names or token[:2] in names


def _is_number(token: str) -> bool:
    return token[:1] == "-" and token[1:].replace(".", "", 1).isdigit()


def is_negative(token: str) -> bool:
    """Whether a token that begins with a dash is a number or a duration before now (``-15m``), so not an option."""
    return _is_number(token) or re.fullmatch(r"-[0-9]+(ms|[smhdw])", token) is not None
