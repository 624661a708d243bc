"""How far tables are once what is new is in them, and how the place is known again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kshell.spark.truth.bases import Base, Begun
from kshell.spark.truth.copy_log import Log, Part
from kshell.spark.truth.looked import Looked
from kshell.spark.truth.rows import passed_over
from kshell.spark.truth.run_parts import At, at_byte, batches, holding, last_of, until
from kshell.spark.truth.values import Era, Reached


class Reaching:
    """Made for what was looked at and what of it is new: ``log``, and what states begin with."""

    def __init__(self, looked: Looked, log: Log, begun: Begun, before: Reached | None) -> None:
        self._looked = looked
        self._log = log
        self._begun = begun
        self._before = before
        self.offset = max(log.end or 0, before.offset if before else 0)
        self._seen: dict[Part, At] = {}

    def reached(self) -> Reached:
        """The offset, how what ends there is known again, and the times of what was read."""
        log, before = self._log, self._before or Reached()
        state = max([era.to for era in self._begun.eras], default=before.state)
        made = before._replace(offset=self.offset, state=state, known=self._known(before.known))
        if log.parts and before.start is None:
            first = next(batches(log.parts[0].path, log.parts[0].run))
            made = made._replace(start=first.first, first_ms=first.first_ms)
        if log.parts:
            last = self._last(log.parts[-1])
            made = made._replace(epoch=last.epoch, crc=last.crc, last_ms=last.last_ms)
        base = max(self._begun.bases, key=lambda base: base.end, default=None)
        if base is not None and base.end > self.offset and base.last_ms >= 0:
            first_ms = base.last_ms if made.first_ms is None else made.first_ms
            made = made._replace(last_ms=base.last_ms, first_ms=first_ms)
        return made

    def _known(self, before: Sequence[Sequence[int]]) -> list[list[int]]:
        """The stretches that states are known of, with those that were known before."""
        made = [[*one] for one in before]
        for era in self._begun.eras:
            base = next((base for base in self._begun.bases if base.plan.path == era.base), None)
            first, last = self._times(era, base)
            if era.base is None and made and made[-1][1] == era.since:
                made[-1][1::2] = [era.to, last]
            else:
                made.append([era.since, era.to, first, last])
        return made

    def _times(self, era: Era, base: Base | None) -> tuple[int, int]:
        """When the first of an era's records was written, or the last one of its snapshot; and the last one."""
        parts = [part for part in self._log.parts if part.run.after > era.since and part.run.first < era.to]
        if not parts:
            at = base.last_ms if base is not None else -1
            return at, at
        last = parts[-1]
        end = self._last(last) if last.run.after == era.to else holding(last.path, last.run, era.to - 1)
        if base is not None and base.last_ms >= 0:
            return base.last_ms, end.last_ms
        return next(batches(parts[0].path, parts[0].run)).first_ms, end.last_ms

    def places(self, excluded: Collection[str]) -> dict[str, Sequence[Any] | None]:
        """Path of a copy -> the last batch of it that belongs to what was read."""
        limits = dict(self._looked.believed)
        judged = self._looked.judged
        if self._looked.went_on and judged is not None:  # what lies between its end and the tables' was not compared
            same = {self._looked.read[index]: to for index, to in judged.same.items()}
            limits |= {place: min(limits[place], to) for place, to in same.items()}
        made: dict[str, Sequence[Any] | None] = {}
        for place in self._looked.read:
            path = self._looked.copies[place].path
            if path not in excluded:
                made[path] = self._place(place, limits.get(place, 0)) or self._old(path)
        return made

    def _old(self, path: str) -> Sequence[Any] | None:
        return self._before.places.get(path) if self._before is not None else None

    def _place(self, copy: int, limit: int) -> Sequence[Any] | None:
        after = min(limit, self.offset)
        for part in reversed(self._looked.logs[copy].parts):
            run = until(part.path, part.run, after)
            if run is not None:
                batch = self._last(part._replace(run=run))
                earlier = self._before_in(copy, part.path, batch.position)
                return [part.path, batch.position, batch.first, earlier, batch.crc]
        return None

    def _before_in(self, copy: int, path: str, position: int) -> dict[str, Any]:
        """Sums over what of a segment is before a byte."""
        plan = next(plan for plan in self._looked.plans[copy] if plan.path == path)
        place = self._old(self._looked.copies[copy].path)
        earlier = passed_over(plan, place)
        runs = [run for run in plan.runs if not run.repeats and run.start < position]
        if runs and runs[-1].end > position:
            runs[-1] = runs[-1]._replace(end=position, after=at_byte(path, runs[-1], position).first)
        first, epoch = earlier.get("firstOffset"), earlier.get("firstEpoch")
        return {
            "firstOffset": runs[0].first if first is None and runs else first,
            "firstEpoch": next(batches(path, runs[0])).epoch if epoch is None and runs else epoch,
            "records": earlier.get("records", 0) + sum(run.after - run.first for run in runs),
            "goodBytes": earlier.get("goodBytes", 0) + sum(run.end - run.start for run in runs),
            "findings": [*earlier.get("findings", ()), *([*one] for one in plan.findings if one.position < position)],
        }

    def _last(self, part: Part) -> At:
        """The last batch of a part."""
        if part not in self._seen:
            self._seen[part] = last_of(part.path, part.run)
        return self._seen[part]
