"""Health checks of brokers, controllers, the quorum, features and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.metadata.feature_levels import (
    CONTROLLERS_REGISTER,
    CONTROLLERS_UNREGISTER,
    KRAFT_VERSION,
    METADATA_VERSION,
    level_name,
    level_title,
)
from kshell.metadata.feature_update import check as verdicts
from kshell.metadata.health.check import (
    CRITICAL,
    ERROR,
    INFO,
    WARNING,
    CheckedState,
    Observation,
    SnapshotAge,
    broker_path,
    check,
)
from kshell.metadata.next_steps import Cure
from kshell.wording import ids

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

BEHIND_AFTER = 10_000
"""Milliseconds since a replica last caught up, after which it is behind; followers fetch twice a second."""
BEHIND_BY = 1000
"""Lag in offsets above which a replica is behind, where no times are reported (before 3.4)."""
STARTS_WITHIN = 60_000
"""Milliseconds within which a broker that has registered should catch up and be unfenced."""
SNAPSHOT_AFTER = 6 * 3600_000
"""Milliseconds of log without a snapshot that are too many: an hour is usual (metadata.log.max.snapshot.interval.ms).
"""
_HOURLY = 9
"""Servers from before this metadata.version (3.5-IV0) may write snapshots by size alone, so that days may pass."""
_SIZE_ONLY_FACTOR = 12
"""How many times longer servers from before :data:`_HOURLY` may go without a snapshot."""
SNAPSHOT_BYTES = 3 * 20 * 1024 * 1024
"""Bytes of log without a snapshot that are too many: servers write one every 20 MiB
(metadata.log.max.record.bytes.between.snapshots)."""
_NO_SNAPSHOTS = (
    "see the server's log for SnapshotGenerator: snapshots may fail for want of space or rights; or its properties put"
    " them off (metadata.log.max.record.bytes.between.snapshots, metadata.log.max.snapshot.interval.ms)"
)
_DYNAMIC = {KRAFT_VERSION: 1}
"""The feature level of a dynamic quorum, whose voters are in the log (KIP-853): tools of 3.9 and later change them."""
_REMOVE_VOTER = (
    "kafka-metadata-quorum.sh remove-controller --controller-id {id} --controller-directory-id {directory}"
    " --bootstrap-controller"
)
_REPLACED = Cure(
    "if its disk was replaced, make the new directory the voter: {0}, then kafka-metadata-quorum.sh add-controller with"
    " the controller's own properties",
    (_REMOVE_VOTER,),
)
_UNREGISTER_CONTROLLER = "kafka-cluster.sh unregister-controller --id {id} --bootstrap-controller"
_FINALIZE = "kafka-features.sh upgrade --feature {feature}={level}"
_RAISES_KRAFT = (4, 1)
"""The first release whose controllers turn a static quorum into a dynamic one (KAFKA-16907)."""


def _fenced(state: CheckedState) -> list[int]:
    return [number for number, entry in sorted(state.image["brokers"].items()) if entry.value.fenced is True]


@check(
    "brokerFenced", ERROR, "a broker that has replicas does not serve", "start it, or see why it cannot: its server.log"
)
def broker_fenced(state: CheckedState) -> Iterator[Observation]:
    """A broker is registered and fenced, and has replicas."""
    for number in _fenced(state):
        if number in state.holding:
            rack = state.image["brokers"][number].value.rack
            yield Observation(broker_path(number), f"broker {number} is fenced" + (f", rack {rack}" if rack else ""))


def _is_starting(state: CheckedState, number: int) -> bool:
    """Whether a broker of a running quorum registered a moment ago, and no record has changed it since."""
    origin = state.image["brokers"][number].origin
    if state.quorum is None or state.now is None or origin.record_type != "REGISTER_BROKER_RECORD":
        return False
    return origin.timestamp > 0 and bool(state.now - origin.timestamp < STARTS_WITHIN)


@check(
    "staleRegistration",
    INFO,
    "a broker that has no replicas does not serve",
    (Cure("if it is gone for good: {0}", ("kafka-cluster.sh unregister --id {id}",)),),
)
def stale_registration(state: CheckedState) -> Iterator[Observation]:
    """A broker is registered and fenced, has no replicas, and is not just starting."""
    for number in _fenced(state):
        if number not in state.holding and not _is_starting(state, number):
            yield Observation(broker_path(number), f"broker {number} is fenced and has no replicas", {"id": number})


@check(
    "brokerShuttingDown",
    WARNING,
    "a broker is in controlled shutdown: its leaders move elsewhere",
    "wait until its process has ended, and start it again if it is to serve: partitions whose last replica in sync it"
    " has wait for it; it is held up by a partition that it leads (`partitions --where 'leader == {id}'`), or a broker"
    " that does not keep up with the metadata log (`quorum`)",
)
def broker_shutting_down(state: CheckedState) -> Iterator[Observation]:
    """A broker is in controlled shutdown, and not fenced yet: after that it has shut down."""
    for number, entry in sorted(state.image["brokers"].items()):
        if entry.value.in_controlled_shutdown is True and entry.value.fenced is not True:
            yield Observation(broker_path(number), f"broker {number} is in controlled shutdown", {"id": number})


@check(
    "controllerUnregistered",
    WARNING,
    "a voter has not registered: features cannot be upgraded, and its address is not known",
    (
        Cure("start controller {id}, or take it out of the quorum: {0}", (_REMOVE_VOTER,), at_least=_DYNAMIC),
        Cure(
            "start controller {id}; no tool takes it out of a static quorum: it is named in controller.quorum.voters in"
            " the properties of every node"
        ),
    ),
)
def controller_unregistered(state: CheckedState) -> Iterator[Observation]:
    """A voter is not registered; from metadata.version 3.7-IV0 on controllers register."""
    version = state.features.finalized.get(METADATA_VERSION, 0)
    if version >= CONTROLLERS_REGISTER and not state.is_partial:
        for voter in sorted(set(state.voters) - set(state.image["controllers"])):
            yield Observation("/image/cluster/controllers", f"voter {voter} is not registered", _voter(state, voter))


@check(
    "staleController",
    INFO,
    "a controller that is no voter is registered: no feature goes to a level that it does not support",
    (
        Cure(
            "no tool of this release removes it: if it is gone for good, upgrade all nodes to Kafka 4.4 and finalize"
            " metadata.version 4.4-IV2, which brings kafka-cluster.sh unregister-controller",
            until=(4, 4),
            below={METADATA_VERSION: CONTROLLERS_UNREGISTER},
        ),
        Cure(
            "if it is gone for good: {0} and then {1}",
            (f"kafka-features.sh upgrade --feature metadata.version={CONTROLLERS_UNREGISTER}", _UNREGISTER_CONTROLLER),
            below={METADATA_VERSION: CONTROLLERS_UNREGISTER},
        ),
        Cure("if it is gone for good: {0}", (_UNREGISTER_CONTROLLER,)),
    ),
)
def stale_controller(state: CheckedState) -> Iterator[Observation]:
    """A registered controller is no voter, and is not known to fetch: one that fetches may become a voter."""
    if not state.voters:
        return
    for number in sorted(
        set(state.image["controllers"]) - set(state.voters) - {node["id"] for node in _followers(state)}
    ):
        yield Observation(
            f"/image/cluster/controllers/{number}",
            f"controller {number} is registered and no voter",
            {"id": number},
        )


@check(
    "evenVoters",
    WARNING,
    "an even number of voters tolerates no more failures than one voter fewer",
    (
        Cure(
            "add a controller (format it with kafka-storage.sh format --no-initial-controllers, start it, then"
            " kafka-metadata-quorum.sh add-controller with its own properties), or remove one: {0}",
            (_REMOVE_VOTER,),
            at_least=_DYNAMIC,
        ),
        Cure(
            "no tool changes the voters of a static quorum; make it a dynamic one (`quorum --can-upgrade`): {0} and"
            " then add or remove a controller",
            ("kafka-features.sh upgrade --feature kraft.version=1",),
            since=_RAISES_KRAFT,
        ),
        Cure(
            "no tool of this release changes the voters of a static quorum: they are named in"
            " controller.quorum.voters in the properties of every node; from Kafka 4.1 on a quorum can be made dynamic"
        ),
    ),
)
def even_voters(state: CheckedState) -> Iterator[Observation]:
    """The number of voters is even: it bears the loss of no more of them than the odd number below it."""
    number = len(state.voters)
    if number and number % 2 == 0:
        bears = (number - 1) // 2
        # Not the leader, if it is known: that would cost an election. One that is away costs least.
        candidates = [voter for voter in state.voters if voter != state.features.leader_id]
        registered, behind = state.image["controllers"], {voter for voter, _ in _behind(state, "voters")}
        away = {voter for voter in candidates if (registered and voter not in registered) or voter in behind}
        spare = max(candidates, key=lambda voter: (voter in away, voter))
        evidence = f"{number} voters ({ids(sorted(state.voters))}): {bears} may be lost"
        yield Observation("/quorum/voters", evidence, _voter(state, spare))


def _followers(state: CheckedState) -> list[JsonObject]:
    """Return the observers that still fetch: the leader lists an observer for five minutes after its last fetch."""
    if state.quorum is None:
        return []
    leader = next((voter for voter in state.quorum["voters"] if voter["id"] == state.quorum["leaderId"]), None)
    now = (leader["lastFetchTimestamp"] if leader else None) or 0
    return [
        observer
        for observer in state.quorum["observers"] or ()
        if now - (observer["lastFetchTimestamp"] or now) < STARTS_WITHIN
    ]


def _voter(state: CheckedState, number: int) -> dict[str, object]:
    """Return the placeholders that identify a voter to Kafka's tools; an unknown directory id is left to the user."""
    return {"id": number, "directory": state.voter_directories.get(number, "DIRECTORY_ID")}


