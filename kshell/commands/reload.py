"""``reload``: read the source again, so that the session shows its newest state."""

from __future__ import annotations

from kshell.engine.declaration import Arguments, Command, Example, Task
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import KshellError


def run(session: Session, args: Arguments) -> Result:
    """Read the source now, not at the next command, so that errors show here; if it fails, the old state stays."""
    previous: dict[str, object] = {
        name: session.__dict__[name] for name in ("loaded", "root") if name in session.__dict__
    }
    session.reload()
    try:
        session.image  # noqa: B018  # the property loads the source
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
    description=(
        "A session shows the state that it read first, until a command names now, a time that counts from now, or a"
        " later point; reload shows the newest. The working directory is kept."
    ),
)
