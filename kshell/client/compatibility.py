"""Check whether a cluster supports a feature: which APIs and finalized levels it needs, and which nodes lack them.

The facts are a table: a line with KIP, name, the kind of server that is asked, and a description; below it, the APIs
with the lowest version that is needed. Each version was taken from the comments and fields of Kafka's message
definitions (``common/message/*.json`` of the kafka-clients jars), or is the first one of the release that brought the
feature, where the messages did not change (``loggers``). ``@`` marks a level that must be finalized (KIP-584), from
Kafka's ``MetadataVersion`` and its classes for the other features.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import Generic, NamedTuple, TypeVar

from kshell.protocol.names import API_NAMES, api_name

_TABLE = """
KIP-4 topic-admin broker: Topics are created and deleted through the protocol
    CreateTopics 0, DeleteTopics 0
KIP-35 api-versions any: Servers say which versions of which APIs they offer
    ApiVersions 0
KIP-36 rack-awareness broker: Brokers report their racks
    Metadata 1
KIP-43 sasl-mechanisms any: The SASL mechanism is negotiated
    SaslHandshake 0
KIP-48 delegation-tokens broker: Delegation tokens
    CreateDelegationToken 0, RenewDelegationToken 0, ExpireDelegationToken 0, DescribeDelegationToken 0
KIP-62 rebalance-timeout broker: A rebalance timeout apart from the session timeout
    JoinGroup 1
KIP-74 fetch-max-bytes broker: A limit for a whole fetch response
    Fetch 3
KIP-78 cluster-id broker: Brokers report the cluster's id
    Metadata 2
KIP-79 offsets-by-timestamp broker: One offset for a timestamp
    ListOffsets 1
KIP-88 offset-fetch-all broker: All committed offsets of a group at once
    OffsetFetch 2
KIP-98 transactions broker: Idempotent and transactional producers, read-committed consumers
    InitProducerId 0, AddPartitionsToTxn 0, AddOffsetsToTxn 0, EndTxn 0, TxnOffsetCommit 0, Produce 3, Fetch 4
KIP-101 leader-epoch-offsets broker: The end offset of a leader epoch
    OffsetForLeaderEpoch 0
KIP-107 delete-records broker: Records before an offset are deleted
    DeleteRecords 0
KIP-110 zstd broker: Records compressed with Zstandard
    Produce 7, Fetch 10
KIP-112 jbod-offline-replicas broker: Replicas on failed disks are reported as offline
    Metadata 5
KIP-113 log-dirs broker: Replicas' log directories are described and changed
    DescribeLogDirs 0, AlterReplicaLogDirs 0
KIP-133 configs broker: Configs are described and altered through the protocol
    DescribeConfigs 0, AlterConfigs 0
KIP-140 acl-admin broker: ACLs are listed, created and deleted through the protocol
    DescribeAcls 0, CreateAcls 0, DeleteAcls 0
KIP-152 sasl-authenticate any: SASL inside Kafka's own messages, with errors that say why
    SaslHandshake 1, SaslAuthenticate 0
KIP-195 create-partitions broker: Partitions are added to topics
    CreatePartitions 0
KIP-226 dynamic-broker-configs broker: Broker configs change without a restart; a config has its source and synonyms
    DescribeConfigs 1, AlterConfigs 0
KIP-227 fetch-sessions broker: Incremental fetch requests
    Fetch 7
KIP-229 delete-groups broker: Consumer groups are deleted
    DeleteGroups 0
KIP-290 prefixed-acls broker: ACLs for resources whose names share a prefix
    DescribeAcls 1, CreateAcls 1, DeleteAcls 1
KIP-320 leader-epoch-fencing broker: Consumers detect truncation and stale leaders
    Fetch 9, ListOffsets 4, OffsetForLeaderEpoch 2, Metadata 7
KIP-339 incremental-configs broker: Single configs are set, deleted, appended to and subtracted from
    IncrementalAlterConfigs 0