@check(
    "noLeader",
    CRITICAL,
    "the quorum has no leader: nothing can be changed",
    "start controllers until most voters are up; where most are gone for good: `recover`",
)
def no_leader(state: CheckedState) -> Iterator[Observation]:
    """The quorum has no leader. DescribeQuorum fails then, so it is inferred from other answers of the nodes."""
    if state.leaderless is not None:
        yield Observation("/quorum/leaderId", state.leaderless)


@check(
    "voterBehind",
    ERROR,
    "a controller does not keep up with the leader: it cannot take over, and the majority is smaller",
    (
        Cure(
            "start controller {id}, or see its log and its network; if it is gone for good: {0}",
            (_REMOVE_VOTER,),
            at_least=_DYNAMIC,
        ),
        Cure("start controller {id}, or see its log and its network"),
    ),
)
def voter_behind(state: CheckedState) -> Iterator[Observation]:
    """A voter is behind the leader: by the leader's clock where it reports times, else by offsets.

    A controller that came back with another disk follows as an observer, and the voter with its old directory stays.
    """
    replicas = [*(state.quorum["voters"] if state.quorum else ()), *_followers(state)]
    replicas.sort(key=lambda replica: replica["lastFetchTimestamp"] or 0)
    following = {replica["id"]: replica["directoryId"] for replica in replicas}  # the directory of the last fetch
    for voter, evidence in _behind(state, "voters"):
        path, values, directory = f"/quorum/voters/{voter}", _voter(state, voter), following.get(voter)
        if directory and state.voter_directories.get(voter, directory) != directory:
            more = f"it follows with the directory {directory}, which is no voter"
            yield Observation(path, f"{evidence}; {more}", values, _REPLACED.fill(state.tools, values))
        else:
            yield Observation(path, evidence, values)


