"""What is to be said of the copies of a cluster: how they stand to each other, and what is missing or damaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kshell.errors import CorruptDataError
from kshell.sources.copies.agreement import DIVERGED, NOT_COMPARED, OTHER_CLUSTER, REFERENCE, Standing
from kshell.spark.files.plan import FilePlan, damaged
from kshell.spark.truth.bases import Begun, Snapshots
from kshell.spark.truth.copy_log import Log
from kshell.spark.truth.known import Known
from kshell.spark.truth.looked import Looked
from kshell.spark.truth.merge import Stretch, stretches
from kshell.spark.truth.rows import Findings, copy_row, file_rows, standing_row
from kshell.spark.truth.run_parts import At, holding, last_of, whole_at
from kshell.spark.truth.stated import stated
from kshell.spark.truth.values import Reached, Row

_SAME = "sameFrom", "sameTo"


class Rows(NamedTuple):
    """Rows by table; ``excluded`` as in :class:`~kshell.spark.truth.values.Reached`."""

    cluster_id: str
    copies: tuple[Row, ...]
    files: tuple[Row, ...]
    findings: Findings
    excluded: dict[str, Mapping[str, Any]]
    committed: int | None
    is_odd: bool

    def remembered(self, looked: Looked, reached: Reached, before: Reached | None) -> Reached:
        """How far the tables are, with what was told of the copies. ``before``: how far they were."""
        voters: Sequence[Sequence[Any]] = [*before.voters] if before is not None else []
        leader, epoch, stated_voters = stated(looked.copies[place].listing for place, _ in looked.believed)
        if looked.judged is not None:
            voters = sorted([*one] for one in looked.judged.agreement.reference.voters.items())
        return reached._replace(
            rows={row["copy"]: row for row in self.copies if row["copy"] not in self.excluded},
            excluded=self.excluded,
            told=self.findings.told,
            missing=[*(before.missing if before is not None else ()), *self.findings.gaps],
            voters=voters,
            committed=self.committed,
            stated=[leader, epoch, [*stated_voters]],
        )

    def cluster(self, reached: Reached) -> Row:
        """The row of the table ``clusters``."""
        return {
            "clusterId": self.cluster_id,
            "copies": len(self.copies),
            "startOffset": reached.start,
            "endOffset": max(reached.offset, reached.state or 0),
            "stateOffset": reached.state,
            "committedOffset": self.committed,
            "lastEpoch": next((row["lastEpoch"] for row in self.copies if row["state"] == REFERENCE), None),
            "firstTimestampMs": reached.first_ms,
            "lastTimestampMs": reached.last_ms,
            **dict(zip(("leaderId", "leaderEpoch", "voters"), reached.stated, strict=True)),
        }


def told(
    looked: Looked,
    snapshots: Snapshots,
    log: Log,
    begun: Begun,
    before: int | None,
    cluster_id: str,
    reached: Reached | None,
) -> Rows:
    """``log``, ``begun``: what is new; ``before``: the offset that was to come."""
    findings = Findings(cluster_id, looked.copies, reached.told if reached is not None else {})
    for place in looked.read:
        for plan in looked.plans[place]:
            findings.add(place, plan)
    for place, plan in (*_of_snapshots(looked), *snapshots.findings):
        findings.add(place, plan)
    is_odd = any(one.kind != "torn" for plans in looked.plans.values() for plan in plans for one in plan.findings)
    _add_gaps(findings, looked, stretches(log), begun, before)
    copies, excluded, committed = _copies(looked, findings, cluster_id, reached)
    places = reached.places if reached is not None else {}
    files: list[Row] = []
    for place in looked.read:
        found, plans = looked.copies[place], [*looked.plans[place]]
        for file in found.listing.snapshots:
            plan = snapshots.plan_of(file) or FilePlan(file.path, file.size, True, ())
            plans.append(plan._replace(findings=findings.in_file(place, file.path)))
        files += file_rows(cluster_id, found, plans, places.get(found.path))
    odd = is_odd or bool(snapshots.findings)
    return Rows(cluster_id, tuple(copies), tuple(files), findings, excluded, committed, odd)


def _of_snapshots(looked: Looked) -> list[tuple[int, FilePlan]]:
    """Damage of snapshots that was met when copies were compared."""
    found = []
    for place, member in zip(looked.read, looked.members, strict=bool(looked.members)):
        sizes = {file.path: file.size for file in looked.copies[place].listing.snapshots}
        found += [
            (place, FilePlan(error.file, sizes[error.file], True, (), (damaged(error),)))
            for error in member.damage
            if isinstance(error, CorruptDataError) and error.file in sizes
        ]
    return found


def _add_gaps(findings: Findings, looked: Looked, whole: list[Stretch], begun: Begun, before: int | None) -> None:
    """Offsets that nobody has, where something follows."""
    expected = before
    for index, (first, end) in enumerate(whole):
        if expected is not None and first > expected:
            findings.gap(expected, first)
        elif expected is None and first > 0 and _is_stateless(looked, whole[index], begun):
            earlier = max((era.to for era in begun.eras if era.to <= first), default=0)
            findings.gap(earlier, first, ", and no whole snapshot reaches the log")
        expected = end


def _is_stateless(looked: Looked, one: Stretch, begun: Begun) -> bool:
    lone = all(copy.listing.directory is None for copy in looked.copies)
    return not lone and not any(one.first <= era.since <= one.end for era in begun.eras)


def _copies(
    looked: Looked, findings: Findings, cluster_id: str, reached: Reached | None
) -> tuple[list[Row], dict[str, Mapping[str, Any]], int | None]:
    """(rows, copies of other histories, the offset below which all is committed)."""
    rows = {path: dict(known["row"]) for path, known in looked.excluded.items()}
    excluded = dict(looked.excluded)
    committed = None
    believed = dict(looked.believed)
    if looked.judged is not None:
        found = looked.judged.agreement
        committed = found.committed or None
        for index, (place, one) in enumerate(zip(looked.read, found.standings, strict=True)):
            node, start = looked.copies[place].origin.node_id, _start(looked, place, findings, reached)
            row = standing_row(cluster_id, node, one, found.reference, start, findings.damage(place))
            if place in believed:
                row = _as_before(row, looked.known.get(place))
            else:
                row["reason"] = _outside(row, one)
                if (evidence := looked.judged.foreign.get(index)) is not None:
                    row |= {"state": OTHER_CLUSTER, "reason": _of_another_cluster(found.reference.path, evidence)}
                witness = _witness(looked, place, one)
                excluded |= {row["copy"]: {**witness, "row": row}} if witness is not None else {}
            rows[row["copy"]] = row
    elif looked.read:
        (place,) = looked.read
        row = _alone(looked, place, cluster_id, findings, reached)
        rows[row["copy"]] = row
        committed = row["uncommittedFrom"] if row["uncommittedFrom"] is not None else row["endOffset"]
    return [rows[copy.path] for copy in looked.copies if copy.path in rows], excluded, committed


def _as_before(row: Row, known: Known | None) -> Row:
    """Of a copy that is as it was: a tail that an election left behind is compared once, and not again, and how far it
    was the same beside damage is seen only by who reads all of it.
    """
    if known is None or any(known.row.get(name) != row[name] for name in ("endOffset", "lastEpoch")):
        return row
    if known.row["state"] == DIVERGED:
        return {**known.row, "damage": row["damage"]}
    is_same = known.row["state"] == row["state"] and known.row["damage"] == row["damage"]
    return {**row, **{name: known.row[name] for name in _SAME}} if is_same else row


def _outside(row: Row, one: Standing) -> str | None:
    """Why a copy gives no row."""
    if one.state == NOT_COMPARED:
        return f"{row['reason']}: nothing shows that it is of this cluster, so it gives no row"
    if one.parted is None or one.other is None or one.parted.contradiction is not None:
        told: str | None = row["reason"]
        return told
    offset, mine, theirs, _ = one.parted
    return (
        f"parts from {one.other.path} at offset {offset} (epoch {mine.epoch} here, {theirs.epoch} there), and no"
        " election explains it: what is there is committed, or nothing is the same before"
    )


def _of_another_cluster(reference: str, evidence: str) -> str:
    """What is wrong with a copy whose ``meta.properties`` names this cluster, and what to do about it."""
    return (
        f"of another cluster than {reference}, whatever its meta.properties says: {evidence}. It gives no row. Find out"
        " which of them the cluster.id belongs to, and correct it beside the other one, or leave that out of --source"
    )


def _start(looked: Looked, place: int, findings: Findings, reached: Reached | None) -> int | None:
    """The offset of a copy's first record. Where only its end was read it is as the first segment is called, unless
    another was told that lies in that segment, or behind it because it is damaged.
    """
    log, copy = looked.logs[place], looked.copies[place]
    first = log.parts[0].run.first if log.parts else None
    base, then = ([segment.base_offset for segment in copy.listing.segments[:2]] + [None, None])[:2]
    if not looked.went_on or reached is None or base is None:
        return first
    if copy.path not in reached.rows:
        return base
    told: int | None = reached.rows[copy.path]["startOffset"]
    if told is None:
        return first
    is_so = then is None or told < then or bool(findings.in_file(place, copy.listing.segments[0].path))
    return told if base <= told and is_so else base


def _witness(looked: Looked, place: int, one: Standing) -> Mapping[str, Any] | None:
    """The batch that shows that a copy is of another history: where it parts, else its first one."""
    log = looked.logs[place]
    part = log.part_with(one.parted.offset) if one.parted is not None else next(iter(log.parts), None)
    if part is not None:
        batch: At | None = holding(part.path, part.run, one.parted.offset if one.parted is not None else part.run.first)
        path = part.path
    else:
        file = next(iter(one.copy.snapshots), None)
        path = file.path if file is not None else ""
        batch = whole_at(path, file.size, 0) if file is not None else None
    if batch is None:
        return None
    end = looked.log.end or 0
    until = batch.first if one.parted is None and part is not None and batch.first >= end else None
    return {"file": path, "position": batch.position, "crc": batch.crc, "until": until}


def _alone(looked: Looked, place: int, cluster_id: str, findings: Findings, reached: Reached | None) -> Row:
    """The row of a copy that there is nothing to compare with."""
    found, log = looked.copies[place], looked.logs[place]
    newest = next((file for file in reversed(found.listing.snapshots) if file.end_offset is not None), None)
    end, epoch = log.end, reached.epoch if reached is not None and reached.epoch >= 0 else None
    if log.parts:
        epoch = last_of(log.parts[-1].path, log.parts[-1].run).epoch
    if newest is not None and (end is None or (newest.end_offset or 0) > end):
        end, epoch = newest.end_offset, newest.epoch
    known = reached.committed if reached is not None and looked.went_on else None
    committed = max(newest.end_offset or 0 if newest is not None else 0, known or 0)
    start = _start(looked, place, findings, reached)
    return copy_row(
        cluster_id,
        found.path,
        state=REFERENCE,
        nodeId=found.origin.node_id,
        startOffset=start,
        endOffset=end,
        lastEpoch=epoch,
        snapshot=f"{newest.end_offset}-{newest.epoch}" if newest else None,
        sameFrom=start,
        sameTo=log.end,
        uncommittedFrom=committed if end is not None and committed < end else None,
        damage=findings.damage(place),
    )
