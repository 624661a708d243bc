"""``save``: write the metadata of a source as a directory that Kafka's own tools read; batches are copied unchanged."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.local_files import complete_file
from kshell.engine.result import Report, Result, Section
from kshell.engine.staging import new_directory, require_new_directory
from kshell.errors import EXIT_DATA, EXIT_OK, CommandError, DataError, UsageError
from kshell.sources.directory.files import BOOTSTRAP, METADATA_DIRECTORY, STOP, Listing
from kshell.sources.directory.sidecar_files import UNKNOWN, cluster_id, meta_properties
from kshell.sources.directory.source import DirectorySource
from kshell.sources.directory.writer import MetadataWriter
from kshell.sources.source import Loaded
from kshell.tree.hash import image_hash

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_HINT = "choose a new directory, or empty that one"


class SaveArguments(Arguments):
    """Arguments and options of ``save``."""

    directory: str


def run(session: Session, args: SaveArguments) -> Result:
    """Write snapshots and log of the source, up to the point that is shown.

    Returns:
        The directory, the last record in it, its hash, and how many files and bytes it has. Exit code 4 if something of
        the source is damaged, so that the copy is not all of it.

    Raises:
        CommandError: the directory is not empty, or cannot be written.
        SourceError: the source cannot be read, or has no log.
        DataError: what is there cannot be saved.
    """
    session.source.require_log("save")
    if not args.directory:
        raise UsageError("save: the directory has no name", hint="save DIRECTORY")
    target = require_new_directory(session, args.directory, _HINT)
    with new_directory(args.directory, target) as place:

        def write(listing: Listing) -> tuple[MetadataWriter, Listing, list[str]]:
            for name in os.listdir(place):  # left by an earlier attempt, whose files a running server has removed
                shutil.rmtree(os.path.join(place, name))
            listing = listing._replace(on_corruption=STOP)  # what is skipped would be a gap, which nothing can load
            unnamed = next((file.path for file in listing.snapshots if file.end_offset is None), None)
            if unnamed is not None:
                hint = "call it END_OFFSET-EPOCH.checkpoint, with 20 and 10 digits, as Kafka does, and save it again"
                if os.path.basename(unnamed) == BOOTSTRAP:
                    hint = f"it is not part of the log, and belongs next to {METADATA_DIRECTORY}: copy it unchanged"
                raise DataError(f"{unnamed}: its name does not say at which offset of the log it ends", hint=hint)
            writer = MetadataWriter(place)
            notes = writer.snapshots(listing, session.until, session.progress)
            damage = writer.log(listing, session.until, session.progress)
            saved = (
                f"the log is saved from offset {writer.log_from} on, where the newest snapshot ends"
                if writer.log_from
                else "saved up to there"
            )
            return writer, listing, [*notes, *(f"{error.message}: {saved}" for error in damage)]

        writer, listing, notes = session.source.read_listed(write)
        session.remarks += notes
        if not writer.files:
            raise CommandError("save: the source has no record up to that moment")
        cluster = session.source.nodes.cluster_id if session.source.nodes is not None else cluster_id(listing)
        _write_sidecars(session, writer, listing, cluster)
        facts = _facts(session, _read_back(place), cluster)
        writer.manifest(facts)
    sizes = {"files": len(writer.files), "bytes": sum(file.size for file in writer.files)}
    section = Section("", "", {"directory": args.directory, **facts, **sizes})
    return Report([section], exit_code=EXIT_DATA if notes else EXIT_OK)


def _write_sidecars(session: Session, writer: MetadataWriter, listing: Listing, cluster: str | None) -> None:
    writer.finish()
    writer.properties(meta_properties(listing) or {"version": "1", "cluster.id": cluster or UNKNOWN})
    if not session.source.is_sample:
        writer.bootstrap(listing)


def _read_back(place: str) -> Loaded:
    """Load what was written like any other directory. Raises DataError if it is damaged."""
    loaded = DirectorySource(os.path.join(place, METADATA_DIRECTORY)).load()
    if loaded.damage:
        raise loaded.damage[0]
    return loaded


def _facts(session: Session, saved: Loaded, cluster: str | None) -> JsonObject:
    last, digest = saved.image.provenance, image_hash(saved.image)
    is_comparable = session.is_loaded and session.image.provenance.offset == last.offset
    if is_comparable and image_hash(session.image) != digest:
        raise DataError("save: the written copy does not give the same metadata as the source, so it was not kept")
    return {
        "source": session.source.name or session.source.path,
        "clusterId": cluster,
        "offset": last.offset,
        "epoch": last.epoch,
        "hash": digest,
    }


COMMAND = Command(
    name="save",
    task=Task.LOG,
    summary="the metadata as a directory that Kafka's tools read, from a live cluster, too",
    run=run,
    arguments=SaveArguments,
    args=(Arg("directory", "where it goes; made when it does not exist", complete=complete_file),),
    examples=(
        Example("save backup", "snapshots and log, up to the newest record"),
        Example("save before --as-of 100", "up to the record at an offset"),
    ),
    description=(
        "Writes __cluster_metadata-0 with every complete snapshot and the log, batch for batch as Kafka has them,"
        " meta.properties, and manifest.json with the size and SHA-256 of each file and the hash of the image (see"
        " hash). From controllers (-q) it writes what is committed and the leader still has. kshell, kafka-dump-log.sh"
        " and kafka-metadata-shell.sh read it; `recover` makes a directory that a controller starts from. The files"
        " hold secrets (SCRAM credentials) and are readable by their owner only. The directory appears when all of it"
        " is written and was read again; one that is not empty is refused."
    ),
)
