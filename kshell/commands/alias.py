"""``alias``: a word of your own for a command with arguments."""

from __future__ import annotations

import re

from kshell.engine.declaration import Arg, Arguments, Command, Example
from kshell.engine.execution import is_query
from kshell.engine.language import parse_line, parts, quote
from kshell.engine.result import Nothing, Result, Rows, typed
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError, did_you_mean

_NAME = re.compile(r"[\w.+-][\w.+:@-]*\Z")


class AliasArguments(Arguments):
    """Arguments and options of ``alias``."""

    name: str | None
    line: list[str]


def run(session: Session, args: AliasArguments) -> Result:
    """Define an alias, or list aliases if no line is given; ``name=line`` in one word also defines one."""
    name, tokens = args.name, args.line
    if name is not None and "=" in name and not tokens:
        name, _, line = name.partition("=")
        tokens = [line]
    if name is None or not tokens:
        return _alias_rows(session, name)
    line = tokens[0] if len(tokens) == 1 else " ".join(map(quote, tokens))
    if not _NAME.match(name) or name.startswith("-"):
        raise UsageError(f"alias: {name!r} cannot be a name", hint="letters, digits, and . + - _ : @")
    meaning = parse_line(line)
    if not meaning.words or meaning.target or meaning.program or len(parts(line)) > 1 or is_query(line):
        raise UsageError("alias: one command with arguments is needed, without redirection or pipe")
    if meaning.words[0].text == "=":
        raise UsageError("alias: there are blanks around =", hint=f"alias {name}='LINE', or alias {name} 'LINE'")
    session.aliases[name] = line
    return Nothing()


def _alias_rows(session: Session, name: str | None) -> Rows:
    if name is not None and name not in session.aliases:
        raise CommandError(f"{name}: no such alias", hint=did_you_mean(name, session.aliases))
    rows = [
        {"name": alias, "line": line}
        for alias, line in sorted(session.aliases.items())
        if name is None or alias == name
    ]
    return Rows(columns=typed("name:string line:string"), rows=rows)


COMMAND = Command(
    name="alias",
    summary="words of your own for commands with arguments",
    run=run,
    arguments=AliasArguments,
    args=(
        Arg("name", "the new word; all aliases are shown when absent", arity="?"),
        Arg("line", "the command that it stands for; the alias is shown when absent", arity="*"),
    ),
    examples=(
        Example("alias ll 'ls -l'", "a long listing by two letters"),
        Example('alias names="ls /image/topics/byName"', "as other shells write it"),
        Example("alias", "what is defined"),
    ),
    description=(
        "An alias stands for the first word of a line; what follows it is added to its meaning. Quote a meaning that"
        " has flags. unalias takes one back."
    ),
    needs_source=False,
)
