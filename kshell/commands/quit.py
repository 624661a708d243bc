"""``quit``: the same command as ``exit``, under the name that some other shells use."""

from __future__ import annotations

from kshell.commands import exit as exit_command
from kshell.engine.declaration import Example

COMMAND = exit_command.COMMAND._replace(
    name="quit",
    summary="the same as exit",
    examples=(Example("quit", "leave with exit code 0"), Example("quit 3", "leave with an exit code of its own", 3)),
)