@check("observerBehind", WARNING, "a node does not keep up with the metadata log", "see the node's log and its network")
def observer_behind(state: CheckedState) -> Iterator[Observation]:
    """A broker, or a controller that is no voter, is behind. The leader lists a stopped one for some minutes."""
    for observer, evidence in _behind(state, "observers"):
        yield Observation(f"/quorum/observers/{observer}", evidence, _voter(state, observer))


def _behind(state: CheckedState, role: str) -> Iterator[tuple[int, str]]:
    """Find the replicas that are behind the leader: (id, evidence); ``role`` is ``voters`` or ``observers``."""
    quorum = state.quorum
    if quorum is None or quorum[role] is None:
        return
    leader = next((voter for voter in quorum["voters"] if voter["id"] == quorum["leaderId"]), None)
    now = leader["lastFetchTimestamp"] if leader else None
    # The leader goes on to list a new voter among the observers, with the last fetch before it became a voter.
    new = {(voter["id"], voter["directoryId"]) for voter in quorum["voters"]} if role == "observers" else set()
    # So it lists a directory that was removed as a voter: another directory of the node has fetched since.
    fetched = {voter["id"]: voter["lastFetchTimestamp"] or 0 for voter in quorum["voters"]} if new else {}
    for node in sorted(quorum[role], key=lambda replica: replica["id"]):
        if node is leader or node["id"] < 0 or (new and (node["id"], node["directoryId"]) in new):
            continue
        if (node["lastFetchTimestamp"] or 0) < fetched.get(node["id"], 0):
            continue
        lag, caught = node["lag"], node["lastCaughtUpTimestamp"]
        late = now - caught if now is not None and caught is not None else None
        if (late is not None and late > BEHIND_AFTER) or (late is None and (lag is None or lag > BEHIND_BY)):
            since = "" if late is None else f", last caught up {late / 1000:.0f} s ago"
            evidence = f"leader {quorum['leaderId']} has not heard of it" if lag is None else f"lag {lag}{since}"
            yield node["id"], evidence


