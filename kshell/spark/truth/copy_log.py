"""The log of one copy: which parts of which files, planned by headers, from where it was left the last time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kshell.sources.directory.files import Listing
from kshell.spark.files.plan import FilePlan, Finding, Run
from kshell.spark.files.scan import Found
from kshell.spark.stream.resume import Start
from kshell.spark.stream.walk import Onward
from kshell.spark.truth.run_parts import at_byte, holding, since, until, whole_at

Bad = Collection[tuple[str, int, str]]
"""(file, first byte, what is wrong) of batches that a reader found to be damaged."""


class Part(NamedTuple):
    """Batches back to back of one copy (its place among all), in one file of ``size`` bytes."""

    copy: int
    path: str
    size: int
    run: Run


class Log(NamedTuple):
    """Parts in the order of their offsets. ``breaks``: offsets before which damage lies, though none is missing: what
    follows is not known to go on from there.
    """

    parts: tuple[Part, ...]
    breaks: frozenset[int]

    @property
    def end(self) -> int | None:
        """The offset after the last batch."""
        return self.parts[-1].run.after if self.parts else None

    def part_with(self, offset: int) -> Part | None:
        """The part that holds an offset."""
        return next((part for part in self.parts if part.run.first <= offset < part.run.after), None)


def plan(found: Found, place: Sequence[Any] | None, offset: int | None, cut: int) -> list[FilePlan]:
    """The plans of a copy's segments, from a batch on (a place of ``Reached``) or, where that is no longer there, from
    the segment on that holds the offset before ``offset``. Raises FileNotFoundError (list again), SourceError.
    """
    listing = found.listing
    if not listing.segments:
        return []
    start = (place and _at(listing, place)) or Start(_from(listing, offset))
    return [*Onward(listing, start, cut).files()]


def is_there(found: Found, place: Sequence[Any] | None) -> bool:
    """Whether a copy still holds the batch of a place of ``Reached``."""
    return bool(place) and place is not None and _at(found.listing, place) is not None


def _at(listing: Listing, place: Sequence[Any]) -> Start | None:
    path, position, offset, _, crc = place
    for index, segment in enumerate(listing.segments):
        if segment.path == path and segment.size > position:
            batch = whole_at(path, segment.size, position)
            if batch is not None and (batch.first, batch.crc) == (offset, crc):
                # One that opens an epoch is only proven by what follows.
                return Start(listing.segments[index:], position, -1, offset, 0, is_proven=not batch.is_control)
    return None


def _from(listing: Listing, offset: int | None) -> Any:
    bases = [segment.base_offset for segment in listing.segments]
    before = [index for index, base in enumerate(bases) if offset and base is not None and base < offset]
    return listing.segments[before[-1] if before else 0 :]


def log_of(copy: int, plans: Iterable[FilePlan]) -> Log:
    """The log that plans tell of, each offset once."""
    parts: list[Part] = []
    breaks: set[int] = set()
    given = -1
    for file in plans:
        damage = [one.position for one in file.findings if one.kind == "batch"]
        for run in file.runs:
            if run.repeats:
                continue
            whole = since(file.path, run, given) if given > run.first else run
            if whole is not None:
                breaks.update(_breaks(file, whole, damage, given))
                parts.append(Part(copy, file.path, file.size, whole))
                given = whole.after
                damage = [position for position in damage if position >= whole.end]
        if damage:
            breaks.add(given)
    return Log(tuple(parts), frozenset(breaks))


def _breaks(file: FilePlan, run: Run, damage: list[int], given: int) -> Iterator[int]:
    """Where damage lies before a run or, when a batch is blamed that was good by itself, behind that batch."""
    for position in damage:
        if position < run.start:
            yield given
        elif position < run.end:
            yield at_byte(file.path, run, position).after


def without(file: FilePlan, bad: Bad) -> FilePlan:
    """A plan without the batches that a reader found to be damaged: one finding more for each."""
    known = {one.position for one in file.findings}
    more = [Finding(at, "batch", why) for path, at, why in bad if path == file.path and at not in known]
    if not more:
        return file
    runs = tuple(_kept(file, sorted(one.position for one in more)))
    return file._replace(runs=runs, findings=tuple(sorted((*file.findings, *more))))


def everywhere(plans: Iterable[FilePlan], bad: Bad) -> Bad:
    """Damaged batches, and the same ones in the copies of those plans: a batch whose CRC is right and that nobody can
    decode is like that in all of them.
    """
    files = {file.path: file for file in plans}
    same = [(batch, why) for path, at, why in bad if path in files and (batch := whole_at(path, files[path].size, at))]
    found = {(path, at): (path, at, why) for path, at, why in bad}
    for batch, why in same:
        for file in files.values():
            for run in file.runs:
                if not file.is_snapshot and run.first <= batch.first < run.after:
                    other = holding(file.path, run, batch.first)
                    if (other.first, other.crc) == (batch.first, batch.crc):
                        found[file.path, other.position] = (file.path, other.position, why)
    return list(found.values())


def _kept(file: FilePlan, gone: list[int]) -> Iterator[Run]:
    for run in file.runs:
        rest: Run | None = run
        for position in gone:
            if rest is not None and rest.start <= position < rest.end:
                batch = at_byte(file.path, rest, position)
                if batch.position > rest.start:
                    yield rest._replace(end=batch.position, after=batch.first)
                rest = rest._replace(start=batch.end, first=batch.after) if batch.end < rest.end else None
        if rest is not None:
            yield rest


def clipped(log: Log, first: int, after: int) -> Log:
    """The batches that lie between two offsets."""
    parts = []
    for part in log.parts:
        run = since(part.path, part.run, first)
        run = until(part.path, run, after) if run is not None else None
        if run is not None:
            parts.append(part._replace(run=run))
    return Log(tuple(parts), log.breaks)


def damage_of(plans: Iterable[FilePlan]) -> Iterator[tuple[str, Finding]]:
    """(file, what is wrong); torn tails are nothing wrong."""
    return ((file.path, one) for file in plans for one in file.findings if one.kind != "torn")