KIP-345 static-membership broker: Group members that keep their identity over restarts
    JoinGroup 5, SyncGroup 3, Heartbeat 3, OffsetCommit 7
KIP-360 producer-recovery broker: Producers recover from errors that end their epoch
    InitProducerId 3
KIP-368 sasl-reauthentication any: Sessions that end unless the client authenticates again
    SaslAuthenticate 1
KIP-373 tokens-for-others broker: Delegation tokens on behalf of other users
    CreateDelegationToken 3, DescribeDelegationToken 3
KIP-392 fetch-from-follower broker: Consumers read from the closest replica
    Fetch 11
KIP-405 tiered-storage-offsets broker: The first offset that is on local disks
    ListOffsets 8
KIP-412 loggers any: Log levels of one running server are listed and set (KIP-919 for controllers)
    DescribeConfigs 1, IncrementalAlterConfigs 1
KIP-430 authorized-operations broker: What the caller may do with a topic or a group
    DescribeGroups 3, Metadata 8
KIP-447 exactly-once-groups broker: Transactions fenced by the consumer group's generation
    TxnOffsetCommit 3, OffsetFetch 7
KIP-455 reassignments broker: Replicas are reassigned through the protocol
    AlterPartitionReassignments 0, ListPartitionReassignments 0
KIP-460 leader-elections broker: Preferred and unclean leader elections
    ElectLeaders 1
KIP-467 record-errors broker: Which record of a batch was refused, and why
    Produce 8
KIP-482 flexible-versions any: Tagged fields
    ApiVersions 3
KIP-496 offset-delete broker: Committed offsets of a group are deleted
    OffsetDelete 0
KIP-511 client-software any: Clients send their software's name and version
    ApiVersions 3
KIP-516 topic-ids broker: Topics are read and deleted by id
    Metadata 12, Fetch 13, DeleteTopics 6
KIP-518 group-states broker: Groups are listed by state
    ListGroups 4
KIP-525 create-topics-configs broker: CreateTopics answers with the new topic's configs
    CreateTopics 5
KIP-546 quotas broker: Client quotas are described and altered through the protocol
    DescribeClientQuotas 0, AlterClientQuotas 0
KIP-554 scram-admin broker: SCRAM credentials are listed, set and deleted (metadata.version 11 in KRaft)
    DescribeUserScramCredentials 0, AlterUserScramCredentials 0
KIP-569 config-docs any: Configs are described with type and documentation
    DescribeConfigs 3
KIP-584 features any: Levels of features are supported, finalized and updated
    ApiVersions 3, UpdateFeatures 0
KIP-595 quorum controller: The metadata quorum and its log
    Vote 0, BeginQuorumEpoch 0, EndQuorumEpoch 0, Fetch 12
KIP-599 controller-throttling broker: A quota for changes of topics, reported as THROTTLING_QUOTA_EXCEEDED
    CreateTopics 6, DeleteTopics 5, CreatePartitions 3
KIP-630 snapshot-fetch controller: Snapshots of the metadata log are fetched
    FetchSnapshot 0, Fetch 12
KIP-664 transaction-admin broker: Hanging transactions are found and aborted
    DescribeProducers 0, DescribeTransactions 0, ListTransactions 0, WriteTxnMarkers 0
KIP-699 batched-coordinators broker: Coordinators of several groups at once
    FindCoordinator 4
KIP-700 describe-cluster broker: The cluster's id, controller and brokers, apart from topics
    DescribeCluster 0
KIP-709 batched-offset-fetch broker: Committed offsets of several groups at once
    OffsetFetch 8
KIP-714 client-metrics broker: Clients push their metrics to brokers that have a plugin for them
    GetTelemetrySubscriptions 0, PushTelemetry 0
KIP-734 max-timestamp broker: The offset of the record with the highest timestamp
    ListOffsets 7
KIP-778 feature-upgrades any: Levels of features are validated, upgraded and downgraded
    UpdateFeatures 1
KIP-800 leave-reason broker: Members say why they join or leave a group
    JoinGroup 8, LeaveGroup 5