# --- features --------------------------------------------------------------------------------------------------------


def _ranges(state: CheckedState, name: str) -> dict[str, tuple[int, int]]:
    """Return title of a node -> lowest and highest level of a feature that it supports, where that is known."""
    return {node.title: node.supported.get(name, (0, 0)) for node in state.features.nodes if node.supported is not None}


@check(
    "featureUnsupported",
    ERROR,
    "a node does not support what is finalized: it cannot start again",
    "upgrade that node's software",
)
def feature_unsupported(state: CheckedState) -> Iterator[Observation]:
    """A node does not support a finalized level. Kafka refuses to finalize such, so older software was installed."""
    for name, level in sorted(state.features.finalized.items()):
        for title, (low, high) in _ranges(state, name).items():
            if not low <= level <= high:
                evidence = f"{name} {level_title(name, level)} is finalized, {title} supports {low} to {high}"
                yield Observation("/image/features", evidence)


@check(
    "mixedSoftware",
    WARNING,
    "nodes run different releases: an upgrade is not finished",
    "upgrade the nodes that support less (features names them), then finalize",
)
def mixed_software(state: CheckedState) -> Iterator[Observation]:
    """Nodes differ in the highest metadata.version that they support."""
    tops: dict[int, list[str]] = {}
    for title, (_, high) in _ranges(state, METADATA_VERSION).items():
        tops.setdefault(high, []).append(title)
    if len(tops) > 1:
        texts = [f"{level_title(METADATA_VERSION, top)}: {', '.join(titles)}" for top, titles in sorted(tops.items())]
        yield Observation("/image/cluster", f"highest metadata.version by node: {'; '.join(texts)}")


