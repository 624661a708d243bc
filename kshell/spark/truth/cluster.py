"""The truth of one cluster: what its copies hold that its tables do not have yet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kshell.errors import SourceError, SourceNotFoundError
from kshell.sources.directory.files import scan as list_again
from kshell.sources.directory.source import ATTEMPTS, PAUSE
from kshell.sources.points import Point
from kshell.spark.files.scan import Found
from kshell.spark.truth.bases import Base, Begun, Snapshots, eras
from kshell.spark.truth.continues import still_holds
from kshell.spark.truth.copy_log import Bad, Log, Part
from kshell.spark.truth.given import slices
from kshell.spark.truth.looked import Looked, look
from kshell.spark.truth.merge import stretches
from kshell.spark.truth.reaching import Reaching
from kshell.spark.truth.run_parts import since as part_since
from kshell.spark.truth.run_parts import until as part_until
from kshell.spark.truth.told import told
from kshell.spark.truth.values import Reached, Truth

_NOW = Point()


class Asked(NamedTuple):
    """What is wanted of a cluster: as the arguments of :func:`truth`."""

    cluster_id: str
    reached: Reached | None
    since: Point
    until: int | None
    cut: int
    bad: Bad


class New(NamedTuple):
    """What of a log is to be read; ``before``: the offset that was to come, ``None`` at the beginning."""

    log: Log
    begun: Begun
    before: int | None


def truth(
    cluster_id: str,
    copies: Sequence[Found],
    reached: Reached | None = None,
    *,
    since: Point = _NOW,
    until: int | None = None,
    cut: int,
    bad: Bad = (),
    anew: bool = False,
) -> Truth:
    """What is to be read of the copies (at least one) of a cluster. The same files give the same truth.

    One copy is planned by its headers; several are read, and compared, as a whole or, with ``reached``, from there on,
    unless one of them is new. ``since``: begin at the newest snapshot at or before that point from which the log goes
    on. ``until``: no record of the log at or after that offset. ``cut``: bytes of a slice, about. ``bad``: batches
    that are known to be damaged, because somebody read them: as if they were not there. ``anew``: what the tables have
    must go, whatever the copies say; what it was is read again, however early ``until`` is.

    What looks like damage is believed only when the files did not change meanwhile. Raises SourceError.
    """
    asked = Asked(cluster_id, reached, since, until, cut, bad)
    if anew := anew and reached is not None:
        asked = _begun_anew(asked)
    wanted = sorted(copies, key=lambda one: one.path)
    for attempt in range(ATTEMPTS):
        last_try = attempt == ATTEMPTS - 1
        try:
            made, is_odd = _made(wanted, asked)
            if last_try or not is_odd or all(list_again(one.path) == one.listing for one in wanted):
                return made._replace(restart=made.restart or anew)
        except FileNotFoundError as error:
            if last_try:
                raise SourceError(f"{error.filename}: the file vanishes again and again") from None
        except SourceNotFoundError:
            if last_try:
                raise
        time.sleep(PAUSE)
        wanted = listed_again(wanted)
    raise AssertionError("the last attempt returns or raises")


def listed_again(copies: Sequence[Found]) -> list[Found]:
    """The copies that are still there. Raises SourceNotFoundError when none is."""
    found: list[Found] = []
    for place, one in enumerate(copies):
        try:
            found.append(one._replace(listing=list_again(one.path)))
        except SourceNotFoundError:
            if not found and place == len(copies) - 1:
                raise
    return found


def _made(copies: Sequence[Found], asked: Asked) -> tuple[Truth, bool]:
    """The truth, and whether anything looks like damage. Raises FileNotFoundError (list again)."""
    reached = asked.reached
    looked = look(copies, reached, asked.cut, asked.bad)
    snapshots = _snapshots(looked, asked)
    restart = reached is not None and (
        not still_holds(looked.log, reached)
        or _is_mended(snapshots, reached)
        or _is_filled(looked.log, reached, asked.until)
        or _is_found(looked.log, reached)
    )
    if restart:
        asked = _begun_anew(asked)
        looked = look(copies, None, asked.cut, asked.bad)
        snapshots = _snapshots(looked, asked)
    new = _new(looked, snapshots, asked)
    reaching = Reaching(looked, new.log, new.begun, asked.reached)
    given = tuple(slices(asked.cluster_id, looked.copies, new.log.parts, new.begun.bases, asked.cut))
    rows = told(looked, snapshots, new.log, new.begun, new.before, asked.cluster_id, asked.reached)
    ended = rows.remembered(looked, reaching.reached(), asked.reached)._replace(places=reaching.places(rows.excluded))
    made = Truth(
        asked.cluster_id,
        given,
        new.begun.eras,
        ended,
        restart,
        rows.copies,
        rows.files,
        tuple(rows.findings.rows),
        sum(run.end - run.start for piece in given for run in piece.file.runs),
        rows.cluster(ended),
    )
    return made, rows.is_odd


def _begun_anew(asked: Asked) -> Asked:
    """Tables that are begun anew have at least what they had: who says how far they go may know one copy alone."""
    reached, until = asked.reached, asked.until
    assert reached is not None, "nothing was there"
    least = None if until is None else max(until, reached.offset, reached.state or 0)
    return asked._replace(reached=None, until=least)


def _snapshots(looked: Looked, asked: Asked) -> Snapshots:
    believed = sorted(place for place, _ in looked.believed)
    files = ((place, file) for place in believed for file in looked.copies[place].listing.snapshots)
    return Snapshots(files, asked.cut, asked.until, alone=_is_alone(looked))


def _is_alone(looked: Looked) -> bool:
    """Whether there is one file without a directory."""
    return len(looked.copies) == 1 and looked.copies[0].listing.directory is None


def _is_mended(snapshots: Snapshots, reached: Reached) -> bool:
    """Whether there is a state now within what was read already without any."""
    state = reached.state or 0
    return state < reached.offset and snapshots.first(state + 1, reached.offset - 1) is not None


def _is_filled(log: Log, reached: Reached, until: int | None) -> bool:
    """Whether the log now goes on where it ended before a snapshot that was ahead of it: who copies a directory may
    bring the snapshot first.
    """
    if reached.state is None or reached.state <= reached.offset:
        return False
    new = _part(log, reached.offset, until).parts
    return bool(new) and new[0].run.first == reached.offset


def _is_found(log: Log, reached: Reached) -> bool:
    """Whether something is there now that was missing, because it was mended, or somebody else has it."""
    return any(
        part.run.first < after and part.run.after > first for first, after in reached.missing for part in log.parts
    )


def _new(looked: Looked, snapshots: Snapshots, asked: Asked) -> New:
    reached, log = asked.reached, looked.log
    if reached is not None:
        log = _part(log, reached.offset, asked.until)
        goes_on, low = None, reached.offset
        if reached.state is not None and reached.state >= reached.offset:
            low = reached.state + 1
            is_broken = reached.state == reached.offset and reached.offset in looked.log.breaks
            goes_on = None if is_broken else reached.state
        begun = eras(stretches(log), snapshots, low=low, goes_on=goes_on, alone=False)
        return New(log, begun, None if reached.start is None else reached.offset)
    base = _begin(log, snapshots, asked.since) if asked.since != _NOW else None
    low = 0 if base is None else base.end
    log = _part(log, low, asked.until, inside=True)
    begun = eras(stretches(log), snapshots, low=low, goes_on=None, alone=_is_alone(looked) and base is None)
    return New(log, begun, None if base is None else base.end)


def _begin(log: Log, snapshots: Snapshots, point: Point) -> Base | None:
    """The snapshot to begin with instead of with all there is."""
    whole = stretches(log)

    def fits(end: int) -> bool:
        is_last = not any(after > end for _, after in whole)
        return end > 0 and (is_last or any(first <= end <= after for first, after in whole))

    return snapshots.newest(point, fits)


def _part(log: Log, first: int, until: int | None, *, inside: bool = False) -> Log:
    """The log from an offset on; with ``inside`` with the batch around it."""

    def parts() -> Iterator[Part]:
        for part in log.parts:
            run = part_since(part.path, part.run, first, inside=inside)
            if run is not None and until is not None:
                run = part_until(part.path, run, until)
            if run is not None:
                yield part._replace(run=run)

    return Log(tuple(parts()), log.breaks)