KIP-827 disk-capacity broker: Total and usable bytes of log directories
    DescribeLogDirs 4
KIP-836 quorum-timestamps any: DescribeQuorum reports when replicas last fetched and caught up
    DescribeQuorum 1
KIP-848 consumer-groups broker: The consumer group protocol whose assignments are made by the coordinator
    ConsumerGroupHeartbeat 0, ConsumerGroupDescribe 0, OffsetCommit 9, OffsetFetch 9, @group.version 1
KIP-853 dynamic-quorum controller: Voters are added to and removed from the quorum
    AddRaftVoter 0, RemoveRaftVoter 0, UpdateRaftVoter 0, Vote 1, BeginQuorumEpoch 1, EndQuorumEpoch 1,
    FetchSnapshot 1, Fetch 17, DescribeQuorum 2, @kraft.version 1
KIP-858 jbod controller: Several log directories a broker, in KRaft
    AssignReplicasToDirs 0, BrokerRegistration 2, BrokerHeartbeat 1, @metadata.version 17
KIP-860 reassignments-same-factor broker: Reassignments that must not change the replication factor
    AlterPartitionReassignments 1
KIP-868 metadata-transactions controller: Transactions in the metadata log
    @metadata.version 13
KIP-890 transactions-v2 broker: Transactions that are verified, with an epoch of their own each
    Produce 12, AddPartitionsToTxn 5, EndTxn 5, TxnOffsetCommit 5, @transaction.version 2
KIP-903 isr-broker-epochs controller: Replicas with a stale broker epoch do not join the ISR
    AlterPartition 3, Fetch 15, @metadata.version 10
KIP-919 controller-admin controller: Controllers are asked and administered directly
    DescribeCluster 1, DescribeConfigs 1, IncrementalAlterConfigs 0, ControllerRegistration 0,
    @metadata.version 15
KIP-932 share-groups broker: Share groups: queues for Kafka
    ShareGroupHeartbeat 1, ShareGroupDescribe 1, ShareFetch 1, ShareAcknowledge 1, FindCoordinator 6,
    @share.version 1
KIP-939 two-phase-commit broker: Transactions that take part in a two-phase commit (unstable)
    InitProducerId 6
KIP-951 leader-discovery broker: The new leader and its endpoint come with the error
    Produce 10, Fetch 16
KIP-966 elr broker: Eligible leader replicas
    DescribeTopicPartitions 0, @eligible.leader.replicas.version 1
KIP-996 pre-vote controller: Candidates ask before they raise the epoch
    Vote 2
KIP-1000 client-metrics-admin broker: Subscriptions to client metrics are listed
    ListConfigResources 0
KIP-1005 tiered-offsets broker: The last offset in remote storage
    ListOffsets 9
KIP-1022 feature-levels-of-0 any: Features whose lowest supported level is 0 are reported
    ApiVersions 4
KIP-1023 pending-upload-offsets broker: The earliest offset that waits for upload to remote storage
    ListOffsets 11
KIP-1043 group-id-not-found broker: A group that does not exist is an error, not an empty group
    DescribeGroups 6
KIP-1066 cordoned-log-dirs broker: Log directories that take no new replicas
    DescribeLogDirs 5
KIP-1071 streams-groups broker: Groups of Kafka Streams whose tasks are assigned by the coordinator
    StreamsGroupHeartbeat 0, StreamsGroupDescribe 0, @streams.version 1
KIP-1073 fenced-brokers any: DescribeCluster lists fenced brokers, too
    DescribeCluster 2
KIP-1099 group-member-types broker: Whether a member speaks the classic or the consumer protocol
    ConsumerGroupDescribe 1
KIP-1142 config-resources broker: All resources that have configs are listed
    ListConfigResources 1
KIP-1152 transactions-by-pattern broker: Transactions are listed by a pattern of their ids
    ListTransactions 2
KIP-1166 fetch-high-watermark controller: A follower says its high watermark, and hears of a new one at once
    Fetch 18
