"""``reload``: the source as it is now."""

from __future__ import annotations

from typing import Any

from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import KshellError


def run(session: Session, args: Any) -> Result:
    """Reads at once, so that what is wrong is said now; what was shown before stays when reading fails."""
    previous: dict[str, Any] = {name: session.__dict__[name] for name in ("loaded", "root") if name in session.__dict__}
    session.reload()
    try:
        session.image  # noqa: B018  # reading it is the point
    except KshellError:
        session.__dict__.update(previous)
        raise
    return Nothing()


COMMAND = Command(
    name="reload",
    task=Task.LOG,
    summary="read the source again",
    run=run,
    examples=(
        Example("reload", "see what was written since"),
        Example("reload --timeout 60", "the same, for a minute at most"),
    ),
    description="A session shows the state that it read first; reload shows the newest. The working directory is kept.",
)
