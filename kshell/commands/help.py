"""``help``: list all commands by task, or show how one command is used, or a page on a topic such as exit codes."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.engine import registry
from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.help_pages import PAGES, complete_subject, unknown
from kshell.engine.result import Report, Result, Row, Rows, Section, Text, typed
from kshell.engine.session import Session
from kshell.engine.usage import help_text


class HelpArguments(Arguments):
    """Arguments and options of ``help``."""

    command: str | None


def run(session: Session, args: HelpArguments) -> Result:
    """Return all commands as rows, or one help text; for an alias, its meaning. Raises UsageError if it is unknown."""
    name = args.command
    if name is None:
        return _overview()
    if name in session.aliases and name not in registry.names():
        return Text(f"{name} is an alias for {session.aliases[name]}")
    if name in registry.names():
        return Text(help_text(registry.get(name)), markdown=True)
    if name not in PAGES:
        raise unknown(name)
    return Text(PAGES[name].text(), markdown=True)


def _overview() -> Result:
    """All commands by task, and after them the help topics."""
    commands = registry.commands()
    rows: list[Row] = [
        {"name": command.name, "summary": command.summary, "task": command.task.value} for command in commands
    ]
    result = Rows(typed("name:string summary:string task:string"), rows)
    sections = [
        Section(
            task.name.lower(), task.value, {row["name"]: row["summary"] for row in rows if row["task"] == task.value}
        )
        for task in Task
    ]
    topics = {f"help {name}": page.summary for name, page in PAGES.items()}
    start = (
        "Start with status, then health. `help COMMAND` says how a command is used, `help cookbook` what to ask when."
    )
    result.readable = Report(
        [
            Section("start", start, {}),
            *sections,
            Section("topics", "More", {"help COMMAND": "how a command is used", **topics}),
        ]
    )
    return result


def _complete(session: Session, typed: str) -> Iterable[str]:
    return complete_subject(session, typed)


COMMAND = Command(
    name="help",
    summary="the commands by task, or how one is used",
    run=run,
    arguments=HelpArguments,
    args=(
        Arg(
            "command",
            "a command or a topic; both are listed when absent",
            kind="command",
            arity="?",
            complete=_complete,
        ),
    ),
    examples=(
        Example("help", "the commands"),
        Example("help find", "how find is used"),
        Example("find --help", "the same"),
        Example("help exit-codes", "what scripts need to know"),
    ),
    needs_source=False,
)
