"""The replay rules that are easy to miss, one by one."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path
from typing import Any

import pytest

from kshell.metadata.families.features import ZK_MIGRATION
from kshell.metadata.families.producer_ids import NEXT
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.recorded_topics import RecordedTopic, TopicAt
from kshell.metadata.records import record_types
from kshell.metadata.replay import Problem, Replayer
from kshell.metadata.values import Provenance
from kshell.protocol.batches import pack, write_batch
from kshell.protocol.primitives import ZERO_UUID, DecodeError, Uuid
from tests.builders import (
    LOG,
    TIME,
    batch,
    batches,
    control,
    control_batch,
    leader_change,
    parsed,
    replayed,
    snapshot,
    uuid,
    value,
)

WRITTEN_HERE = re.compile(r'value\(\s*"(\w+)"')
ID = uuid(1)
TOPIC = value("TOPIC", name="orders", topicId=ID)


def partition(number: int = 0, version: int = 2, **data: Any) -> bytes:
    defaults: dict[str, Any] = {
        "topicId": ID,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "leader": 1,
        "leaderEpoch": 5,
        "partitionEpoch": 9,
    }
    if version >= 1:
        defaults["directories"] = [uuid(11), uuid(12), uuid(13)]
    return value("PARTITION", version, partitionId=number, **(defaults | data))


def change(number: int = 0, version: int = 2, **data: Any) -> bytes:
    return value("PARTITION_CHANGE", version, partitionId=number, **({"topicId": ID} | data))


def broker(number: int = 1, epoch: int = 10, version: int = 3, **data: Any) -> bytes:
    defaults: dict[str, Any] = {"incarnationId": uuid(100), "fenced": True, "rack": None}
    return value("REGISTER_BROKER", version, brokerId=number, brokerEpoch=epoch, **(defaults | data))


def config(name: str, content: str | None, resource: str = "orders", kind: int = 2) -> bytes:
    return value("CONFIG", resourceType=kind, resourceName=resource, name=name, value=content)


def quota(remove: bool = False, amount: float = 1.5, key: str = "producer_byte_rate", **entity: str | None) -> bytes:
    parts = [{"entityType": kind.replace("_", "-"), "entityName": name} for kind, name in entity.items()]
    return value("CLIENT_QUOTA", entity=parts, key=key, value=amount, remove=remove)


def after(*values: bytes) -> Image:
    """The image of records that all fit."""
    image, replayer = replayed(*values)
    assert replayer.problems == []
    return image


def problems(*values: bytes) -> tuple[Image, list[Problem]]:
    image, replayer = replayed(*values)
    return image, replayer.problems


def the_partition(image: Image, number: int = 0) -> Partition:
    topic = image["topics"][ID]
    assert isinstance(topic, Topic)
    entry = topic.partition(number)
    assert entry is not None
    assert isinstance(entry.value, Partition)
    return entry.value


# --- partitions ------------------------------------------------------------------------------------------------------


def test_a_partition_of_a_log() -> None:
    found = the_partition(after(TOPIC, partition(eligibleLeaderReplicas=[3], lastKnownElr=[2], leaderRecoveryState=1)))
    assert found == Partition(
        (1, 2, 3), (uuid(11), uuid(12), uuid(13)), (1, 2, 3), (), (), (3,), (2,), 1, "RECOVERING", 5, 9
    )


def test_every_partition_change_raises_the_partition_epoch() -> None:
    found = the_partition(after(TOPIC, partition(), change(), change(isr=[1])))
    assert (found.partition_epoch, found.leader_epoch, found.leader, found.isr) == (11, 5, 1, (1,))


def test_after_the_largest_epoch_comes_the_smallest() -> None:
    most = (1 << 31) - 1
    found = the_partition(after(TOPIC, partition(leaderEpoch=most, partitionEpoch=most), change(leader=2)))
    assert (found.partition_epoch, found.leader_epoch) == (-most - 1, -most - 1)


def test_only_a_change_that_names_a_leader_raises_the_leader_epoch() -> None:
    named = the_partition(after(TOPIC, partition(), change(leader=2)))
    assert (named.leader, named.leader_epoch) == (2, 6)
    same = the_partition(after(TOPIC, partition(), change(leader=1)))
    assert (same.leader, same.leader_epoch) == (1, 6)
    none = the_partition(after(TOPIC, partition(), change(leader=-1)))
    assert (none.leader, none.leader_epoch) == (-1, 6)
    unchanged = the_partition(after(TOPIC, partition(), change(leader=-2)))
    assert (unchanged.leader, unchanged.leader_epoch, unchanged.partition_epoch) == (1, 5, 10)


def test_an_empty_list_in_a_change_is_a_change_and_null_is_none() -> None:
    moving = partition(removingReplicas=[3], addingReplicas=[2], eligibleLeaderReplicas=[2], lastKnownElr=[3])
    kept = the_partition(after(TOPIC, moving, change(isr=None, removingReplicas=None, eligibleLeaderReplicas=None)))
    assert (kept.isr, kept.removing_replicas, kept.adding_replicas, kept.elr) == ((1, 2, 3), (3,), (2,), (2,))
    cleared = the_partition(
        after(TOPIC, moving, change(removingReplicas=[], addingReplicas=[], eligibleLeaderReplicas=[], lastKnownElr=[]))
    )
    assert cleared[3:7] == ((), (), (), ())


def test_a_change_of_replicas_directories_and_recovery() -> None:
    found = the_partition(
        after(
            TOPIC,
            partition(leaderRecoveryState=1),
            change(replicas=[4, 5], directories=[uuid(4), uuid(5)], leaderRecoveryState=0),
        )
    )
    assert (found.replicas, found.directories) == ((4, 5), (uuid(4), uuid(5)))
    assert found.leader_recovery_state == "RECOVERED"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_partition_without_directories_is_migrating(version: int) -> None:
    listed: dict[str, Any] = {} if version == 0 else {"directories": []}
    assert the_partition(after(TOPIC, partition(version=version, **listed))).directories == (ZERO_UUID,) * 3
    grown = the_partition(after(TOPIC, partition(version=version, **listed), change(version=0, replicas=[1, 2, 3, 4])))
    assert grown.directories == (ZERO_UUID,) * 4


def test_directories_that_do_not_match_the_replicas_are_listed() -> None:
    image, found = problems(TOPIC, partition(directories=[uuid(1)]))
    assert "1 directories for 3 replicas" in found[0].reason
    assert list(image["topics"][ID].partitions()) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (change(7), "topic orders has no partition 7"),
        (value("PARTITION_CHANGE", topicId=uuid(9), partitionId=0), "there is no topic with id"),
        (value("PARTITION", topicId=uuid(9), partitionId=0), "there is no topic with id"),
        (value("REMOVE_TOPIC", topicId=uuid(9)), "there is no topic with id"),
        (value("CLEAR_ELR", topicName="other"), "there is no topic named"),
        (change(leaderRecoveryState=5), "leader recovery state 5"),
        (value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(9)), "there is no ACL with id"),
    ],
)
def test_what_does_not_fit_is_skipped_and_listed(record: bytes, reason: str) -> None:
    image, found = problems(TOPIC, partition(), record)
    assert image == after(TOPIC, partition())
    assert len(found) == 1
    assert reason in found[0].reason
    assert not found[0].unknown
    assert found[0].origin.offset == 2


# --- topics and configs ----------------------------------------------------------------------------------------------


def test_remove_topic_drops_partitions_name_and_configs() -> None:
    other = [value("TOPIC", name="other", topicId=uuid(2)), config("retention.ms", "1", "other")]
    gone = after(TOPIC, partition(), config("retention.ms", "5"), *other, value("REMOVE_TOPIC", topicId=ID))
    assert gone == after(*other)
    assert dict(gone["topicNames"]) == {"other": uuid(2)}


def test_a_topic_of_the_same_name_starts_anew() -> None:
    again = value("TOPIC", name="orders", topicId=uuid(2))
    image = after(TOPIC, partition(), config("a", "1"), value("REMOVE_TOPIC", topicId=ID), again, config("b", "2"))
    assert image == after(again, config("b", "2"))


def test_a_null_config_value_deletes_the_key() -> None:
    image = after(config("a", "1"), config("b", ""), config("a", None))
    assert {name: entry.value for name, entry in image["configs"]["TOPIC", "orders"].items()} == {"b": ""}
    assert dict(after(config("a", "1"), config("a", None))["configs"]) == {}
    assert dict(after(config("never set", None))["configs"]) == {}


def test_config_resources_are_apart() -> None:
    image = after(
        config("a", "1", "", 4),
        config("a", "2", "1", 4),
        config("a", "3", "1", 8),
        config("a", "4", "g", 32),
        config("a", "5", "m", 16),
        config("a", "6", "x", 77),
    )
    assert list(image["configs"]) == [
        ("BROKER", ""),
        ("BROKER", "1"),
        ("BROKER_LOGGER", "1"),
        ("GROUP", "g"),
        ("CLIENT_METRICS", "m"),
        ("UNKNOWN(77)", "x"),
    ]


OTHER = uuid(2)
ELR_TOPICS = [
    TOPIC,
    partition(0, eligibleLeaderReplicas=[3]),
    partition(1, lastKnownElr=[2]),
    partition(2),
    value("TOPIC", name="other", topicId=OTHER),
    value("PARTITION", 2, partitionId=0, topicId=OTHER, replicas=[1], eligibleLeaderReplicas=[1], partitionEpoch=3),
]


def elrs(image: Image) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...], int]]:
    return {
        (topic.name, number): (entry.value.elr, entry.value.last_known_elr, entry.value.partition_epoch)
        for topic in image["topics"].values()
        for number, entry in topic.partitions()
    }


def test_clear_elr_of_one_topic_touches_only_partitions_that_had_one() -> None:
    assert elrs(after(*ELR_TOPICS, value("CLEAR_ELR", topicName="orders"))) == {
        ("orders", 0): ((), (), 10),
        ("orders", 1): ((), (), 10),
        ("orders", 2): ((), (), 9),
        ("other", 0): ((1,), (), 3),
    }


def test_clear_elr_without_a_name_is_for_all_topics() -> None:
    found = elrs(after(*ELR_TOPICS, value("CLEAR_ELR", topicName="")))
    assert found["orders", 0] == ((), (), 10)
    assert found["other", 0] == ((), (), 4)
    assert found["orders", 2] == ((), (), 9)


def test_clear_elr_where_there_is_none_changes_nothing() -> None:
    assert elrs(after(TOPIC, partition(), value("CLEAR_ELR", topicName=""))) == {("orders", 0): ((), (), 9)}


# --- brokers and controllers -----------------------------------------------------------------------------------------


def test_a_broker_registration() -> None:
    points = [
        {"name": name, "host": "h", "port": 65535, "securityProtocol": code} for name, code in (("Z", 3), ("A", 9))
    ]
    features = [{"name": "f", "minSupportedVersion": 0, "maxSupportedVersion": 2}]
    found = after(broker(version=4, endPoints=points, features=features, rack="r", logDirs=[ID], cordonedLogDirs=[]))[
        "brokers"
    ][1].value
    assert [(one.name, one.port, one.security_protocol) for one in found.listeners] == [
        ("A", 65535, "UNKNOWN(9)"),
        ("Z", 65535, "SASL_SSL"),
    ]
    assert found.supported_features == {"f": {"min": 0, "max": 2}}
    assert (found.rack, found.directories, found.cordoned_directories) == ("r", (ID,), ())
    assert after(broker(version=0))["brokers"][1].value.cordoned_directories is None


def test_fence_and_unfence() -> None:
    unfenced = after(broker(), value("UNFENCE_BROKER", id=1, epoch=10))
    assert not unfenced["brokers"][1].value.fenced
    fenced = after(broker(fenced=False), value("FENCE_BROKER", id=1, epoch=10))
    assert fenced["brokers"][1].value.fenced


@pytest.mark.parametrize(
    "record",
    [
        value("UNFENCE_BROKER", id=1, epoch=11),
        value("FENCE_BROKER", id=1, epoch=9),
        value("BROKER_REGISTRATION_CHANGE", 1, brokerId=1, brokerEpoch=11, fenced=-1),
        value("UNFENCE_BROKER", id=2, epoch=10),
        value("BROKER_REGISTRATION_CHANGE", 1, brokerId=2, brokerEpoch=10, fenced=-1),
    ],
)
def test_a_change_needs_a_known_broker_and_its_epoch(record: bytes) -> None:
    image, found = problems(broker(), record, value("NO_OP"))
    assert image == after(broker())
    assert [(problem.origin.offset, problem.unknown) for problem in found] == [(1, False)]
    assert ("epoch" in found[0].reason) or ("not registered" in found[0].reason)


def registration_change(version: int = 3, **data: Any) -> bytes:
    return value("BROKER_REGISTRATION_CHANGE", version, brokerId=1, brokerEpoch=10, **data)


def test_a_registration_change_names_what_it_changes() -> None:
    start = [broker(version=4, logDirs=[uuid(1)], cordonedLogDirs=[uuid(1)])]

    def changed(**data: Any) -> Any:
        return after(*start, registration_change(**data))["brokers"][1].value

    same = after(*start)["brokers"][1].value
    assert changed() == same
    assert changed(fenced=0, inControlledShutdown=0) == same
    assert changed(fenced=-1) == same._replace(fenced=False)
    assert changed(fenced=1) == same
    assert changed(inControlledShutdown=1) == same._replace(in_controlled_shutdown=True)
    assert changed(logDirs=[]) == same
    assert changed(logDirs=[uuid(2)]) == same._replace(directories=(uuid(2),))
    assert changed(cordonedLogDirs=None) == same
    assert changed(cordonedLogDirs=[]) == same._replace(cordoned_directories=())


def test_directories_of_a_broker_are_sorted_as_kafka_sorts_them() -> None:
    """By ``Uuid.compareTo``, which compares signed halves; cordoned ones keep their order."""
    positive, negative = Uuid(bytes(15) + b"\1"), Uuid(b"\xff" * 16)
    low = Uuid(bytes(8) + b"\x80" + bytes(7))
    dirs = [positive, low, negative]
    image = after(broker(version=4, logDirs=dirs, cordonedLogDirs=dirs))
    assert image["brokers"][1].value.directories == (negative, low, positive)
    assert image["brokers"][1].value.cordoned_directories == (positive, low, negative)
    changed = after(broker(version=4), registration_change(logDirs=dirs))
    assert changed["brokers"][1].value.directories == (negative, low, positive)


@pytest.mark.parametrize("data", [{"fenced": 2}, {"fenced": -2}, {"inControlledShutdown": 2}])
def test_a_change_that_no_release_defines_is_listed(data: dict[str, int]) -> None:
    image, found = problems(broker(), registration_change(**data))
    assert image == after(broker())
    assert "unknown change of broker 1" in found[0].reason


def test_a_registration_replaces_and_unregister_removes() -> None:
    image = after(broker(epoch=10), broker(epoch=20, fenced=False))
    assert image["brokers"][1].value.epoch == 20
    gone = after(broker(), broker(2), value("UNREGISTER_BROKER", brokerId=1, brokerEpoch=10))
    assert list(gone["brokers"]) == [2]
    assert after(value("UNREGISTER_BROKER", brokerId=5, brokerEpoch=0)) == EMPTY


def test_controllers_come_and_go() -> None:
    register = value("REGISTER_CONTROLLER", controllerId=3000, incarnationId=ID, zkMigrationReady=True)
    assert after(register)["controllers"][3000].value.zk_migration_ready
    assert after(register, value("UNREGISTER_CONTROLLER", controllerId=3000)) == EMPTY


# --- the small families ----------------------------------------------------------------------------------------------


def test_a_default_quota_entity_has_no_name() -> None:
    image = after(quota(user=None), quota(user="", amount=2.0), quota(user=None, client_id="c", amount=3.0))
    found = {entity: entry["producer_byte_rate"].value for entity, entry in image["clientQuotas"].items()}
    assert found == {
        (("user", None),): 1.5,
        (("user", ""),): 2.0,
        (("client-id", "c"), ("user", None)): 3.0,
    }


def test_quotas_are_removed_key_by_key_whatever_the_order_of_the_entity() -> None:
    both = [quota(user="u", client_id="c"), quota(user="u", client_id="c", key="request_percentage")]
    image = after(*both, quota(client_id="c", user="u", remove=True))
    (entity,) = image["clientQuotas"]
    assert list(image["clientQuotas"][entity]) == ["request_percentage"]
    assert after(quota(user="u"), quota(user="u", remove=True)) == EMPTY
    assert after(quota(user="u", remove=True)) == EMPTY


def scram(name: str, mechanism: int, iterations: int = 4096) -> bytes:
    return value(
        "USER_SCRAM_CREDENTIAL",
        name=name,
        mechanism=mechanism,
        salt=b"s",
        storedKey=b"k",
        serverKey=b"v",
        iterations=iterations,
    )


def test_scram_credentials_of_each_mechanism() -> None:
    image = after(scram("a", 1), scram("a", 2), scram("b", 1, 8192))
    assert sorted(image["scram"]["SCRAM-SHA-256"]) == ["a", "b"]
    assert sorted(image["scram"]["SCRAM-SHA-512"]) == ["a"]
    removed = after(scram("a", 1), scram("a", 2), value("REMOVE_USER_SCRAM_CREDENTIAL", name="a", mechanism=1))
    assert removed == after(scram("a", 2))
    assert after(value("REMOVE_USER_SCRAM_CREDENTIAL", name="a", mechanism=1)) == EMPTY


def test_delegation_tokens() -> None:
    def token(expiry: int) -> bytes:
        return value("DELEGATION_TOKEN", owner="User:a", renewers=["User:b"], expirationTimestamp=expiry, tokenId="t")

    assert after(token(5), token(9))["delegationToken"]["t"].value.expiry_timestamp == 9
    assert after(token(5))["delegationToken"]["t"].value.renewers == ("User:b",)
    assert after(token(5), value("REMOVE_DELEGATION_TOKEN", tokenId="t")) == EMPTY


def test_a_feature_at_level_0_is_gone() -> None:
    def level(name: str, number: int) -> bytes:
        return value("FEATURE_LEVEL", name=name, featureLevel=number)

    image = after(level("metadata.version", 20), level("group.version", 1), level("group.version", 0))
    assert {name: entry.value for name, entry in image["features"].items()} == {"metadata.version": 20}


def test_kraft_version_is_no_feature_of_the_image() -> None:
    image, replayer = replayed(value("FEATURE_LEVEL", name="kraft.version", featureLevel=1))
    assert not image["features"] and not replayer.problems
    assert image.provenance.offset == 0


def test_the_last_state_of_the_migration_from_zookeeper_counts() -> None:
    image = after(*(value("ZK_MIGRATION_STATE", zkMigrationState=state) for state in (1, 2)))
    assert image[ZK_MIGRATION][ZK_MIGRATION].value == 2


def test_acls_are_added_and_removed_by_id() -> None:
    acl = value(
        "ACCESS_CONTROL_ENTRY",
        id=ID,
        resourceType=2,
        resourceName="orders",
        patternType=4,
        principal="User:a",
        host="*",
        operation=3,
        permissionType=3,
    )
    assert tuple(after(acl)["acls"][ID].value) == ("TOPIC", "orders", "PREFIXED", "User:a", "*", "READ", "ALLOW")
    assert after(acl, value("REMOVE_ACCESS_CONTROL_ENTRY", id=ID)) == EMPTY


def test_the_last_producer_ids_record_counts() -> None:
    image = after(value("PRODUCER_IDS", nextProducerId=1000), value("PRODUCER_IDS", nextProducerId=2**62))
    assert image["producerIds"][NEXT].value == 2**62


# --- transactions ----------------------------------------------------------------------------------------------------

BEGIN, END, ABORT = (
    value("BEGIN_TRANSACTION", name="t"),
    value("END_TRANSACTION"),
    value("ABORT_TRANSACTION", reason="no"),
)


def test_an_ended_transaction_takes_effect_in_order() -> None:
    image, replayer = replayed(TOPIC, BEGIN, partition(), change(leader=2), END)
    assert replayer.problems == []
    assert image == after(TOPIC, partition(), change(leader=2))
    assert (replayer.open_transaction, image.provenance) == (None, Provenance(4, 1, TIME))
    assert image["topics"][ID].partition(0).origin.offset == 3


def test_an_aborted_transaction_never_was() -> None:
    image, replayer = replayed(TOPIC, BEGIN, partition(), change(9), ABORT, config("a", "1"))
    assert replayer.problems == []
    assert image == after(TOPIC, config("a", "1"))
    assert image.provenance.offset == 5


def test_an_open_transaction_publishes_nothing_and_its_offset_is_told() -> None:
    image, replayer = replayed(TOPIC, BEGIN, partition())
    assert image == after(TOPIC)
    assert replayer.open_transaction == 1
    assert image.provenance.offset == 0


@pytest.mark.parametrize("marker", [END, ABORT])
def test_an_end_without_a_begin_is_listed(marker: bytes) -> None:
    image, found = problems(TOPIC, marker, partition())
    assert image == after(TOPIC, partition())
    assert [(problem.origin.offset, problem.reason) for problem in found] == [(1, "no transaction is open")]


def test_a_begin_inside_a_transaction_is_listed() -> None:
    image, found = problems(BEGIN, TOPIC, BEGIN, partition(), END)
    assert image == after(TOPIC, partition())
    assert [(problem.origin.offset, problem.reason) for problem in found] == [(2, "a transaction is already open")]


def test_a_transaction_over_several_batches_with_a_leader_change_inside() -> None:
    replayer = Replayer()
    raw = batch([BEGIN, TOPIC]) + control_batch([leader_change(7)], 2, 2) + batch([partition(), END], 3, 2)
    for found in batches(raw):
        replayer.log_batch(found, LOG)
    image = replayer.image()
    assert replayer.problems == []
    assert the_partition(image).leader == 1
    assert image["quorum"]["leader"].value["leaderId"] == 7


# --- control records -------------------------------------------------------------------------------------------------


def test_control_records_are_kept_beside_the_metadata() -> None:
    replayer = Replayer()
    pairs = [leader_change(3001), control(5, version=0, kRaftVersion=1), control(6, version=0, voters=[])]
    replayer.log_batch(parsed(control_batch(pairs)), LOG)
    quorum = replayer.image()["quorum"]
    assert quorum["leader"].value["leaderId"] == 3001
    assert quorum["kraftVersion"].value == 1
    assert quorum["voters"].value == ()
    assert replayer.problems == []


def test_control_records_that_are_newer_are_listed_as_unknown() -> None:
    replayer = Replayer()
    pairs = [(b"\x00\x00\x00\x09", b"\x00\x00"), (b"\x00\x00\x00\x05", b"\x00\x07")]
    replayer.log_batch(parsed(control_batch(pairs)), LOG)
    found = [(problem.unknown, problem.origin.record_type, problem.origin.version) for problem in replayer.problems]
    assert found == [(True, "UNKNOWN_CONTROL_9", 0), (True, "KRAFT_VERSION", 7)]
    assert replayer.image() == EMPTY


def test_malformed_control_records_are_listed_as_damage() -> None:
    replayer = Replayer()
    pairs = [(b"\x00\x00\x00\x02", b"\x00\x00\x01"), (b"\x00\x00\x00\x05", None), (None, b"\x00\x00")]
    replayer.log_batch(parsed(control_batch(pairs)), LOG)
    found = [(problem.unknown, problem.origin.record_type, problem.origin.version) for problem in replayer.problems]
    assert found == [(False, "LEADER_CHANGE", 0), (False, "KRAFT_VERSION", -1), (False, "UNKNOWN_CONTROL", 0)]
    assert replayer.image() == EMPTY


# --- what is newer than kshell, and where things came from -----------------------------------------------------------


def test_newer_records_are_listed_as_unknown_and_the_rest_goes_on() -> None:
    newer = [b"\x01\x1f\x00xyz", b"\x01\x02\x09" + TOPIC[3:], b"\x02" + TOPIC[1:]]
    image, found = problems(TOPIC, *newer, partition())
    assert image == after(TOPIC, partition())
    assert [(problem.origin.offset, problem.origin.record_type, problem.unknown) for problem in found] == [
        (1, "UNKNOWN_31", True),
        (2, "TOPIC_RECORD", True),
        (3, "TOPIC_RECORD", True),
    ]
    assert [problem.undecoded.raw for problem in found if problem.undecoded] == newer


def test_a_malformed_record_is_listed_as_damage() -> None:
    _, found = problems(TOPIC[:-1])
    assert [problem.unknown for problem in found] == [False]


ODD_PAIRS = [(b"k", TOPIC), (None, None), (None, TOPIC)]
ODD_REASONS = ["a metadata record has a key", "the record has no value"]


def test_a_record_with_a_key_or_without_a_value_is_listed_as_damage() -> None:
    replayer = Replayer()
    replayer.log_batch(parsed(write_batch(ODD_PAIRS, base_offset=0, epoch=1, timestamp=TIME)), LOG)
    assert [(problem.origin.offset, problem.reason, problem.unknown) for problem in replayer.problems] == [
        (0, ODD_REASONS[0], False),
        (1, ODD_REASONS[1], False),
    ]
    assert replayer.image()["topics"][ID].origin.offset == 2


def test_the_same_inside_a_transaction() -> None:
    pairs = [(None, BEGIN), *ODD_PAIRS, (None, END)]
    replayer = Replayer()
    replayer.log_batch(parsed(write_batch(pairs, base_offset=0, epoch=1, timestamp=TIME)), LOG)
    found = [(problem.origin.offset, problem.reason) for problem in replayer.problems]
    assert found == [(1, ODD_REASONS[0]), (2, ODD_REASONS[1])]
    assert replayer.image()["topics"][ID].origin.offset == 3


def test_the_same_in_a_snapshot() -> None:
    replayer = Replayer()
    odd = [*ODD_PAIRS[:2], (None, TOPIC), (None, partition(0)), (b"k", partition(1)), (None, partition(2))]
    replayer.snapshot_batch(parsed(write_batch(odd, base_offset=1, epoch=1, timestamp=TIME)), "s.checkpoint")
    assert [(problem.origin.offset, problem.reason, problem.unknown) for problem in replayer.problems] == [
        (1, ODD_REASONS[0], False),
        (2, ODD_REASONS[1], False),
        (5, ODD_REASONS[0], False),
    ]
    assert replayer.image()["topics"][ID].partition_ids() == [0, 2]


def test_a_batch_whose_records_are_broken_changes_nothing() -> None:
    body = pack([(None, TOPIC), (None, config("a", "1"))])[:-1] + b"\x05"
    broken = write_batch([(None, b"")] * 2, base_offset=0, epoch=1, timestamp=TIME, compressed=body)
    replayer = Replayer()
    with pytest.raises(DecodeError):
        replayer.log_batch(parsed(broken), LOG)
    assert replayer.image() == EMPTY
    assert replayer.image().provenance == EMPTY.provenance


def test_every_value_knows_the_record_that_wrote_it() -> None:
    replayer = Replayer()
    raw = batch([TOPIC], 7) + batch([partition(), config("a", "1")], 8, 2)
    for found in batches(raw):
        replayer.log_batch(found, "x.log")
    image = replayer.image()
    origin = image["configs"]["TOPIC", "orders"]["a"].origin
    assert (origin.offset, origin.timestamp, origin.record_type, origin.version) == (9, TIME, "CONFIG_RECORD", 0)
    assert tuple(origin.place) == ("x.log", batches(raw)[1].position, 2, False)
    assert image["topics"][ID].origin.offset == 7
    assert image.provenance == Provenance(9, 2, TIME)


def test_until_stops_in_the_middle_of_a_batch() -> None:
    records = [TOPIC, partition(), config("a", "1"), BEGIN, config("b", "2"), END]
    for until in range(-1, 6):
        replayer = Replayer(until=until)
        replayer.log_batch(parsed(batch(records)), LOG)
        image = replayer.image()
        prefix, _ = replayed(*records[: until + 1]) if until >= 0 else (EMPTY, None)
        assert image == prefix
        assert image.provenance == prefix.provenance


def test_records_before_the_start_are_passed_over() -> None:
    replayer = Replayer()
    replayer.log_batch(parsed(batch([config("a", "1"), config("b", "2")], 4)), LOG, 5)
    assert list(replayer.image()["configs"]["TOPIC", "orders"]) == ["b"]


# --- snapshots -------------------------------------------------------------------------------------------------------


def from_snapshot(*values: bytes, per_batch: int = 100) -> tuple[Image, Replayer]:
    replayer = Replayer()
    for found in batches(snapshot(values, per_batch=per_batch)):
        replayer.snapshot_batch(found, "s.checkpoint")
    replayer.snapshot_end(40, 3, TIME)
    return replayer.image(), replayer


def test_a_snapshot_stands_at_the_offset_before_its_end() -> None:
    image, _ = from_snapshot(TOPIC)
    assert image.provenance == Provenance(39, 3, TIME)
    assert image["topics"][ID].origin.place.in_snapshot


@pytest.mark.parametrize("per_batch", [1, 2, 7, 100])
def test_a_snapshot_gives_the_image_of_the_same_records_in_a_log(per_batch: int) -> None:
    records = [TOPIC, *(partition(number) for number in range(5)), config("a", "1"), broker()]
    image, replayer = from_snapshot(*records, per_batch=per_batch)
    assert replayer.problems == []
    assert image == after(*records)
    assert image["topics"][ID].partition_ids() == [0, 1, 2, 3, 4]
    assert the_partition(image, 3).replicas == (1, 2, 3)


def test_log_records_change_partitions_that_wait_in_a_snapshot() -> None:
    base, _ = from_snapshot(TOPIC, *(partition(number) for number in range(5)))
    image, replayer = replayed(change(3, leader=2), base=base, start=40)
    assert replayer.problems == []
    assert the_partition(image, 3).leader == 2
    assert the_partition(image, 2).leader == 1
    assert the_partition(base, 3).leader == 1
    assert image["topics"][ID].partition(3).origin.place.file == LOG


def test_partitions_of_a_topic_that_a_snapshot_lacks_are_listed() -> None:
    image, replayer = from_snapshot(partition(0), partition(1))
    assert image == EMPTY
    assert [problem.origin.offset for problem in replayer.problems] == [1, 2]
    assert [problem.origin.record_type for problem in replayer.problems] == ["PARTITION_RECORD"] * 2


def test_newer_records_in_a_snapshot_are_listed() -> None:
    newer = b"\x01\x03\x09" + partition()[3:]
    _, replayer = from_snapshot(TOPIC, newer, b"\x01\x1f\x00")
    assert [(problem.origin.record_type, problem.unknown) for problem in replayer.problems] == [
        ("PARTITION_RECORD", True),
        ("UNKNOWN_31", True),
    ]


def test_a_replayer_is_gone_when_nobody_has_it_any_more() -> None:
    """One-shots run without the collector of cycles: the snapshots along a log would pile up."""
    _, replayer = replayed(value("TOPIC", name="t", topicId=uuid(1)), value("REMOVE_TOPIC", topicId=uuid(1)))
    replayer.release(0)
    watched, log = weakref.ref(replayer), weakref.ref(replayer.log)
    gc.disable()
    try:
        del replayer
        assert (watched(), log()) == (None, None)
    finally:
        gc.enable()


@pytest.mark.parametrize(("partitions", "rounds", "releases"), [(50, 40, 0), (2, 1000, 6), (50, 200, 1)])
def test_a_log_is_released_when_it_is_large_beside_its_partitions(
    monkeypatch: pytest.MonkeyPatch, partitions: int, rounds: int, releases: int
) -> None:
    """A partition costs the more to decode the more often it is decoded again: many partitions stay filed longer."""
    monkeypatch.setattr("kshell.metadata.replay._RETAINED", 20_000)
    monkeypatch.setattr("kshell.metadata.replay._RETAINED_PER_PARTITION", 5_000)
    monkeypatch.setattr("kshell.metadata.replay._MOST_RETAINED", 200_000)
    replayer, seen = Replayer(), 0
    replayer.log_batch(parsed(batch([TOPIC, *map(partition, range(partitions))])), LOG)
    offset = partitions + 1
    for round_number in range(rounds):
        changes = [change(number, leader=1 + round_number % 3) for number in range(partitions)]
        replayer.log_batch(parsed(batch(changes, offset)), LOG)
        offset += partitions
        before = replayer.log
        replayer.release()
        seen += replayer.log is not before
        assert replayer.log.retained <= 200_000
    assert seen == releases
    topic = replayer.image()["topics"][ID]
    values = [topic.value(number) for number in range(partitions)]
    assert {(value.leader, value.partition_epoch) for value in values} == {(1 + (rounds - 1) % 3, 9 + rounds)}


def test_bytes_that_are_released_are_let_go_of() -> None:
    """At once, without the collector of cycles; also those that topics of the image before hold."""
    known = {"topicId": uuid(1), "replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    replayer = Replayer()
    created = [value("TOPIC", name="t", topicId=uuid(1)), value("PARTITION", partitionId=0, **known)]
    replayer.log_batch(parsed(batch(created)), LOG)
    assert [len(topic.scan()) for topic in replayer.image().tables["topics"].values()] == [1]  # which is kept
    log = weakref.ref(replayer.log)
    gc.disable()
    try:
        replayer.release(0)
        assert log() is None
    finally:
        gc.enable()
    assert replayer.image().tables["topics"][uuid(1)].value(0).leader == 1


def test_scans_are_kept_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.metadata.partition_changes._MOST_SCANNED", 8)
    created = [value("TOPIC", name=f"t{number}", topicId=uuid(number)) for number in (1, 2, 3)]
    image, replayer = replayed(*created, *(partition(n, topicId=uuid(t)) for t in (1, 2, 3) for n in range(4)))
    one, two, three = (image["topics"][uuid(number)] for number in (1, 2, 3))
    of_one, of_two = one.scan(), two.scan()
    assert (one.scan() is of_one, two.scan() is of_two) == (True, True)
    three.scan()
    assert (one.scan() is of_one, one.scan(), two.scan() is of_two, two.scan()) == (False, of_one, False, of_two)

    replayer.log_batch(parsed(batch([change(3, topicId=uuid(2), leader=2)], 15)), LOG)
    later = replayer.image()["topics"][uuid(2)]
    assert [value.leader for _, value in later.scan()] == [1, 1, 1, 2]
    assert two.scan() == of_two

    changed = two.copy()
    changed.put(0, later.partition(3))
    assert [value.leader for _, value in changed.scan()] == [2, 1, 1, 1]


def test_a_scan_that_another_thread_forgets_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completion reads the partitions in a thread of its own."""
    monkeypatch.setattr("kshell.metadata.partition_changes._MOST_SCANNED", 1)
    topic = replayed(TOPIC, partition(0), partition(1))[0]["topics"][ID]
    all_filed = RecordedTopic._all_filed
    meanwhile = [topic.scan]

    def scanned_meanwhile(self: Any) -> Any:
        if meanwhile:
            meanwhile.pop()()
        return all_filed(self)

    monkeypatch.setattr(TopicAt, "_all_filed", scanned_meanwhile)
    assert [number for number, _ in topic.scan()] == [0, 1]


def test_every_record_type_is_replayed_here() -> None:
    """The other tests decode and show records of a new type by its declaration; only here is its effect checked."""
    written = {f"{name}_RECORD" for name in WRITTEN_HERE.findall(Path(__file__).read_text(encoding="utf-8"))}
    assert {record_type.name for record_type in record_types().values()} == written
