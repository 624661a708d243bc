"""Texts about commands for ``help``, ``man`` and the reference, generated from the declarations as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.engine.arguments import shaping_of
from kshell.engine.declaration import CONDITION, Arg, Command, Example, Flag
from kshell.engine.predicates import FAIL_IF_ANY, meaning_of_no
from kshell.errors import EXIT_CODES, EXIT_FINDING

CONDITIONS = """\
A condition compares fields by their names in `-o json`, whichever columns are shown. It is one word: quote it.

- `partitions > 3`, `state == offline`, `rack != null`: `==` (or `=`), `!=`, `<`, `<=`, `>`, `>=`. Numbers are compared\
 with numbers, text with text; a word that is no field is text.
- `release == '4.3'`, `value == "2"`: text that looks like a number, or has blanks or marks in it, needs quotes.
- `name ~ '^orders'`, `name !~ 'test|tmp'`: Python's regular expressions, found anywhere in the text. One that needs\
 more than a second for one text is given up.
- `3 in isr`, `state in [offline, under-min-isr]`, `'retention.ms' in configs`, `'etc' in value`: an element of a list,\
 a key of an object, a part of a text.
- `len(isr) < len(replicas)`: how long a list, an object or a text is.
- `any(listeners, port == 9093)`, `all(isr, it in replicas)`: some element, every element; `it` is the element itself.
- `not fenced`, `a == 1 and (b == 2 or c == 3)`: `not` before `and` before `or`.
- `configs.cleanup.policy == compact`, `nodes.3000.max >= 17`, `isr.0 == 1`, `nodes["10.0.0.1:9093"] != null`: dots and\
 brackets lead into objects and lists.

null is a value: `rack == null` is true where there is none, and so is `rack != a`. All else that is asked of null is\
 false: `rack < b`, `rack ~ ''`, `1 in elr`; so `not rack ~ b` is true. any and all are false of null; of an empty list\
 all is true. What lies below null is null.
"""


def synopsis(command: Command) -> str:
    """Return the usage of a command on one line: ``find [-name GLOB] [--values] [PATH …]``."""
    flags = [_flag(flag) for flag in command.flags]
    return " ".join([command.name, *flags, *map(_placed, command.args)])


def _flag(flag: Flag) -> str:
    name = _named(flag, shortest=True)
    return (name if flag.required else f"[{name}]") + (" …" if flag.repeat else "")


def _placed(arg: Arg) -> str:
    name = arg.name.upper()
    return {"1": name, "?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}[arg.arity]


def _named(flag: Flag, *, shortest: bool = False) -> str:
    names = [min(flag.names, key=len)] if shortest else list(flag.names)
    return ", ".join(names) + (f" {flag.metavar}" if flag.metavar else "")


def _sentence(phrase: str) -> str:
    """Make a sentence of a phrase: capital letter and full stop."""
    return phrase[:1].upper() + phrase[1:] + ("" if phrase.endswith(".") else ".")


def _items(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- `{name}`: {description}" for name, description in pairs)


def arguments(command: Command) -> str:
    """Return a list of the positional arguments; empty if there are none."""
    return _items((arg.name.upper(), arg.help) for arg in command.args)


def options(flags: Iterable[Flag]) -> str:
    """Return a list of options; empty if there are none."""
    return _items((_named(flag), flag.help + _choices(flag)) for flag in flags)


def _choices(flag: Flag) -> str:
    is_listed = not flag.choices or next(iter(flag.choices)) in flag.help
    return "" if is_listed else f" ({', '.join(flag.choices)})"


def examples(command: Command) -> str:
    """Return a code block with the examples, each below a comment that says what it is for."""
    return "```\n" + "\n".join(f"# {purpose(example)}\n{example.line}" for example in command.examples) + "\n```"


def purpose(example: Example) -> str:
    """Return what an example is for, and its exit code on the sample unless that is 0."""
    return example.purpose + (f" (exit code {example.exit_code})" if example.exit_code else "")


def conditions(command: Command) -> str:
    """Return the grammar of conditions if the command has an option that takes one; else an empty text."""
    return CONDITIONS.removesuffix("\n") if any(flag.metavar == CONDITION for flag in command.flags) else ""


def exit_codes(command: Command | None = None) -> str:
    """Return a list of the exit codes; for a command with its own meaning of 1, or without 1 if it never says no."""
    if command is None:
        return _items((str(code), meaning) for code, meaning in EXIT_CODES)
    own = meaning_of_no(command)
    codes = [(code, own if code == EXIT_FINDING else meaning) for code, meaning in EXIT_CODES]
    return _items((str(code), meaning) for code, meaning in codes if meaning)


def exit_codes_page(commands: Iterable[Command]) -> str:
    """Return the page about exit codes: all codes, when each predicate ends with 1, and the code of several lines."""
    own = [(command.name, command.exit_1_when) for command in commands if command.exit_1_when]
    return "\n\n".join(
        [
            exit_codes(),
            "The commands that answer a question, and when they end with 1:",
            _items(own),
            f"Every table takes `--fail-if-any`: {FAIL_IF_ANY.help}. Nothing else ends with 1 (but `exit 1`), so that a"
            ' script can distinguish "bad" from "not known". What takes longer than `--timeout` ends with 3.'
            " If the program behind a `|` fails, it is 2: so it is after a `grep` without a match. With several lines,"
            " kshell stops at the first that does not end with 0, and ends with its code; with `--keep-going` all lines"
            " run, and the highest code counts.",
        ]
    )


def help_text(command: Command) -> str:
    """Return the page of ``help COMMAND``, which fits on one screen: usage, summary, options, examples."""
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
    """Return the page of ``man COMMAND``, with everything that the declaration says."""
    sections = [
        ("NAME", f"{command.name} - {command.summary}"),
        ("SYNOPSIS", f"`{synopsis(command)}`"),
        ("DESCRIPTION", command.description or _sentence(command.summary)),
        ("ARGUMENTS", arguments(command)),
        ("OPTIONS", options(command.flags)),
        ("CONDITIONS", conditions(command)),
        ("OPTIONS OF EVERY COMMAND", options(shaping_of(command))),
        ("EXAMPLES", examples(command)),
        ("EXIT CODES", exit_codes(command)),
    ]
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in sections if body)