KIP-1206 share-acquire-mode broker: Share consumers with a strict limit of records
    ShareFetch 2
KIP-1222 share-renew broker: Share consumers renew the lock of a record
    ShareFetch 2, ShareAcknowledge 2
KIP-1226 share-lag broker: The lag of share groups
    DescribeShareGroupOffsets 1
KIP-1242 peer-check any: Servers refuse clients that meant another cluster or another node
    ApiVersions 5
KIP-1276 acl-host-ranges broker: ACLs for hosts of an address range (CIDR)
    @metadata.version 32
KIP-1312 unregister-controller any: Registrations of controllers are removed
    UnregisterController 0, @metadata.version 33
KIP-1319 transactional-commits-by-topic-id broker: Transactions commit offsets by topic id
    TxnOffsetCommit 6
KIP-1331 streams-topologies broker: Members of streams groups describe their topology
    StreamsGroupTopologyDescriptionUpdate 0, StreamsGroupHeartbeat 1, StreamsGroupDescribe 1
"""

KINDS: dict[str, frozenset[str]] = {
    "any": frozenset({"broker", "controller"}),
    "broker": frozenset({"broker"}),
    "controller": frozenset({"controller"}),
}


class Capability(NamedTuple):
    """Something that a cluster may be able to do, such as ``share-groups`` (KIP-932).

    ``requires`` is API key -> (lowest, highest) version; all servers that are asked must share a version in this range
    (highest ``None``: no upper limit). ``levels`` is feature -> lowest finalized level. ``kinds`` are the kinds of
    server that are asked.
    """

    name: str
    kip: str
    about: str
    kinds: frozenset[str]
    requires: Mapping[int, tuple[int, int | None]]
    levels: Mapping[str, int]


@cache
def capabilities() -> dict[str, Capability]:
    """Return every capability by its name, in the order of the table."""
    keys = {name: key for key, name in API_NAMES.items()}
    out = {}
    for line in _TABLE.strip().split("\n"):
        if not line.startswith(" "):
            head, _, about = line.partition(": ")
            kip, name, kind = head.split(" ")
            requires: dict[int, tuple[int, int | None]] = {}
            levels: dict[str, int] = {}
            out[name] = Capability(name, kip, about, KINDS[kind], requires, levels)
            continue
        for requirement in line.strip().rstrip(",").split(", "):
            subject, lowest = requirement.split(" ")
            if subject.startswith("@"):
                levels[subject[1:]] = int(lowest)
            else:
                requires[keys[subject]] = (int(lowest), None)
    return out


def find(name: str) -> list[Capability]:
    """Return the capabilities of a name or a KIP: ``share-groups``, ``KIP-932``, ``kip932`` or ``932``."""
    capabilities_by_name = capabilities()
    if name.lower() in capabilities_by_name:
        return [capabilities_by_name[name.lower()]]
    number = name.lower().removeprefix("kip").lstrip("-")
    return [feature for feature in capabilities_by_name.values() if feature.kip == f"KIP-{number}"]


# --- what servers share (KIP-35) --------------------------------------------------------------------------------------


Range = tuple[int, int]
N = TypeVar("N", bound=Hashable)

PRODUCE = 0
VOTE, BROKER_REGISTRATION = 52, 62


class Requirement(NamedTuple):
    """An API that a capability needs: its ``required`` versions, and the versions that all nodes share, if any."""

    api_key: int
    api_name: str
    required: tuple[int, int | None]
    shared: Range | None
    met: bool


class Blocker(NamedTuple, Generic[N]):
    """A node that blocks a capability, and why; ``node`` is ``None`` for a finalized level of the whole cluster."""

    node: N | None
    reason: str


class Compatibility(NamedTuple, Generic[N]):
    """Whether a cluster has a capability, with the reasons.

    ``usable`` is ``None`` if that cannot be decided: no server of the right kind was asked (``nodes`` is empty), or a
    required level is not known (``unknown`` names it). ``nodes`` are the servers that were asked and that the
    capability concerns.
    """

    feature: Capability
    usable: bool | None
    nodes: list[N]
    requirements: list[Requirement]
    blockers: list[Blocker[N]]
    unknown: list[str]


def shared(nodes: Mapping[N, Mapping[int, Range]]) -> dict[int, Range | None]:
    """Return, for each API key that some node offers, the versions that all nodes offer; ``None`` if there are none.

    ``nodes`` is node -> API key -> (lowest, highest) version. The result is in the order of the keys.
    """
    keys = sorted({key for ranges in nodes.values() for key in ranges})
    return {key: _shared(key, nodes.values()) for key in keys}


def _shared(key: int, nodes: Iterable[Mapping[int, Range]]) -> Range | None:
    spans = [ranges.get(key) for ranges in nodes]
    offered = [span for span in spans if span is not None]
    if not offered or len(offered) < len(spans):
        return None
    low, high = max(low for low, _ in offered), min(high for _, high in offered)
    return (low, high) if low <= high else None


def kind_of(ranges: Mapping[int, Range]) -> str | None:
    """Return ``"broker"`` or ``"controller"``, by APIs that only one of them offers; ``None`` if it offers neither."""
    if PRODUCE in ranges:
        return "broker"
    return "controller" if VOTE in ranges or BROKER_REGISTRATION in ranges else None


def check(
    feature: Capability, nodes: Mapping[N, Mapping[int, Range]], finalized: Mapping[str, int] | None = None
) -> Compatibility[N]:
    """Check whether the cluster of these nodes has a capability: they must share a required version of each API.

    ``nodes`` is node -> API key -> (lowest, highest) version; nodes that the capability does not concern are ignored.
    ``finalized`` is feature -> finalized level (0 for an absent feature); ``None`` if the levels are not known.
    """
    concerned = {node: ranges for node, ranges in nodes.items() if kind_of(ranges) in (None, *feature.kinds)}
    requirements: list[Requirement] = []
    blockers: list[Blocker[N]] = []
    for key, required in feature.requires.items():
        common = _shared(key, concerned.values())
        met = _overlap(required, common)
        requirements.append(Requirement(key, api_name(key), required, common, met))
        if not met:
            blockers += _in_the_way(key, required, concerned)
    unknown: list[str] = []
    for name, level in feature.levels.items():
        if finalized is None:
            unknown.append(f"the level of {name}, at least {level}")
        elif finalized.get(name, 0) < level:
            blockers.append(Blocker(None, f"{name} is {finalized.get(name, 0)}, {level} is needed"))
    usable = None if not concerned else False if blockers else None if unknown else True
    return Compatibility(feature, usable, list(concerned), requirements, blockers, unknown)


def _overlap(required: tuple[int, int | None], span: Range | None) -> bool:
    low, high = required
    return span is not None and span[1] >= low and (high is None or span[0] <= high)


def _in_the_way(key: int, required: tuple[int, int | None], nodes: Mapping[N, Mapping[int, Range]]) -> list[Blocker[N]]:
    """Return the nodes that lack the required versions of an API; if each has one, two nodes that share none."""
    name = api_name(key)
    blockers = []
    for node, ranges in nodes.items():
        span = ranges.get(key)
        if span is None:
            blockers.append(Blocker(node, f"{name} is not offered, {_version_text(required)} is needed"))
        elif not _overlap(required, span):
            blockers.append(
                Blocker(node, f"{name} is offered {_version_text(span)}, {_version_text(required)} is needed")
            )
    if blockers or not nodes:
        return blockers
    ends_first = min(nodes, key=lambda node: nodes[node][key][1])
    starts_last = max(nodes, key=lambda node: nodes[node][key][0])
    reason = f"no version of {name} {_version_text(required)} is shared"
    return [Blocker(node, f"{reason}: {_version_text(nodes[node][key])} here") for node in (ends_first, starts_last)]


def _version_text(versions: tuple[int, int | None]) -> str:
    low, high = versions
    if high is None:
        return f"{low} or later"
    return str(low) if low == high else f"{low}-{high}"
