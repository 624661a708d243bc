"""Rows of the tables that say what was found where: ``copies``, ``files``, ``quarantine``, ``clusters``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kshell.sources.copies.agreement import REFERENCE, Standing, reason
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.files import named
from kshell.sources.points import missing
from kshell.spark.files.plan import FilePlan, Finding, Run
from kshell.spark.files.read import CRC
from kshell.spark.files.scan import Found
from kshell.spark.schemas import COPY_FIELDS, FILE_FIELDS, QUARANTINE_FIELDS
from kshell.spark.truth.known import sign, still_told
from kshell.spark.truth.members import as_error
from kshell.spark.truth.run_parts import batches, last_of
from kshell.spark.truth.values import Row

_TOLD = 10_000
"""Findings of a copy that are remembered, so that they are told once: after a lost election all that follows is one."""
_SHOWN = 100
"""Those that stand in its row."""
Told = Mapping[str, Sequence[Sequence[Any]]]


class Findings:
    """What is wrong, told once: ``rows`` of the table ``quarantine``, and ``told`` for the next time."""

    def __init__(self, cluster_id: str, copies: Sequence[Found], told: Told) -> None:
        self.rows: list[Row] = []
        self.told: dict[str, list[list[Any]]] = {}
        self.gaps: list[list[int]] = []
        """Offsets (first, after) that no copy has."""
        for one in copies:
            if kept := [[*finding] for finding in still_told(one, told.get(one.path, ()))]:
                self.told[one.path] = kept
        self._known = {tuple(finding[:4]) for findings in self.told.values() for finding in findings}
        self._cluster_id = cluster_id
        self._copies = copies

    def add(self, copy: int, plan: FilePlan) -> None:
        """Those of a file; a torn tail is none."""
        for finding in plan.findings:
            key = (plan.path, *finding)
            if finding.kind != "torn" and key not in self._known:
                self._known.add(key)
                found = self._copies[copy]
                told = self.told.setdefault(found.path, [])
                if len(told) < _TOLD:
                    told.append([*key, sign(found, plan.path, finding.position)])
                self.rows.append(self._row(finding, found.origin.node_id, plan.path, is_snapshot=plan.is_snapshot))

    def gap(self, first: int, after: int, words: str = "") -> None:
        """Offsets that no copy has."""
        self.gaps.append([first, after])
        finding = Finding(-1, "gap", f"{missing(first, after)} in every copy{words}")
        self.rows.append(self._row(finding, None, None) | {"offset": first})

    def damage(self, copy: int) -> list[str]:
        """What was told of a copy and is still so."""
        return [as_error(path, finding).message for path, finding in islice(self._of(copy), _SHOWN)]

    def in_file(self, copy: int, path: str) -> tuple[Finding, ...]:
        """All of that of one of its files."""
        return tuple(finding for file, finding in self._of(copy) if file == path)

    def _of(self, copy: int) -> Iterator[tuple[str, Finding]]:
        for path, position, kind, words, _ in self.told.get(self._copies[copy].path, ()):
            yield path, Finding(position, kind, words)

    def _row(self, finding: Finding, node: int | None, path: str | None, *, is_snapshot: bool = False) -> Row:
        known = {
            "clusterId": self._cluster_id, "nodeId": node, "file": path, "isSnapshot": is_snapshot,
            "position": None if finding.position < 0 else finding.position, "kind": finding.kind,
            "reason": finding.reason,
        }  # fmt: skip
        return {field.name: known.get(field.name) for field in QUARANTINE_FIELDS}


def passed_over(plan: FilePlan, place: Sequence[Any] | None) -> Mapping[str, Any]:
    """What is known of a segment before the byte from which on it was looked at; empty where all of it was."""
    if place is None or place[0] != plan.path or not plan.runs or plan.runs[0].start != place[1]:
        return {}
    known: Mapping[str, Any] = place[3]
    return known


def file_rows(
    cluster_id: str, found: Found, plans: Iterable[FilePlan], place: Sequence[Any] | None = None
) -> Iterator[Row]:
    """What planning knows of files; sums that need all their batches' headers are null."""
    for plan in plans:
        before = passed_over(plan, place)
        findings = (*(Finding(*one) for one in before.get("findings", ())), *plan.findings)
        name = named(os.path.basename(plan.path))
        runs = [run for run in plan.runs if not run.repeats]
        first = before.get("firstOffset")
        torn = [one.position for one in plan.findings if one.kind == "torn"]
        epochs = _epochs(plan.path, runs, before)
        known = {
            "clusterId": cluster_id, "nodeId": found.origin.node_id, "file": plan.path, "isSnapshot": plan.is_snapshot,
            "size": plan.size,
            "nameOffset": name.offset if name else None,
            "nameEpoch": name.epoch if name else None,
            "firstOffset": runs[0].first if first is None and runs else first,
            "lastOffset": runs[-1].after - 1 if runs else None,
            "firstEpoch": epochs[0],
            "lastEpoch": epochs[1],
            "records": before.get("records", 0) + sum(run.after - run.first for run in runs),
            "goodBytes": before.get("goodBytes", 0) + sum(run.end - run.start for run in runs),
            "crcFailures": sum(one.reason == CRC for one in findings) if runs or findings else None,
            "isDamaged": any(one.kind != "torn" for one in findings),
            "tornAt": torn[0] if torn else None,
            "findings": [
                {"position": None if at < 0 else at, "kind": kind, "reason": words} for at, kind, words in findings
            ],
        }  # fmt: skip
        yield {field.name: known.get(field.name) for field in FILE_FIELDS}


def _epochs(path: str, runs: Sequence[Run], before: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Those of the first batch of a file and of the last one."""
    if not runs:
        return before.get("firstEpoch"), None
    first = before.get("firstEpoch")
    return next(batches(path, runs[0])).epoch if first is None else first, last_of(path, runs[-1]).epoch


def copy_row(cluster_id: str, path: str, **known: Any) -> Row:
    """A row of the table ``copies``; what is not given is null."""
    known |= {"clusterId": cluster_id, "copy": path}
    return {field.name: known.get(field.name) for field in COPY_FIELDS}


def standing_row(
    cluster_id: str, node: int | None, one: Standing, reference: Copy, start: int | None, damage: list[str]
) -> Row:
    """The row of a copy that was compared."""
    copy, newest = one.copy, one.copy.newest
    is_damaged = bool(damage) and one.state in ("same", "behind")
    return copy_row(
        cluster_id,
        copy.path,
        state="damaged" if is_damaged else one.state,
        nodeId=node,
        startOffset=start,
        endOffset=copy.end,
        lastEpoch=copy.last_epoch if copy.end is not None else None,
        snapshot=f"{newest.end_offset}-{newest.epoch}" if newest else None,
        sameFrom=start if one.state == REFERENCE else one.since,
        sameTo=one.to,
        divergesAt=one.parted.offset if one.parted else None,
        uncommittedFrom=one.uncommitted,
        reason=reason(one, reference),
        damage=damage,
        directoryId=copy.directory_id,
        comparedWith=one.other.path if one.other else None,
    )
