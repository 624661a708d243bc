"""``recover``: plan how to start a quorum that has lost its majority, from the copies of its log that are left.

The answer says which copy to keep, which records may be uncommitted or lost, and what to do step by step; with ``--to``
it also writes the directory from which one controller starts. The copies stay unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from kshell.cluster.recovery_steps import RecoverySteps
from kshell.engine import tones
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.local_files import complete_file, note_unread_source
from kshell.engine.result import Report, Result, Row, Rows, Section, typed
from kshell.engine.staging import new_directory, require_empty
from kshell.engine.walk import counted, names_and_values
from kshell.errors import EXIT_DATA, EXIT_OK, EXIT_SOURCE, CommandError, DataError, UsageError
from kshell.history.records import record_row
from kshell.metadata.families.cluster import BROKERS
from kshell.metadata.families.quorum import KRAFT_VERSION, QUORUM
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.protocol.primitives import Uuid
from kshell.sources.copies.agreement import (
    NOT_COMPARED,
    CopyVerdict,
    not_the_voter,
    reason,
    startable_majority,
    which_to_keep,
    with_damage,
)
from kshell.sources.copies.joined import LogRange
from kshell.sources.copies.logs import UnreadCopy, twins
from kshell.sources.copies.recovery import Survivors, Voter, new_directory_id, parse_voter, survey, write
from kshell.sources.directory.describe import snapshot_id, voters
from kshell.sources.directory.files import METADATA_DIRECTORY, is_inside, local_path
from kshell.sources.directory.records import log_records
from kshell.sources.directory.source import without_collector
from kshell.sources.source import Loaded

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_TONES = {"state": tones.state}
_COPIES = tuple(
    column._replace(prose=column.name == "reason", tone=_TONES.get(column.name))
    for column in typed(
        "copy:string state:string nodeId:int32 endOffset:int64 lastEpoch:int32 snapshot:string reason:string",
        wide="damage:json clusterId:string",
    )
)
_DAMAGE = tuple(column._replace(prose=column.name == "damage") for column in typed("copy:string damage:string"))
_TAKEN = typed("copy:string fromOffset:int64 toOffset:int64 snapshot:string")
_RECORDS = typed("copy:string offset:int64 epoch:int32 type:string data:json", wide="timestampMs:int64 version:int16")
_MOST = 1000
"""Records that a section lists at most."""
_LISTENER = "CONTROLLER"
_DECIDE = (
    "Decide which history is the right one (`info --meta-properties`, `log` and `topics` of each copy), and run recover"
    " again without the copies of the other; where it is one snapshot, without that file, in a copy of the directory"
)


class RecoverArguments(Arguments):
    """Arguments and options of ``recover``."""

    directory: list[str]
    to: str | None
    voters: str | None


def run(session: Session, args: RecoverArguments) -> Result:
    """Plan a recovery, or, with ``--to``, write the directory that it starts from.

    Returns:
        The copies; which one to keep and why; which of its records no copy proves to be committed; which records of
        other copies it lacks; the voters; and the steps for this kraft.version. Exit code 4 if the copy to keep is
        damaged, if a damaged copy knows of a later epoch, or if the copies have two histories, between which no plan
        chooses; 3 if a copy cannot be read.

    Raises:
        UsageError: ``--to`` without ``--voters``, or the reverse.
        CommandError: the new directory is not empty, or is in a copy.
        SourceError: no copy can be read.
        DataError: no copy has a record; with ``--to`` also: the copies have two histories.
    """
    if args.as_of is not None:
        raise UsageError(
            "recover: a recovery begins with the newest records of the copies",
            hint="leave out --as-of; `save DIR --as-of POINT` writes an older state",
        )
    if (args.to is None) != (args.voters is None):
        raise UsageError(
            "recover: --to and --voters belong together",
            hint="recover DIR … --to NEWDIR --voters 3000@controller-1:9093",
        )
    chosen = [] if args.voters is None else _voters(args.voters)
    with without_collector():
        survivors = survey(args.directory, session.progress)
    loaded = survivors.log.load(session.progress)
    plan = _Plan(session, survivors, loaded)
    if survivors.contradictions and args.to is not None:
        raise DataError(
            f"recover: the copies have two histories: {survivors.contradictions[0].text}",
            hint=f"{_DECIDE}; nothing was written",
        )
    recovery = plan.recovery(chosen, args.to)
    written = None if args.to is None or recovery.voter is None else _written(args.to, plan, recovery.voter)
    session.remarks += [note for copy in survivors.copies for note in copy.notes]
    session.remarks += twins(survivors.copies)
    session.remarks += [torn.note(path) for path, torn in filter(None, (copy.torn for copy in survivors.copies))]
    session.remarks += filter(None, (not_the_voter(copy, survivors.reference) for copy in survivors.of_cluster))
    note_unread_source(session, args.directory)
    sections = [
        *(plan.histories() if survivors.contradictions else plan.majority()),
        *plan.sections(),
        *([] if written is None else [Section("written", "Written", written)]),
    ]
    steps = [f"{_DECIDE}."] if survivors.contradictions else recovery.steps()
    title = "Steps, only if these voters do not start" if sections[0].key == "majority" else "Steps"
    sections.append(Section("steps", title, {str(n): step for n, step in enumerate(steps, 1)}))
    unread = EXIT_SOURCE if survivors.unread else EXIT_OK
    result = Report(sections, exit_code=unread if survivors.is_sound else EXIT_DATA)
    result.readable = _plan_shown(sections, plan.uncommitted)
    return result


def _plan_shown(sections: list[Section], uncommitted: int) -> Report:
    """The text output: the steps come before the records, which may fill pages; their numbers come before the steps."""
    section_by_key = {section.key: section for section in sections}
    records = []
    for key in ("uncertain", "lost"):
        section = section_by_key.pop(key)
        rows = [{**row, "data": names_and_values(row["data"])} for row in _rows_of(section)]
        records.append(section._replace(body=Rows(_RECORDS, rows)))
    lacking = len(list(_rows_of(records[1])))
    keep = section_by_key["keep"].body
    assert isinstance(keep, Mapping)
    at_stake = {
        "uncommitted": counted(uncommitted, "record"),
        "lacking": f"{counted(lacking, 'record')}{' or more' if lacking >= _MOST else ''} of the copies",
    }
    section_by_key["keep"] = section_by_key["keep"]._replace(body={**keep, **at_stake})
    voters_section = section_by_key.pop("voters")
    return Report([*section_by_key.values(), *records, voters_section], is_answer_first=True)


def _rows_of(section: Section) -> Rows:
    assert isinstance(section.body, Rows)
    return section.body


def _voters(text: str) -> list[Voter]:
    chosen = [parse_voter(part.strip()) for part in text.split(",") if part.strip()]
    if not chosen:
        raise UsageError("recover: --voters names no voter", hint="--voters 3000@controller-1:9093")
    if len({voter.id for voter in chosen}) < len(chosen):
        raise UsageError("recover: --voters names a node twice")
    if len({voter.address for voter in chosen}) < len(chosen):
        raise UsageError("recover: --voters names an address twice")
    if any(voter.directory_id is not None for voter in chosen[1:]):
        hint = "the others get theirs when they are formatted"
        raise UsageError("recover: only the first of --voters can have a directory id", hint=hint)
    return chosen


def _written(directory: str, plan: _Plan, voter: Voter) -> JsonObject:
    survivors = plan.survivors
    target = os.path.realpath(local_path(directory))
    if any(is_inside(target, _log_directory(copy.source.path)) for copy in survivors.copies):
        raise CommandError(f"{directory}: is inside a copy, where kshell never writes", hint="choose another directory")
    require_empty(directory, target, "choose a new directory: nothing is ever written over")
    with new_directory(directory, target) as place:
        end = write(place, survivors, voter, plan.kraft_version, plan.listener, plan.session.progress)
    return {
        "directory": directory,
        "nodeId": voter.id,
        "directoryId": str(voter.directory_id),
        "clusterId": survivors.cluster_id,
        "endOffset": end,
    }


def _log_directory(path: str) -> str:
    """The log directory that has a metadata directory, or one file of it."""
    around = os.path.dirname(path) or "."
    return os.path.dirname(around) or "." if os.path.basename(around) == METADATA_DIRECTORY else around


class _Plan:
    """The plan as sections of a report; ``loaded`` is the state of the new log that is made from the copies."""

    def __init__(self, session: Session, survivors: Survivors, loaded: Loaded) -> None:
        self.session = session
        self.survivors = survivors
        self._loaded = loaded
        entry = loaded.image[QUORUM].get(KRAFT_VERSION)
        self.kraft_version = int(entry.value) if entry else 0
        level = loaded.image["features"].get(FEATURE)
        self._metadata_version = version_name(level.value) if level else "unknown"

    @property
    def listener(self) -> str:
        """The name of the controllers' listener, from the voters' endpoints; ``CONTROLLER`` if they have none."""
        names = [point["name"] for voter in voters(self._loaded) for point in voter.get("endpoints", ())]
        return names[0] if names else _LISTENER

    @property
    def uncommitted(self) -> int:
        """The number of records of the new log that no copy proves to be committed."""
        return max(self.survivors.log.end - self._committed, 0)

    @property
    def _committed(self) -> int:
        """The offset below which the copies prove that the new log's records are committed."""
        return min(self.survivors.comparison.committed, self.survivors.log.certain)

    def histories(self) -> list[Section]:
        """A section that says why no plan can be made: the copies are not of one history."""
        sentences = {str(n): contradiction.text for n, contradiction in enumerate(self.survivors.contradictions, 1)}
        return [Section("histories", "These copies have two histories", sentences)]

    def majority(self) -> list[Section]:
        """A section that says that recovery may not be needed; empty unless a majority of voters has sound copies."""
        voter_ids = startable_majority(self.survivors.comparison)
        if not voter_ids or self.survivors.known_losses:
            return []
        advice = (
            "these voters are most of them, their logs are whole, and one of them has every record that is known: if"
            " their servers still start, start them as they are, and do nothing of what follows. Start a controller"
            " whose disk is new or empty only when one of these leads"
        )
        return [Section("majority", "Recovery may not be needed", {"voters": voter_ids, "advice": advice})]

    def sections(self) -> list[Section]:
        """The sections on copies, damage, the copy to keep, records and voters, in this order."""
        rows = [self._copy(verdict) for verdict in self.survivors.verdicts]
        rows += [_not_read(copy) for copy in self.survivors.unread]
        log = self.survivors.log
        uncertain = list(islice(self._records(log.ranges, self._committed, log.end), _MOST))
        lacking = list(islice(self._records(log.lacking), _MOST))
        damage = [
            {"copy": copy.path, "damage": error.message} for copy in self.survivors.copies for error in copy.damage
        ]
        helpers: list[Row] = [
            {"copy": copy.path, "snapshot": snapshot_id(file)} for copy, file in log.foreign_snapshots
        ]
        helpers += [
            {"copy": part.copy.path, "fromOffset": part.start, "toOffset": part.end - 1} for part in log.helpers
        ]
        return [
            Section("copies", "Copies", Rows(_COPIES, rows)),
            *([Section("damage", "Damage", Rows(_DAMAGE, damage))] if damage else []),
            Section("keep", "Keep", self._keep()),
            *([Section("taken", "Taken from other copies", Rows(_TAKEN, helpers))] if helpers else []),
            Section(
                "uncertain",
                f"Records that may not be committed: {self.uncommitted}",
                Rows(_RECORDS, uncertain),
            ),
            Section(
                "lost",
                f"Records of the copies that the new log lacks: {_number(len(lacking))}",
                Rows(_RECORDS, lacking),
            ),
            Section("voters", "Voters", {"kraftVersion": self.kraft_version, "voters": voters(self._loaded)}),
        ]

    def _copy(self, verdict: CopyVerdict) -> Row:
        copy, newest = verdict.copy, verdict.copy.newest
        reasons = [contradiction.text for contradiction in self.survivors.contradictions if contradiction.copy is copy]
        return {
            "copy": copy.path,
            "state": with_damage(verdict.state, is_damaged=bool(copy.damage)),
            "nodeId": copy.node_id,
            "endOffset": copy.end,
            "lastEpoch": copy.last_epoch if copy.end is not None else None,
            "snapshot": snapshot_id(newest) if newest else None,
            "reason": "; ".join(reasons) or reason(verdict, self.survivors.reference),
            "damage": [error.message for error in copy.damage],
            "clusterId": copy.cluster_id,
        }

    def _keep(self) -> JsonObject:
        reference, comparison = self.survivors.reference, self.survivors.comparison
        why = which_to_keep(comparison, [verdict.state for verdict in self.survivors.verdicts], self._repaired())
        if len(self.survivors.copies) == 1:
            restriction = "that can be read" if self.survivors.unread else "given"
            alone = f"it is the only copy {restriction}; brokers have one, too, and so may old backups"
            why = "; ".join(filter(None, (alone, self._repaired())))
        why = "; ".join([why, *self.survivors.known_losses])
        if self.survivors.contradictions:
            why = (
                "not decided: of these copies it has the highest epoch, or is the longest, but they have two histories"
            )
        last = self._loaded.image.provenance
        return {
            "copy": reference.path,
            "why": why,
            "clusterId": self.survivors.cluster_id,
            "metadataVersion": self._metadata_version,
            "endOffset": self.survivors.log.end,
            "lastOffset": last.offset,
            "epoch": reference.last_epoch,
            "committedBelow": self._committed or None,
            "openTransaction": self._loaded.open_transaction,
        }

    def _repaired(self) -> str | None:
        """A sentence on how the new log deals with what the kept copy lacks; ``None`` if it lacks nothing."""
        reference, log = self.survivors.reference, self.survivors.log
        if log.certain < (reference.end or 0):
            lost = f"nothing that was given has, for certain, what comes at offset {log.certain}"
            if log.end > log.certain:
                return f"{lost}: records of other copies continue the new log up to offset {log.end - 1}"
            return f"{lost}: the new log ends there"
        if not reference.damage:
            return None
        if log.helpers:
            return "it is damaged: the other copies have what it lacks, and the new log is whole"
        if log.foreign_snapshots:
            return "it is damaged: newer snapshots come from other copies, and the new log does without what is damaged"
        if reference.newest is not None and (reference.log_end or 0) <= log.end and reference.log_end != reference.end:
            return (
                f"its log cannot be read after offset {(reference.log_end or 0) - 1}: what came after offset"
                f" {log.end - 1}, where its newest snapshot ends, is lost unless another copy has it"
            )
        return (
            f"it is damaged (see Damage): the new log has what can be read, up to offset {log.end - 1}; anything else"
            " is lost unless another copy has it"
        )

    def _records(self, ranges: Iterable[LogRange], start: int = 0, end: int | None = None) -> Iterator[Row]:
        for copy, first, last in ranges:
            begin, after = max(first, start), last if end is None else min(last, end)
            if begin < after:
                for record in log_records(copy.source, start=begin, until=after - 1):
                    yield {"copy": copy.path, **record_row(self.session, record)}

    def recovery(self, voters: list[Voter], place: str | None) -> RecoverySteps:
        """The instructions for starting with the first of the voters, if any is named; the others join it.

        If the first is a broker, too, it keeps its directory id.
        """
        voter = voters[0] if voters else None
        brokers = frozenset(self._loaded.image[BROKERS.name])
        survivors = self.survivors
        steps = RecoverySteps(
            copies=survivors.of_cluster,
            kept_copy=survivors.reference,
            cluster_id=survivors.cluster_id,
            broker_ids=brokers,
            kraft_version=self.kraft_version,
            voter=voter,
            directory=place,
            joining=tuple(voters[1:]),
        )
        own = steps.own_copy
        if voter is None or voter.directory_id is not None:
            return steps
        kept_id = None if own is None or own.directory_id is None else Uuid.parse(own.directory_id)
        return steps._replace(voter=voter._replace(directory_id=kept_id or new_directory_id()))


