"""``plan-restore``: the commands that would recreate topics, configs, quotas and ACLs. It runs none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Command, Example, Flag
from kshell.engine.result import Result, Row, Rows
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session


def _kinds() -> tuple[str, ...]:
    from kshell.cluster.restore import KINDS

    return KINDS


_SERVER = '"$BOOTSTRAP_SERVER"'
_FIELDS = (
    Field("kind", Enumeration(_kinds), "topic, config, quota, acl, user, token, or source for what is not known"),
    Field("subject", "string", "what it is about"),
    Field("command", "string", "the command; null where there is none"),
    Field("note", "string", "what else is to be done, or why there is no command"),
)


def run(session: Session, args: Any) -> Result:
    """A row a command; as text, a script to read, edit and run."""
    from kshell.cluster.restore import RESTORED, Tools, steps
    from kshell.engine.shell_words import quote

    image = image_for(session, "plan-restore", RESTORED)
    server = quote(args.bootstrap_server) if args.bootstrap_server is not None else _SERVER
    made = steps(image, Tools(server, args.command_config))
    result = select(_FIELDS, [step._asdict() for step in made], args)
    if args.columns is None:
        result.for_people = Rows((), _Script(result, with_server=args.bootstrap_server is None), "lines", "line")
    return result


class _Script:
    """The rows as lines of a script; what has no command is a comment."""

    def __init__(self, rows: Rows, *, with_server: bool) -> None:
        self._rows = rows
        self._with_server = with_server

    def __iter__(self) -> Iterator[Row]:
        yield {"line": "# Read this before you run any of it; for bash or zsh."}
        if self._with_server:
            yield {"line": ': "${BOOTSTRAP_SERVER:?host:port of the cluster to restore into}"'}
        for row in self._rows:
            if row["note"] is not None:
                yield {"line": f"# {row['kind']} {row['subject']}: {row['note']}"}
            if row["command"] is not None:
                yield {"line": row["command"]}


COMMAND = Command(
    name="plan-restore",
    summary="print the commands that would recreate topics, configs, quotas and ACLs",
    run=run,
    flags=(
        Flag(("--bootstrap-server",), "the cluster to restore into; $BOOTSTRAP_SERVER when absent", metavar="LIST"),
        Flag(("--command-config",), "a client properties file that each command is to use", metavar="FILE"),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("plan-restore", "everything, as a script"),
        Example("plan-restore --where 'kind == topic' --bootstrap-server kafka-1.shop.example:9092", "topics only"),
        Example("plan-restore --where 'command == null' -o json", "what no command brings back"),
    ),
    description=(
        "Nothing is run, and nothing is asked of the cluster to restore into. Topics get the replicas that they have"
        " (or are being moved to) on brokers of the same ids, and new topic ids; data and offsets are not restored."
        " Secrets are never printed, --show-secrets or not: passwords among the configs, SCRAM credentials and"
        " delegation tokens are comments. Every name and value is quoted for the shell."
    ),
)
