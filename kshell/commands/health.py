"""``health``: the findings of all checks (:mod:`kshell.metadata.health`), worst first, each with the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kshell.cluster.health import state_of, without_leader
from kshell.cluster.min_isr_flag import DESCRIPTION as MIN_ISR
from kshell.cluster.min_isr_flag import MIN_ISR_DEFAULT, MinIsrRowArguments, min_isr_of
from kshell.engine import tones
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Column, PageLayout, Report, Result, Row, Rows, Section, StyledText, Text
from kshell.errors import EXIT_FINDING, EXIT_OK, NoLeaderError
from kshell.metadata.health.check import ERROR, LEVELS, CheckFindings, Finding, FindingGroup, checks
from kshell.metadata.health.examine import Health, examine
from kshell.tables.declaration import Field, FieldNames
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import asked_for, has_row_options, row_flags, select, wanted

if TYPE_CHECKING:
    from kshell.engine.session import Session

FIELDS = (
    Field("level", Enumeration(LEVELS), "critical, error, warning or info", tone=tones.state),
    Field(
        "finding",
        Enumeration(lambda: (check.name for check in checks())),
        "what was found, by the name of its check",
        spare=-1,
    ),
    Field("path", "string", "what it is about", spare=-1),
    Field("evidence", "string", "the facts", prose=True),
    Field("nextStep", "string", "what to do about it, with the command of the cluster's release", prose=True),
    Field(
        "commands", ["string"], "the command lines that do it, in their order; none where no tool of Kafka does", True
    ),
)
_MOST = 5
"""In text output: next steps per check at most, and findings per next step."""


class HealthArguments(MinIsrRowArguments):
    """Arguments and options of ``health``."""

    fail_on: str


def run(session: Session, args: HealthArguments) -> Result:
    """Return one row per finding; exit code 1 for a chosen one of level ``--fail-on`` or worse. Raises KshellError."""
    leaderless: NoLeaderError | None = None
    try:
        state = state_of(session, min_isr_of(session, session.image, args))
    except NoLeaderError as error:
        state, leaderless = without_leader(session, error), error
    health = examine(state, session.progress)
    fields = wanted(FIELDS, args)
    rows = FindingRows(health, None if fields is None else fields | {"level"})  # a row's tone needs its level
    counts = LEVELS[: LEVELS.index(args.fail_on) + 1]
    where_fields = None if args.where is None else asked_for(FIELDS, args.where)
    failed = any(
        args.where is None or any(args.where(row_of(finding, where_fields)) for finding in findings)
        for findings in health.by_check
        if findings.check.level in counts
    )
    if leaderless is not None and not failed:
        raise leaderless  # nothing that was asked for could be checked: exit code 0 would be wrong
    result = select(FIELDS, rows, args, tone=level_of, exit_code=EXIT_FINDING if failed else EXIT_OK)
    if not has_row_options(args):
        result.page = PageLayout(result.columns, fold=("level", "finding"))
    if not has_row_options(args) and (args.output or session.settings.get("output") or "text") == "text":
        result.readable = _readable(health)
    return result


class FindingRows:
    """Findings whose rows are made on iteration, with the needed fields only, for commands take time to write."""

    def __init__(self, health: Health, fields: FieldNames = None) -> None:
        self._health = health
        self._fields = fields

    def __len__(self) -> int:
        return sum(map(len, self._health.by_check))

    def __iter__(self) -> Iterator[Row]:
        return (row_of(finding, self._fields) for finding in self._health.findings)


_CELLS: dict[str, Callable[[Finding], object]] = {
    "level": lambda finding: finding.check.level,
    "finding": lambda finding: finding.check.name,
    "path": lambda finding: finding.path,
    "evidence": lambda finding: finding.evidence,
    "nextStep": lambda finding: finding.next_step,
    "commands": lambda finding: list(finding.commands),
}


def row_of(finding: Finding, fields: FieldNames = None) -> Row:
    """Make a row of a finding, with the fields in ``fields``; ``None`` for all."""
    return {name: cell(finding) for name, cell in _CELLS.items() if fields is None or name in fields}


def level_of(row: Row) -> str:
    """The tone in which the row of a finding is rendered: its level."""
    return str(row["level"])


def _readable(health: Health) -> Result:
    if not health.by_check:
        return Text(f"no findings: {len(checks())} checks, {health.topics} topics, {health.partitions} partitions")
    counts: Counter[str] = Counter()
    for findings in health.by_check:
        counts[findings.check.level] += len(findings)
    summary = ", ".join(f"{counts[level]} {level}" for level in LEVELS if counts[level])
    sections = [Section("summary", f"Findings: {summary}", {})]
    return Report([*sections, *map(_section, health.by_check)], is_answer_first=True)


def _section(findings: CheckFindings) -> Section:
    check = findings.check
    title = StyledText(f"{check.level}: {check.name} ({len(findings)}): {check.about}", check.level)
    return Section(check.name, title, Rows((Column("line"),), _Lines(findings), style="prose", line_column="line"))


class _Lines:
    """The text lines of a check: findings by next step, some of each, and the command that shows the others."""

    def __init__(self, findings: CheckFindings) -> None:
        steps = list(findings.by_step(_MOST).items())[:_MOST]
        self._steps = steps
        self._rest = len(findings) - sum(same.count for _, same in steps)
        self._name = findings.check.name
        self._width = max(len(finding.path) for _, same in steps for finding in same.first)

    def __iter__(self) -> Iterator[Row]:
        everything = f"health --where 'finding == {self._name}'"
        is_same = len(self._steps) == 1
        for step, same in self._steps:
            for finding in same.first:
                yield {"line": f"{finding.path:<{self._width}}  {finding.evidence}"}
            more = same.count - _MOST
            if more > 0:
                yield {"line": f"… {more} more{'' if is_same else ', with the same next step'}: {everything}"}
            yield {"line": f"next: {step}" if is_same else f"  next: {step}"}
            yield from self._moves(same)
        if self._rest:
            yield {"line": f"… {self._rest} more, with steps of their own: {everything}"}

    def _moves(self, same: FindingGroup) -> Iterator[Row]:
        """The commands that move replicas for the first finding that has such, and how to list those of the others."""
        if same.moving is not None:
            yield from ({"line": f"    {command}"} for command in same.moving.commands)
        if same.moves > 1:
            everything = f"health --where 'finding == {self._name}' --columns path,commands -o jsonl"
            yield {"line": f"    … and {same.moves - 1} more like it: {everything}"}


def _described() -> str:
    """The list of all checks for the help text, from their declarations."""
    return "\n".join(f"- `{check.name}` ({check.level}): {check.about}" for check in checks())


COMMAND = Command(
    name="health",
    task=Task.PROBLEMS,
    summary="what is wrong with the cluster or could become so, the worst first, with what to do next",
    run=run,
    arguments=HealthArguments,
    flags=(
        Flag(
            ("--fail-on",),
            "the lowest level that counts for the exit code: critical, error, warning or info",
            metavar="LEVEL",
            choices=LEVELS,
            default=ERROR,
        ),
        MIN_ISR_DEFAULT,
        *row_flags(FIELDS),
    ),
    examples=(
        Example("health", "everything, grouped; a broker of the sample was killed", 1),
        Example("health --where 'level == critical' -o jsonl", "for an alert", 1),
        Example("health --fail-on critical --sort finding --columns finding,path -o csv", "for a list", 1),
    ),
    description=(
        "Levels: critical (data cannot be reached), error (something is lost or refused, or a node is down), warning"
        " (one more failure would do it, or a setting is at odds), info (worth knowing)."
        f" {MIN_ISR} Text groups findings, shows"
        f" {_MOST} of a kind, and the next step of each; -o wide and every other format have all. On a directory"
        " the state is that of the last record: tokens are expired, and reassignments stuck, by its time. A running"
        " quorum (-q) is asked how it keeps up, too. The findings:\n\n"
        f"{_described()}\n\n"
        "What brokers (-b) do not report is not checked; a note names it."
    ),
    needs_records=True,
    exit_1_when=(
        "a finding has --fail-on's level (error unless given) or a worse one; with --where, only findings that it"
        " chooses count"
    ),
)