def _number(lacking: int) -> str:
    return f"{_MOST} or more" if lacking >= _MOST else str(lacking or "none")


def _not_read(copy: UnreadCopy) -> Row:
    """The row of a copy that cannot be read."""
    unknown = dict.fromkeys(("nodeId", "endOffset", "lastEpoch", "snapshot", "clusterId"))
    return {"copy": copy.path, "state": NOT_COMPARED, "reason": copy.reason, "damage": [], **unknown}


COMMAND = Command(
    name="recover",
    task=Task.PROBLEMS,
    summary="a plan for controllers that lost their majority, and the directory to start again from",
    run=run,
    arguments=RecoverArguments,
    args=(
        Arg(
            "directory",
            "what is left: metadata directories of controllers and brokers",
            arity="+",
            complete=complete_file,
        ),
    ),
    flags=(
        Flag(("--to",), "write the new directory there", metavar="NEWDIR"),
        Flag(
            ("--voters",),
            "the controllers, ID@HOST:PORT[:DIRECTORY_ID],ID@HOST:PORT,…: the first starts from it, and the steps say"
            " how the others join it",
            metavar="VOTERS",
        ),
    ),
    examples=(
        Example("recover node-1 node-2", "which copy to keep, what may be lost, and what to do"),
        Example(
            "recover node-1 node-2 --to new --voters 3000@localhost:9093:pN3mHcFZSNKvbLXk1qjEVw",
            "the directory for controller 3000, with an id of its own",
        ),
        Example(
            "recover node-1 node-2 --to first --voters 3000@a:9093:pN3mHcFZSNKvbLXk1qjEVw,3001@b:9093",
            "the directory for 3000, and the steps with which 3001 joins it",
        ),
    ),
    description=(
        "For a quorum that cannot elect a leader any more, because most of its controllers lost their disks. Reads"
        " every copy that is left (brokers have one, too), keeps the one that would win an election, and says what it"
        " lacks and which of its records no copy proves to be committed. What is damaged or missing in it is taken from"
        " the others, as far as one of them has it whole. Where something shows that the copies have two histories,"
        " there is no plan: somebody has to decide. With --to it writes a new directory; the copies stay unchanged."
        " With kraft.version 1 the voters are written into the log (KIP-853); with kraft.version 0 they are in"
        " server.properties, and the steps say how. Only one controller starts from the directory, the first that"
        " --voters names: the others are formatted and join it. docs/recovery.md has the recipes."
    ),
    needs_source=False,
)
