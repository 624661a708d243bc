"""``man``: everything about a command, or about a config of Kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kshell.engine import registry
from kshell.engine.declaration import Arg, Command, Example
from kshell.engine.result import Result, Text
from kshell.engine.session import Session
from kshell.engine.usage import man_text
from kshell.errors import UsageError

_CONFIG = "config"


def run(session: Session, args: Any) -> Result:
    """The long form of ``help``; ``man config NAME`` is about a config."""
    if args.command == _CONFIG:
        if args.name is None:
            raise UsageError("man config: the name of a config is missing", hint="such as man config retention.ms")
        from kshell.cluster.config_page import page

        return page(session, args.name)
    if args.name is not None:
        raise UsageError(f"man: {args.name} is one word too many", hint="man COMMAND, or man config NAME")
    if args.command in registry.names():
        return Text(man_text(registry.get(args.command)), markdown=True)
    from kshell.engine.help_pages import PAGES, unknown

    if args.command not in PAGES:
        raise unknown(args.command)
    return Text(PAGES[args.command](), markdown=True)


def _complete(session: Session, typed: str) -> Iterable[str]:
    from kshell.engine.help_pages import complete_subject

    return [*complete_subject(session, typed), *([_CONFIG] if _CONFIG.startswith(typed) else [])]


def _configs(words: list[str]) -> Iterable[str]:
    """The configs that Kafka defines, after the word that is about them."""
    if words[-1:] != [_CONFIG]:
        return ()
    from kshell.metadata.config_types import TABLE, known_types

    return sorted({key for kind in TABLE for key in known_types(kind)})


COMMAND = Command(
    name="man",
    summary="everything about a command, or about a config",
    run=run,
    args=(
        Arg(
            "command", "a command; a subject: exit-codes, where; or the word config", kind="command", complete=_complete
        ),
        Arg("name", "after config: the name of a config, such as retention.ms", arity="?", after=_configs),
    ),
    examples=(
        Example("man dump", "its description, options, examples and exit codes"),
        Example("man find -o markdown > find.md", "as a page of its own"),
        Example("man config cleanup.policy", "a config: its type, default and valid values"),
    ),
    description=(
        "man COMMAND prints the command's page. man config NAME tells a config's type, default, valid values and"
        " synonyms: of a running cluster (-q, -b) as a node of it says, with Kafka's documentation; else as Kafka's own"
        " definitions of 3.3 to 4.4 have it. A config that several types of resources have gets a part for each."
    ),
    needs_source=False,
)