@check(
    "featureBehind",
    INFO,
    "all nodes support a higher metadata.version than is finalized",
    (
        Cure(
            "when nobody wants to go back to the old software: {0}",
            ("kafka-features.sh upgrade --metadata {name}",),
            until=(4, 0),
        ),
        Cure("when nobody wants to go back to the old software: {0}", (_FINALIZE,)),
    ),
)
def feature_behind(state: CheckedState) -> Iterator[Observation]:
    """A higher metadata.version could be finalized. Other features are ignored: they may be off on purpose."""
    level = state.features.finalized.get(METADATA_VERSION, 0)
    top = min((high for _, high in _ranges(state, METADATA_VERSION).values()), default=0)
    if 0 < level < top and not _is_refused(state, top):
        yield Observation(
            "/image/features/metadataVersion",
            f"{level_title(METADATA_VERSION, level)} is finalized,"
            f" all nodes support {level_title(METADATA_VERSION, top)}",
            {"feature": METADATA_VERSION, "level": top, "name": level_name(METADATA_VERSION, top)},
        )


def _is_refused(state: CheckedState, level: int) -> bool:
    """Whether Kafka would refuse to raise metadata.version, for example because a voter has not registered."""
    (verdict,) = verdicts(state.features, {METADATA_VERSION: level}, upgrade=True)
    return verdict.possible is False


# --- snapshots -------------------------------------------------------------------------------------------------------


@check(
    "noSnapshot",
    WARNING,
    "the log has grown without a snapshot: starting takes long, and the log cannot be cleaned",
    _NO_SNAPSHOTS,
)
def no_snapshot(state: CheckedState) -> Iterator[Observation]:
    """There is no snapshot, and more log than a server should write before the first one."""
    age = state.snapshots
    if age is None or age.snapshot is not None:
        return
    if _is_late(state, age):
        yield Observation("/snapshots", f"none, after {_span(age.last - age.first)} and {age.log_bytes} bytes of log")


@check(
    "noSnapshotYet",
    INFO,
    "there is no snapshot, which is normal in the first hour of a cluster",
    "nothing, unless snapshots were there before: servers write one an hour, or after 20 MiB of log",
)
def no_snapshot_yet(state: CheckedState) -> Iterator[Observation]:
    """There is no snapshot, and not much log. Not for a running quorum: only in a directory could it have been lost."""
    age = state.snapshots
    if age is not None and not age.is_running and age.snapshot is None and not _is_late(state, age):
        yield Observation("/snapshots", f"none, after {_span(age.last - age.first)} and {age.log_bytes} bytes of log")


def _longest(state: CheckedState) -> int:
    """Return how many milliseconds of log without a snapshot are acceptable."""
    is_hourly = state.features.finalized.get(METADATA_VERSION, 0) >= _HOURLY
    return SNAPSHOT_AFTER if is_hourly else SNAPSHOT_AFTER * _SIZE_ONLY_FACTOR


def _is_late(state: CheckedState, age: SnapshotAge) -> bool:
    return age.last - age.first > _longest(state) or age.log_bytes > SNAPSHOT_BYTES


@check(
    "oldSnapshot",
    WARNING,
    "the newest snapshot is old: starting takes long, and the log cannot be cleaned",
    _NO_SNAPSHOTS,
)
def old_snapshot(state: CheckedState) -> Iterator[Observation]:
    """The newest snapshot is much older than the log's last record. The clock is ignored: it may be an old copy."""
    age = state.snapshots
    if age is not None and age.snapshot is not None and age.last - age.snapshot > _longest(state):
        yield Observation(
            "/snapshots", f"the newest one is {_span(age.last - age.snapshot)} older than the log's last record"
        )


@check(
    "snapshotDisagrees",
    WARNING,
    "a snapshot holds what the log before it does not say: the node that wrote it shows, and uses, what others do not",
    "compare with another node's directory (`diff THIS OTHER`): where that one agrees with the log, stop this node,"
    " move its __cluster_metadata-0 away and start it, one node at a time: it fetches everything from the leader",
)
def snapshot_disagrees(state: CheckedState) -> Iterator[Observation]:
    """A snapshot differs from the log before it: for example, it has configs of a topic that no longer exists."""
    for slip in state.slips:
        yield Observation(slip.path, f"snapshot {slip.snapshot}: {slip.difference}")


def _span(milliseconds: int) -> str:
    hours = milliseconds / 3600_000
    if hours < 1:
        return f"{milliseconds / 60_000:.0f} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} d"
