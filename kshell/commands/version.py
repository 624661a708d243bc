"""``version``: the version of kshell, and the range of metadata.version that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Arguments, Command, Example
from kshell.engine.result import Report, Result, Section
from kshell.metadata.metadata_version import NEWEST_NAMED, version_name
from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.engine.session import Session


def run(session: Session, args: Arguments) -> Result:
    """Return kshell's version, and the lowest and highest metadata.version that it knows."""
    facts = {
        "kshell": __version__,
        "metadataVersions": {"min": version_name(1), "max": version_name(NEWEST_NAMED)},
    }
    return Report([Section("", "", facts)])


COMMAND = Command(
    name="version",
    summary="the version of kshell, and of the metadata that it knows",
    run=run,
    examples=(Example("version", "for a bug report"), Example("version -o json", "for a script")),
    needs_source=False,
)
