"""Words about commands, made of their declarations: what ``help``, ``man`` and the reference show. All is Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.commands.base.arguments import shaping_of
from kshell.commands.base.conditions import CONDITIONS
from kshell.commands.base.spec import CONDITION, Arg, Command, Example, Flag

EXIT_CODES = (
    (0, "done; of commands that look for something: found"),
    (1, "the command failed (no such path, …), or found nothing"),
    (2, "the line is not understood"),
    (3, "the source cannot be read or reached"),
    (4, "the data is damaged or incomplete: the answer is the last good state"),
    (130, "interrupted"),
)


def synopsis(command: Command) -> str:
    """One line: ``find [-name GLOB] [--values] [PATH …]``."""
    flags = [f"[{_named(flag, shortest=True)}]{' …' if flag.repeat else ''}" for flag in command.flags]
    return " ".join([command.name, *flags, *map(_placed, command.args)])


def _placed(arg: Arg) -> str:
    name = arg.name.upper()
    return {"1": name, "?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}[arg.arity]


def _named(flag: Flag, *, shortest: bool = False) -> str:
    names = [min(flag.names, key=len)] if shortest else list(flag.names)
    return ", ".join(names) + (f" {flag.metavar}" if flag.metavar else "")


def _sentence(words: str) -> str:
    """A phrase as a sentence."""
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def _items(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- `{name}`: {words}" for name, words in pairs)


def arguments(command: Command) -> str:
    """A list of what the command takes; empty when that is nothing."""
    return _items((arg.name.upper(), arg.help) for arg in command.args)


def options(flags: Iterable[Flag]) -> str:
    """A list of flags; empty when there are none."""
    return _items((_named(flag), flag.help + _choices(flag)) for flag in flags)


def _choices(flag: Flag) -> str:
    said = not flag.choices or flag.choices[0] in flag.help
    return "" if said else f" ({', '.join(flag.choices)})"


def examples(command: Command) -> str:
    """The examples as lines to copy, each below what it is for."""
    return "```\n" + "\n".join(f"# {purpose(one)}\n{one.line}" for one in command.examples) + "\n```"


def purpose(example: Example) -> str:
    """What an example is for, and the exit code that it ends with on the sample unless that is 0."""
    return example.purpose + (f" (exit code {example.exit_code})" if example.exit_code else "")


def conditions(command: Command) -> str:
    """The grammar of conditions, for commands that take one."""
    return CONDITIONS.removesuffix("\n") if any(flag.metavar == CONDITION for flag in command.flags) else ""


def help_text(command: Command) -> str:
    """On one screen: how it is used, what it does, its options, examples."""
    short = " ".join(f"`{flag.names[0]}`" for flag in shaping_of(command))
    parts = [
        f"`{synopsis(command)}`",
        _sentence(command.summary),
        arguments(command),
        options(command.flags),
        examples(command),
        f"Every command also takes {short}: `man {command.name}` says more.",
    ]
    return "\n\n".join(part for part in parts if part)


def man_text(command: Command) -> str:
    """All there is to say."""
    sections = [
        ("NAME", f"{command.name} - {command.summary}"),
        ("SYNOPSIS", f"`{synopsis(command)}`"),
        ("DESCRIPTION", command.description or _sentence(command.summary)),
        ("ARGUMENTS", arguments(command)),
        ("OPTIONS", options(command.flags)),
        ("CONDITIONS", conditions(command)),
        ("OPTIONS OF EVERY COMMAND", options(shaping_of(command))),
        ("EXAMPLES", examples(command)),
        ("EXIT CODES", _items((str(code), words) for code, words in EXIT_CODES)),
    ]
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in sections if body)
