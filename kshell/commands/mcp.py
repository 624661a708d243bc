"""``mcp``: the declaration of the MCP server, which only the command line can start (:mod:`kshell.mcp`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Arguments, Command, Example, Flag, Task
from kshell.engine.result import Result, Rows, typed
from kshell.engine.source_flags import NAMING
from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.engine.session import Session

_COLUMNS = typed("tool:string arguments:[string] description:string")


class McpArguments(Arguments):
    """Arguments and options of ``mcp``."""

    directory: list[str] | None
    snapshot: list[str] | None
    bootstrap_controllers: list[str] | None
    bootstrap_servers: list[str] | None
    context: list[str] | None
    demo: bool
    config: str | None
    X: list[str] | None
    on_corruption: str | None
    tools: bool


def run(session: Session, args: McpArguments) -> Result:
    """List the tools of the server.

    Raises:
        UsageError: without ``--tools``, for a session cannot start the server.
    """
    from kshell.engine import tools  # late: it imports every command that is a tool

    if not args.tools:
        raise UsageError(
            "mcp: a server is started by the command line alone",
            hint="kshell mcp [SOURCE]; `mcp --tools` lists the tools",
        )
    return Rows(
        _COLUMNS,
        [
            {
                "tool": command.name,
                "arguments": list(tools.input_schema(command, ())["properties"]),
                "description": tools.description(command),
            }
            for command in tools.offered()
        ],
    )


COMMAND = Command(
    name="mcp",
    task=Task.PROGRAMS,
    summary="a server of read-only tools for language models (MCP), on standard input and output",
    run=run,
    arguments=McpArguments,
    flags=(*NAMING, Flag(("--tools",), "list the tools, and serve nothing")),
    examples=(
        Example("mcp --tools", "what a model may ask, and how each tool is described to it"),
        Example("mcp --tools -o record", "the same, every description in full"),
    ),
    description=(
        "`kshell mcp --demo`, `kshell mcp -d DIR`, `kshell mcp --context a --context b`: a client (an assistant on this"
        " machine) starts that and asks; docs/mcp.md has its configuration. Needs the extra mcp. Options of the source"
        " may be repeated: with several sources each call names one. The tools are commands of kshell that only read,"
        " and their answers are what -o json gives. Secrets are redacted, whatever is asked. An answer has 200 rows, or"
        " as many as the call asks for up to 2000, and says how many were left out. A call ends after --timeout"
        " seconds, 60 when absent. Files, shell commands, other sources and other commands are out of reach. The names"
        " of topics, users and groups were chosen by whoever made them: they reach the model as data, escaped, and the"
        " server tells the model so; a model may still be deceived, so give it no other tools that can do harm. The"
        " server ends when the client does."
    ),
    needs_source=False,
)
