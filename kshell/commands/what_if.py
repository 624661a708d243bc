"""``what-if``: who would lead, and what would be offline, if brokers died or an unclean election were held.

The controller's rules for one partition are in :mod:`kshell.metadata.failover`; here they are applied to all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.cluster.broker_arguments import broker_id, complete_brokers, refuse_unknown
from kshell.cluster.features import cluster_features
from kshell.cluster.min_isr_flag import (
    MIN_ISR_DEFAULT,
    MinIsrRowArguments,
    may_be_missing,
    min_isr_of,
    unknown_without_rows,
)
from kshell.cluster.min_isr_flag import OF_ROWS as MIN_ISR
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import TIMESTAMP, Report, Result, Row, Rows, Section, StyledText
from kshell.errors import EXIT_FINDING, EXIT_OK, CommandError, UsageError, did_you_mean
from kshell.history.story import IN_SNAPSHOT, Partitions, complete_partition, story_of, target
from kshell.metadata.election import (
    FENCED,
    UNREGISTERED,
    ElectionCase,
    depends_on_controller,
    leaderless,
    statuses,
)
from kshell.metadata.failover import Outcome, after_crashes, after_unclean_election
from kshell.metadata.families.cluster import Broker
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partial import is_unreported, reported_ids, reported_or_none
from kshell.metadata.partition_state import OFFLINE, STATES, UNDER_MIN_ISR, MinIsr, problems, state
from kshell.metadata.partitions import Partition, Topic
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import BROKER_ID, TOPIC_NAME, note_unknown_names
from kshell.tables.selection import row_flags, select, worst_first
from kshell.tables.state.topics import by_name
from kshell.tree.image import epoch_ms, iso

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_PARTS = ("topics", "brokers", "configs")
UNCLEAN_ELECTION, LEADER_MOVES, NO_WORSE = "unclean-election", "leader-moves", "no-worse"
EFFECTS = (OFFLINE, UNCLEAN_ELECTION, UNDER_MIN_ISR, LEADER_MOVES, NO_WORSE)
_HARMFUL = EFFECTS[:3]
_STATE = Enumeration(STATES)
_FIELDS = (
    Field("topic", TOPIC_NAME, "the topic's name", spare=-1),
    Field("partition", "int32", "the partition's number", spare=-1),
    Field("leader", BROKER_ID, "the broker that leads it now; -1 for none"),
    Field("leaderAfter", BROKER_ID, "the broker that would lead it; -1 for none"),
    Field("isr", [BROKER_ID], "those in sync now", spare=1),
    Field("isrAfter", [BROKER_ID], "the ISR that would be left"),
    Field("elrAfter", [BROKER_ID], "those outside the ISR that might then lead without loss", spare=1),
    Field("stateAfter", _STATE, "online, or the worst of offline, under-min-isr, under-replicated", spare=1),
    Field("minIsr", "int32", "min.insync.replicas; null if unknown", spare=2),
    Field(
        "what",
        Enumeration(EFFECTS),
        f"{OFFLINE}: no replica would lead; {UNCLEAN_ELECTION}: a replica would lead that may lack records;"
        f" {UNDER_MIN_ISR}: too few in sync for acks=all; {LEADER_MOVES}: another would lead, without loss;"
        f" {NO_WORSE}: clients would notice nothing, or are as badly off now",
        spare=-1,
    ),
    Field("elr", [BROKER_ID], "the ELR now", True),
    Field("replicas", [BROKER_ID], "brokers that are to have it", True),
    Field("inSyncUntilOffset", "int64", "with --unclean: the record by which the new leader fell out of sync", True),
    Field("inSyncUntil", TIMESTAMP, "the time of that record", True),
    Field("inSyncUntilMs", "int64", "that time, in milliseconds since 1970", True),
    Field("topicId", "string", "the topic's id", True),
)
_VERBS = {
    OFFLINE: ("goes offline", "go offline"),
    UNCLEAN_ELECTION: ("gets a leader that may lack records", "get leaders that may lack records"),
    UNDER_MIN_ISR: ("is under min ISR", "are under min ISR"),
    LEADER_MOVES: ("only gets another leader without loss", "only get another leader without loss"),
    NO_WORSE: ("is no worse off", "are no worse off"),
}


class WhatIfArguments(MinIsrRowArguments):
    """Arguments and options of ``what-if``."""

    kill: tuple[int, ...] | None
    rack: str | None
    unclean: str | None
    all: bool


def run(session: Session, args: WhatIfArguments) -> Result:
    """Return one row per partition whose clients would notice something; with ``--all``, of all. Raises KshellError."""
    scenarios = [name for name in ("kill", "rack", "unclean") if getattr(args, name) is not None]
    if len(scenarios) != 1:
        raise UsageError(
            "what-if: of --kill, --rack and --unclean "
            + ("one is needed" if not scenarios else "only one can be given"),
            hint="such as `what-if --kill 2`, `what-if --rack r1` or `what-if --unclean orders-0`",
        )
    if args.unclean is not None:
        return _unclean(session, args, args.unclean)
    image = image_for(session, "what-if", _PARTS)
    dying = args.kill or () if args.rack is None else _brokers_of_rack(image, args.rack)
    refuse_unknown(image, dying)
    note_unknown_names(session, image, args.where)
    crash = _Crash(session, image, dying, min_isr_of(session, image, args))
    rows = list(crash.rows(every=args.all))
    who = _named(dying) if args.rack is None else f"rack {args.rack} ({_named(dying)})"
    closing = {"then": _totals(who, crash.counts, crash.offline_already), **crash.without_effect()}
    result = _answer(rows, args, closing)
    unknown_without_rows(result, args, sum(may_be_missing(_FIELDS, args, row) for row in crash.unknown))
    return result


def _controller(session: Session, image: Image) -> int | None:
    """The id of the active controller, if elections depend on it: brokers are not asked for the quorum in vain."""
    return cluster_features(session).leader_id if depends_on_controller(image) else None


class _Case(NamedTuple):
    """A partition before the scenario, with all that decides who may become its leader."""

    topic: Topic
    number: int
    before: ElectionCase
    least: MinIsr

    def row(self, outcome: Outcome) -> JsonObject:
        """The row that compares the partition before with its outcome."""
        value, after = self.before.partition, outcome.partition
        leader = after.leader if after.leader >= 0 else value.leader
        enough = self.least.of(self.topic.name, leader if isinstance(leader, int) else None)
        state_after = state(problems(after, enough))
        return {
            "topic": self.topic.name,
            "partition": self.number,
            "leader": reported_or_none(value.leader),
            "leaderAfter": reported_or_none(after.leader),
            "isr": list(value.isr),
            "isrAfter": list(after.isr),
            "elrAfter": list(reported_ids(after.elr)),
            "stateAfter": state_after,
            "minIsr": enough,
            "what": _effect(value, outcome, state_after),
            "elr": None if is_unreported(value.elr) else list(value.elr),
            "replicas": list(value.replicas),
            "inSyncUntilOffset": None,
            "inSyncUntil": None,
            "inSyncUntilMs": None,
            "topicId": str(self.topic.id),
        }


def _effect(before: Partition, outcome: Outcome, state_after: str) -> str:
    after = outcome.partition
    if after == before:
        return NO_WORSE
    moves = after.leader != before.leader
    if moves and after.leader < 0:
        return OFFLINE
    if not outcome.is_clean:
        return UNCLEAN_ELECTION
    if state_after == UNDER_MIN_ISR:
        return UNDER_MIN_ISR
    return LEADER_MOVES if moves else NO_WORSE


class _Crash:
    """Brokers of an image that die, one after another.

    Iterate :meth:`rows` first: that fills ``counts`` (by effect), ``offline_already`` (had no leader, and get none) and
    ``unknown``: the rows of partitions that may be under min ISR then, for it is not known, as if they were.
    """

    def __init__(self, session: Session, image: Image, dying: Sequence[int], least: MinIsr) -> None:
        self._image = image
        self._dying = dying
        self._least = least
        self._is_partial = not session.source.has_log
        self._controller = _controller(session, image)
        self.counts: Counter[str] = Counter()
        self.offline_already = 0
        self.unknown: list[Row] = []

    def rows(self, *, every: bool) -> Iterator[Row]:
        """Rows of the partitions whose clients would notice something; with ``every``, of all."""
        dying = frozenset(self._dying)
        for topic in by_name(self._image):
            rules: ElectionCase | None = None
            smallest = self._least.of(topic.name)
            for number, value in topic.scan():
                if not isinstance(value, Partition):
                    continue
                if not every and dying.isdisjoint(value.isr):
                    self._count(NO_WORSE, value)
                    continue
                if rules is None:
                    rules = leaderless(
                        self._image, topic.name, value, controller=self._controller, is_partial=self._is_partial
                    )
                case = rules._replace(partition=value, statuses=statuses(value, self._registration))
                outcome = after_crashes(case, self._dying, smallest)
                row = _Case(topic, number, case, self._least).row(outcome)
                self._count(row["what"], value)
                if row["minIsr"] is None and row["what"] in (LEADER_MOVES, NO_WORSE) and outcome.partition != value:
                    self.unknown.append({**row, "what": UNDER_MIN_ISR, "stateAfter": UNDER_MIN_ISR})
                if every or row["what"] != NO_WORSE:
                    yield row

    def _count(self, effect: str, before: Partition) -> None:
        self.counts[effect] += 1
        self.offline_already += effect == NO_WORSE and before.leader == -1

    def without_effect(self) -> dict[str, str]:
        """A note on brokers that are down already, whose crash changes nothing; empty if there are none."""
        down = [broker for broker in self._dying if self._status(broker) in (FENCED, UNREGISTERED)]
        if not down:
            return {}
        is_or_are = "is" if len(down) == 1 else "are"
        return {"note": f"{_named(down)} {is_or_are} already fenced or not registered: the crash changes nothing"}

    def _status(self, broker: int) -> str:
        registration = self._registration(broker)
        return UNREGISTERED if registration is None else FENCED if registration.fenced is True else ""

    def _registration(self, broker: int) -> Broker | None:
        entry = self._image["brokers"].get(broker)
        return None if entry is None else entry.value


def _brokers_of_rack(image: Image, rack: str) -> list[int]:
    """The registered brokers of a rack, sorted by id. Raises CommandError if it has none."""
    racks = {broker_id: entry.value.rack for broker_id, entry in sorted(image["brokers"].items())}
    brokers = [broker for broker, name in racks.items() if name == rack]
    if not brokers:
        known_racks = sorted({name for name in racks.values() if name is not None})
        listed = f"racks: {', '.join(known_racks)}" if known_racks else "no registered broker has a rack"
        raise CommandError(f"rack {rack}: no registered broker is in it", hint=did_you_mean(rack, known_racks, listed))
    return brokers


# --- an unclean election ---------------------------------------------------------------------------------------------


def _unclean(session: Session, args: WhatIfArguments, text: str) -> Result:
    """Answer ``--unclean``: the row of one partition, and which records the log says may be lost."""
    story = story_of(session, "what-if")
    name, number, named_id = target(session, story, text, prefers_partition=True)
    image = image_for(session, "what-if", _PARTS)
    topic_id = image[NAMES].get(name)
    topic = image[TOPICS].get(topic_id)
    if topic is None or named_id not in (None, topic_id):
        raise CommandError(f"{name}: the topic was deleted")
    numbers = topic.partition_ids()
    if number is None and len(numbers) != 1:
        raise CommandError(f"{name}: which of its partitions?", hint=f"such as {name}-{numbers[0] if numbers else 0}")
    number = numbers[0] if number is None else number
    value = topic.value(number)
    if value is None:
        raise CommandError(f"{name}-{number}: the partition was deleted")
    if not isinstance(value, Partition):
        raise CommandError(f"{name}-{number}: the partition's record cannot be read", hint="`cat` shows its bytes")
    least = min_isr_of(session, image, args)
    controller = _controller(session, image)
    before = leaderless(image, name, value, controller=controller, is_partial=not session.source.has_log)
    case = _Case(topic, number, before, least)
    if value.leader != -1:
        row = case.row(Outcome(value))
        then = (
            f"broker {value.leader} leads: Kafka refuses an unclean election (ElectionNotNeeded), and nothing changes"
        )
        return _answer([row], args, {"then": then})
    outcome = after_unclean_election(before, least.of(name))
    row, after = case.row(outcome), outcome.partition
    if after.leader < 0:
        row["what"] = OFFLINE
        then = "no replica runs that could be elected: start one of its brokers first (`why` says which loses nothing)"
        return _answer([row], args, {"then": then})
    if row["what"] != UNCLEAN_ELECTION:
        then = f"broker {after.leader} is in the {before.source}: it would lead, and no committed record is lost"
        return _answer([row], args, {"then": then})
    then = f"broker {after.leader} would lead, alone in the ISR"
    revisions = story.partition(topic.id, number)
    return _answer([row], args, {"then": then, "loss": _loss(row, before, after.leader, revisions)})


def _loss(row: JsonObject, before: ElectionCase, elected: int, revisions: Partitions) -> str:
    """Say which brokers have all committed records, and since when the elected one may not (also put into the row)."""
    complete = before.isr or before.elr or _last_in_sync(revisions)
    holders = (
        f"{_named(complete)} had all committed records last" if complete else "who had all records is not in the log"
    )
    fell = None
    for revision in reversed(revisions):
        if revision.value is not None and elected in _complete(revision.value):
            break
        fell = revision
    else:
        return (
            f"{holders}; as far as the log goes, broker {elected} was never in sync, and may have none of the records"
        )
    if fell is None or fell.since <= IN_SNAPSHOT:
        return f"{holders}; when broker {elected} fell out of sync is not in the log"
    row |= {"inSyncUntilOffset": fell.offset, "inSyncUntil": iso(fell.time), "inSyncUntilMs": epoch_ms(fell.time)}
    return (
        f"{holders}; broker {elected} was in sync until {iso(fell.time)} (offset {fell.offset} of the metadata log):"
        " what was written since then may be lost"
    )


def _complete(value: Partition) -> tuple[int, ...]:
    return reported_ids(value.isr) or reported_ids(value.elr)


def _last_in_sync(revisions: Partitions) -> tuple[int, ...]:
    values = (revision.value for revision in reversed(revisions) if revision.value is not None)
    return next((complete for value in values if (complete := _complete(value))), ())


# --- text output -----------------------------------------------------------------------------------------------------


def _answer(rows: list[Row], args: WhatIfArguments, closing: dict[str, str]) -> Rows:
    """Make the result; text output begins with the sentences of ``closing``, and has the worst rows first."""
    is_harmful = any(row["what"] in _HARMFUL for row in rows)
    result = select(_FIELDS, rows, args, exit_code=EXIT_FINDING if is_harmful else EXIT_OK)
    if args.columns is None:
        formatted = select(_FIELDS, worst_first(rows, args, "what", EFFECTS), args, readable=_format_row).readable
        assert isinstance(formatted, Rows)
        table = [Section("rows", "Partitions", formatted)] if rows else []
        result.readable = Report([Section("answer", "", closing), *table], is_answer_first=True)
    return result


def _format_row(row: Row) -> Row:
    """A row for text output, with harmful effects in colour."""
    effect = StyledText(row["what"], "error") if row["what"] in _HARMFUL else row["what"]
    return {**row, "what": effect}


def _totals(who: str, counts: Counter[str], offline_already: int) -> str:
    total = counts.total()
    parts = [f"{counts[effect]} {_VERBS[effect][counts[effect] != 1]}" for effect in EFFECTS if counts[effect]]
    if offline_already:
        parts[-1] += f" ({offline_already} offline already)"
    noun = "1 partition" if total == 1 else f"{total} partitions"
    return f"without {who}, of {noun}: {', '.join(parts) or 'nothing changes'}"


def _named(brokers: Sequence[int]) -> str:
    listed = ", ".join(map(str, brokers))
    return f"broker {listed}" if len(brokers) == 1 else f"brokers {listed}"


def _ids(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(broker_id(broker.strip()) for broker in text.split(",")))


def _complete_rack(session: Session, typed: str) -> list[str]:
    return sorted({entry.value.rack for entry in session.image["brokers"].values() if entry.value.rack is not None})


COMMAND = Command(
    name="what-if",
    task=Task.PROBLEMS,
    summary="who would lead, and what would be offline, if brokers died or an unclean election were held",
    run=run,
    arguments=WhatIfArguments,
    extra_words_for="--kill",
    flags=(
        Flag(
            ("--kill",),
            "brokers that die, one after another in that order",
            metavar="ID,…",
            convert=_ids,
            complete=complete_brokers,
            once=True,
        ),
        Flag(("--rack",), "all brokers of a rack die", metavar="NAME", complete=_complete_rack, once=True),
        Flag(
            ("--unclean",),
            "kafka-leader-election.sh --election-type unclean is run for a partition",
            metavar="TOPIC-PARTITION",
            complete=complete_partition,
            once=True,
        ),
        Flag(("--all",), "also the partitions whose clients would be no worse off"),
        MIN_ISR_DEFAULT,
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("what-if --kill 2", "if broker 2 crashes", 1),
        Example("what-if --kill 2,1 --where 'what == offline and topic == clicks'", "if broker 1 crashes as well", 1),
        Example("what-if --rack rack-b --where 'minIsr == 1' -o csv", "if a rack loses its power", 1),
        Example("what-if --unclean legacy-import-0", "whom an unclean election makes the leader, and the loss", 1),
    ),
    description=(
        "The answer follows the controller's rules. A broker that dies is fenced and leaves the ISRs; several brokers"
        " die one after another. A leader that still runs stays the leader. Otherwise the first replica that is in the"
        " ISR and runs (not fenced, not in controlled shutdown, its log directory online) becomes the leader; if there"
        " is none, and eligible.leader.replicas.version is on, one of the ELR, or the last leader; and where"
        " unclean.leader.election.enable is true, any replica that runs. The answer is about the moment at which the"
        " last of the brokers has been fenced: it foresees neither followers that catch up later nor the return of the"
        f" preferred leader. {MIN_ISR} For the ELR, an unknown min.insync.replicas counts as 1. With --unclean, the log"
        " says since when the new leader may lack records; a partition that has a leader stays unchanged."
    ),
    needs_records=True,
    exit_1_when="a partition would go offline, fall under min ISR or be led with loss, "
    "whether the options show it or not",
)
