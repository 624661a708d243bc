"""The image that brokers give: what they tell, what stands where they tell nothing, and what a refusal leaves."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.client.concurrency import concurrently
from kshell.engine.session import Session
from kshell.errors import (
    EXIT_SOURCE,
    ConnectError,
    ProtocolError,
    SourceError,
    SourceTimeoutError,
    UsageError,
    WrongEndpointError,
)
from kshell.metadata.families.acls import Acl
from kshell.metadata.families.cluster import Broker, Listener
from kshell.metadata.image import Family, Image, families
from kshell.metadata.partial import MISSING, NOT_AVAILABLE, UNREPORTED, is_node_reported
from kshell.metadata.partitions import Partition
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.metadata.values import plain
from kshell.protocol.decoder import Message
from kshell.render import render
from kshell.sources.brokers.access import acl_key
from kshell.sources.brokers.registrations import listeners_of
from kshell.sources.brokers.source import TOPICS_MAY_BE_MISSING, BrokerSource, parts
from kshell.sources.source import NO_LOG, WHERE_LOGS_ARE, Loaded
from kshell.tree.image import image_directory, partial_directory
from kshell.tree.node import Directory, Leaf
from kshell.tree.paths import resolve, split
from tests.builders import uuid
from tests.commands.shell import lines, rows, run
from tests.server import Quorum, faults, settings

ORDERS = uuid(7)
DENIED = 31
PARTITION = {"errorCode": 0, "leaderId": 101, "leaderEpoch": 3, "replicaNodes": [101, 102], "isrNodes": [101]}


def partition(number: int, **other: Any) -> Message:
    elr = {"eligibleLeaderReplicas": [102], "lastKnownElr": [], "offlineReplicas": []}
    return {**PARTITION, "partitionIndex": number, **elr, **other}


def topic(name: str, topic_id: Any, *partitions: Message) -> Message:
    return {"errorCode": 0, "name": name, "topicId": topic_id, "isInternal": False, "partitions": list(partitions)}


def config(name: str, value: str | None, source: int, **other: Any) -> Message:
    made: Message = {"name": name, "value": value, "configSource": source, "synonyms": [], "documentation": None}
    return made | {"isSensitive": False, "readOnly": False} | other


def features(body: Message) -> None:
    body["finalizedFeatures"] = [
        {"name": "metadata.version", "maxVersionLevel": 30, "minVersionLevel": 30},
        {"name": "kraft.version", "maxVersionLevel": 1, "minVersionLevel": 1},
    ]
    body["supportedFeatures"] = [{"name": "metadata.version", "minVersion": 7, "maxVersion": 30}]


BODIES: dict[str, Message] = {
    "DescribeTopicPartitions": {"topics": [topic("orders", ORDERS, partition(0), partition(1, leaderId=-1))]},
    "ListPartitionReassignments": {
        "errorMessage": None,
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partitionIndex": 1, "replicas": [101, 102], "addingReplicas": [102], "removingReplicas": [101]}
                ],
            }
        ],
    },
    "DescribeAcls": {
        "resources": [
            {
                "resourceType": 2,
                "resourceName": "orders",
                "patternType": 3,
                "acls": [{"principal": "User:a,b/c", "host": "*", "operation": 3, "permissionType": 3}],
            }
        ]
    },
    "DescribeClientQuotas": {
        "errorMessage": None,
        "entries": [
            {
                "entity": [
                    {"entityType": "user", "entityName": None},
                    {"entityType": "client-id", "entityName": "app"},
                ],
                "values": [{"key": "request_percentage", "value": 12.5}],
            }
        ],
    },
    "DescribeUserScramCredentials": {
        "errorMessage": None,
        "results": [
            {"user": "alice", "errorMessage": None, "credentialInfos": [{"mechanism": 1, "iterations": 4096}]},
        ],
    },
    "DescribeDelegationToken": {
        "tokens": [
            {
                "principalType": "User",
                "principalName": "alice",
                "tokenRequesterPrincipalType": "User",
                "tokenRequesterPrincipalName": "bob",
                "issueTimestamp": 1,
                "expiryTimestamp": 2,
                "maxTimestamp": 3,
                "tokenId": "t-1",
                "hmac": b"hmac-secret",
                "renewers": [{"principalType": "User", "principalName": "eve"}],
            }
        ]
    },
    "ListConfigResources": {"configResources": [{"resourceType": 32, "resourceName": "readers"}]},
}
CONFIGS = {
    (2, "orders"): [config("retention.ms", "5", 1), config("segment.ms", "604800000", 5)],
    (4, ""): [config("log.cleaner.threads", "2", 3)],
    (32, "readers"): [config("consumer.session.timeout.ms", "50000", 8)],
    (4, "101"): [
        config("ssl.key.password", None, 2, isSensitive=True),
        config("listeners", "PLAIN://127.0.0.1:{port},CLIENTS://b:2", 4),
        config("listener.security.protocol.map", "PLAIN:PLAINTEXT,CLIENTS:SASL_SSL", 4),
        # Set by way of its synonym, which is another key.
        config(
            "log.retention.hours",
            "1",
            2,
            synonyms=[
                {"name": "log.retention.ms", "value": "1", "source": 2},
                {"name": "log.retention.hours", "value": "168", "source": 5},
            ],
        ),
        config(
            "log.retention.ms",
            "7200000",
            2,
            synonyms=[
                {"name": "log.retention.ms", "value": " 7200000", "source": 2},
                {"name": "log.retention.ms", "value": "1", "source": 3},
            ],
        ),
    ],
}


NEED_THE_LOG = (
    "verify", "hash", "save place", "report --to place", "log", "dump", "explain 3", "follow", "info", "timeline",
    "blame /image/features", "when brokers --where fenced", "mark here", "as-of 3", "topics --as-of 3",
    "topics --as-of -1h", "topics --as-of end-1h", "diff 1 now", "sql 'SELECT * FROM events'",
    "sql 'SELECT * FROM history_topics'",
)  # fmt: skip


def refused(code: int) -> faults.Fault:
    """A whole request refused; the body that the server keeps stays as it is."""
    return lambda reply: setattr(reply, "body", {**(reply.body or {}), "errorCode": code})


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(brokers=2) as made:
        made.bodies |= BODIES
        made.configs |= CONFIGS
        port = str(made.brokers[0].port)
        made.configs[4, "101"] = [
            one | {"value": one["value"] and one["value"].replace("{port}", port)} for one in CONFIGS[4, "101"]
        ]
        made.on("ApiVersions", faults.change(features))
        yield made


def opened(quorum: Quorum, **properties: str) -> BrokerSource:
    return quorum.keep(BrokerSource(quorum.bootstrap_servers, settings(**properties)))


def loaded(quorum: Quorum, **properties: str) -> Loaded:
    return opened(quorum, **properties).load()


def tree(image: Image, *, show_secrets: bool = False) -> Directory:
    redaction = Redaction(show_secrets=show_secrets)
    whole = image_directory(image, redaction)
    return partial_directory(whole, image, redaction)


def value(image: Image, path: str, *, show_secrets: bool = False) -> Any:
    node = resolve(tree(image, show_secrets=show_secrets), split(path))
    assert isinstance(node, Leaf)
    return node.value()


class TestWhatBrokersTell:
    def test_partitions(self, quorum: Quorum) -> None:
        image = loaded(quorum).image
        assert value(image, "/topics/byName/orders/id") == str(ORDERS)
        first, second = (value(image, f"/topics/byId/{ORDERS}/{number}") for number in (0, 1))
        assert first == {
            "replicas": [101, 102],
            "directories": NOT_AVAILABLE,
            "isr": [101],
            "removingReplicas": [],
            "addingReplicas": [],
            "elr": [102],
            "lastKnownElr": [],
            "leader": 101,
            "leaderRecoveryState": NOT_AVAILABLE,
            "leaderEpoch": 3,
            "partitionEpoch": NOT_AVAILABLE,
        }
        assert (second["leader"], second["addingReplicas"], second["removingReplicas"]) == (-1, [102], [101])

    def test_acls_by_what_they_say(self, quorum: Quorum) -> None:
        image = loaded(quorum).image
        assert value(image, "/acls/byId") == NOT_AVAILABLE
        found = value(image, "/acls/byEntry/TOPIC,orders,LITERAL,User:a%2Cb%2Fc,*,READ,ALLOW")
        assert (found["principal"], found["operation"]) == ("User:a,b/c", "READ")

    def test_quotas_features_and_tokens(self, quorum: Quorum) -> None:
        image = loaded(quorum).image
        assert value(image, "/clientQuotas/clientId(app)_user(<default>)/request_percentage") == 12.5
        assert value(image, "/features/metadataVersion") == "4.3-IV0"
        assert resolve(tree(image), ("features",)).segments() == ["metadataVersion"]  # type: ignore[attr-defined]
        token = value(image, "/delegationToken/t-1", show_secrets=True)
        assert (token["owner"], token["tokenRequester"], token["renewers"]) == ("User:alice", "User:bob", ["User:eve"])
        assert "hmac" not in str(token)

    @pytest.mark.parametrize("shown", [False, True])
    def test_secrets_are_never_there(self, quorum: Quorum, shown: bool) -> None:
        image = loaded(quorum).image
        user = value(image, "/scram/SCRAM-SHA-256/alice", show_secrets=shown)
        assert user["iterations"] == 4096
        assert {user[name] for name in ("salt", "storedKey", "serverKey")} == {NOT_AVAILABLE if shown else REDACTED}
        assert value(image, "/configs/BROKER:101/ssl.key.password", show_secrets=shown) == REDACTED

    def test_configs_that_were_set_and_no_others(self, quorum: Quorum) -> None:
        image = loaded(quorum).image
        held = {
            resource: {key: entry.value for key, entry in table.items()} for resource, table in image["configs"].items()
        }
        assert held == {
            ("TOPIC", "orders"): {"retention.ms": "5"},
            ("BROKER", ""): {"log.cleaner.threads": "2"},
            ("BROKER", "101"): {"ssl.key.password": REDACTED, "log.retention.ms": " 7200000"},
            ("GROUP", "readers"): {"consumer.session.timeout.ms": "50000"},
        }

    def test_each_broker_is_asked_for_its_own_configs(self, quorum: Quorum) -> None:
        loaded(quorum)
        own = {
            (asked.node_id, resource["resourceName"])
            for asked in quorum.asked_for("DescribeConfigs")
            for resource in asked.body["resources"]
            if resource["resourceType"] == 4 and resource["resourceName"]
        }
        assert own == {(101, "101"), (102, "102")}

    def test_brokers_with_the_listeners_of_their_configs(self, quorum: Quorum) -> None:
        brokers = {number: entry.value for number, entry in loaded(quorum).image["brokers"].items()}
        first, second = quorum.brokers
        assert brokers[101].listeners == (
            Listener("CLIENTS", "b", 2, "SASL_SSL"),
            Listener("PLAIN", "127.0.0.1", first.port, "PLAINTEXT"),
        )
        there = (Listener(NOT_AVAILABLE, "127.0.0.1", second.port, "PLAINTEXT"),)
        supported = {"metadata.version": {"min": 7, "max": 30}}
        untold = [UNREPORTED] * 4
        assert brokers[102] == Broker(102, UNREPORTED, UNREPORTED, there, supported, None, False, *untold)

    def test_nobody_knows_the_record_behind_it(self, quorum: Quorum) -> None:
        origin = loaded(quorum).image["clientQuotas"]
        (entry,) = next(iter(origin.values())).values()
        assert is_node_reported(entry.origin)
        assert (entry.origin.record_type, entry.origin.version) == ("DescribeClientQuotas", 1)

    def test_the_rest_says_so(self, quorum: Quorum) -> None:
        made = loaded(quorum)
        for path in ("/provenance", "/producerIds", "/cluster/controllers"):
            assert value(made.image, path) == NOT_AVAILABLE
        assert "the image is partial" in made.notes[0]
        assert len(made.notes) == 1

    @pytest.mark.parametrize("path", [("zones",), ("cluster", "zones")])
    def test_a_family_that_a_later_release_brings_says_so_too(
        self, path: tuple[str, ...], quorum: Quorum, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody lists what brokers do not answer for: it is every family that nobody asks them for."""
        monkeypatch.setitem(families(), "zones", Family("zones", path, (str,), "zone"))
        assert value(loaded(quorum).image, "/" + "/".join(path)) == NOT_AVAILABLE

    def test_every_family_is_asked_for_or_said_to_be_unavailable(self, quorum: Quorum) -> None:
        filled = [name for part in parts() for name in part.families]
        assert len(filled) == len(set(filled)) and set(filled) <= families().keys()
        missing = loaded(quorum).image[MISSING]
        assert {name for name, one in families().items() if one.path in missing} - {"acls"} == (
            families().keys() - set(filled)
        )

    def test_the_quorum(self, quorum: Quorum) -> None:
        source = opened(quorum)
        facts = source.quorum(source.load())
        assert facts["leaderId"] == ("quorum", 1, None)
        assert facts["kraftVersion"] == ("quorum", 1, None)
        assert list(facts["voters"]) == ["1"]


class TestPages:
    def test_a_topic_may_end_on_another_page(self, quorum: Quorum) -> None:
        after = {"topicName": "orders", "partitionIndex": 1}
        pages = iter([{"topics": [topic("orders", ORDERS, partition(0))], "nextCursor": after},
                      {"topics": [topic("orders", ORDERS, partition(1)), topic("z", uuid(8), partition(0))]}])  # fmt: skip  # noqa: E501
        quorum.on("DescribeTopicPartitions", lambda reply: setattr(reply, "body", next(pages)))
        image = loaded(quorum).image
        assert [(one.name, one.partition_ids()) for one in image["topics"].values()] == [("orders", [0, 1]), ("z", [0])]
        first, second = quorum.asked_for("DescribeTopicPartitions")
        assert (first.body["cursor"], second.body["cursor"]) == (None, after)

    def test_a_topic_made_anew_between_two_pages(self, quorum: Quorum) -> None:
        after = {"topicName": "orders", "partitionIndex": 1}
        pages = iter([{"topics": [topic("orders", ORDERS, partition(0))], "nextCursor": after},
                      {"topics": [topic("orders", uuid(9), partition(1))]}])  # fmt: skip
        quorum.on("DescribeTopicPartitions", lambda reply: setattr(reply, "body", next(pages)))
        image = loaded(quorum).image
        assert list(image["topics"]) == [uuid(9)]
        assert image["topicNames"] == {"orders": uuid(9)}

    def test_pages_that_do_not_move_on_end(self, quorum: Quorum) -> None:
        body = BODIES["DescribeTopicPartitions"] | {"nextCursor": {"topicName": "orders", "partitionIndex": 1}}
        quorum.bodies["DescribeTopicPartitions"] = body
        with pytest.raises(ProtocolError, match="where the last one did"):
            loaded(quorum)

    def test_an_older_broker_is_asked_for_metadata(self, quorum: Quorum) -> None:
        for node in quorum.brokers:
            del node.ranges[75]
        quorum.bodies["Metadata"] = {"topics": [topic("orders", ORDERS, partition(0), partition(1, errorCode=72))]}
        image = loaded(quorum).image
        first, second = (value(image, f"/topics/byName/orders/{number}") for number in (0, 1))
        assert (first["elr"], first["lastKnownElr"]) == (NOT_AVAILABLE, NOT_AVAILABLE)
        assert (first["leader"], second["leader"]) == (101, NOT_AVAILABLE)
        (asked,) = quorum.asked_for("Metadata")
        assert asked.body["topics"] is None
        assert asked.body["allowAutoTopicCreation"] is False


REFUSED = {
    "DescribeTopicPartitions": "topics",
    "DescribeAcls": "acls",
    "DescribeClientQuotas": "clientQuotas",
    "DescribeUserScramCredentials": "scram",
    "DescribeDelegationToken": "delegationToken",
}


class TestRefused:
    @pytest.mark.parametrize("api", [name for name in REFUSED if name != "DescribeTopicPartitions"])
    def test_a_subtree_names_the_acl_and_the_rest_is_there(self, quorum: Quorum, api: str) -> None:
        quorum.on(api, refused(DENIED))
        made = loaded(quorum)
        sentence = value(made.image, f"/{REFUSED[api]}")
        assert sentence.startswith(f"{NOT_AVAILABLE}: {api}: CLUSTER_AUTHORIZATION_FAILED (the principal needs ")
        assert any(f"/image/{REFUSED[api]} is not in the image" in note for note in made.notes)
        for other in ("/topics/byName/orders/0", "/configs/TOPIC:orders/retention.ms"):
            assert value(made.image, other)

    @pytest.mark.parametrize(("api", "path"), REFUSED.items())
    def test_an_api_that_is_missing(self, quorum: Quorum, api: str, path: str) -> None:
        if api == "DescribeTopicPartitions":
            made = loaded(quorum, api_versions_exclude="DescribeTopicPartitions:0-20,Metadata:0-20")
        else:
            made = loaded(quorum, api_versions_exclude=f"{api}:0-20")
        assert "UnsupportedVersion" in value(made.image, f"/{path}")
        assert value(made.image, "/configs/BROKER/log.cleaner.threads") == "2"

    @pytest.mark.parametrize("code", [54, 61, 64])
    def test_what_is_switched_off_is_no_news(self, quorum: Quorum, code: int) -> None:
        quorum.on("DescribeDelegationToken", refused(code))
        made = loaded(quorum)
        assert value(made.image, "/delegationToken").startswith(NOT_AVAILABLE)
        assert len(made.notes) == 1

    @pytest.mark.parametrize(
        ("kind", "name", "code", "needed"),
        [
            (2, "orders", 29, "DESCRIBE_CONFIGS on TOPIC:orders"),
            (32, "readers", 30, "DESCRIBE_CONFIGS on GROUP:readers"),
            (4, "101", 31, "DESCRIBE_CONFIGS on CLUSTER:kafka-cluster"),
        ],
    )
    def test_configs_of_one_resource(self, quorum: Quorum, kind: int, name: str, code: int, needed: str) -> None:
        def refuse(body: Message) -> None:
            for result in body["results"]:
                if (result["resourceType"], result["resourceName"]) == (kind, name):
                    result.update(errorCode=code, configs=[])

        quorum.on("DescribeConfigs", faults.change(refuse))
        made = loaded(quorum)
        segment = f"{ {2: 'TOPIC', 4: 'BROKER', 32: 'GROUP'}[kind] }:{name}"
        assert needed in value(made.image, f"/configs/{segment}")
        assert any(segment in note and needed in note for note in made.notes)
        assert value(made.image, "/configs/BROKER/log.cleaner.threads") == "2"

    def test_many_refusals_of_a_kind_are_one_note(self, quorum: Quorum) -> None:
        names = [f"t{number}" for number in range(5)]
        quorum.bodies["DescribeTopicPartitions"] = {
            "topics": [topic(one, uuid(40 + at)) for at, one in enumerate(names)]
        }
        quorum.on("DescribeConfigs", faults.change(lambda body: [r.update(errorCode=29) for r in body["results"]]))
        notes = [note for note in loaded(quorum).notes if "TOPIC:t0" in note]
        assert len(notes) == 1
        assert "and 4 more" in notes[0]

    def test_a_topic_deleted_meanwhile_is_no_news(self, quorum: Quorum) -> None:
        quorum.on("DescribeConfigs", faults.change(lambda body: [r.update(errorCode=3) for r in body["results"] if r["resourceType"] == 2]))  # fmt: skip  # noqa: E501
        made = loaded(quorum)
        assert ("configs", "TOPIC:orders") not in made.image[MISSING]
        assert len(made.notes) == 1

    def test_a_sensitive_value_that_a_node_sends_all_the_same_is_not_taken(self, quorum: Quorum) -> None:
        def send(body: Message) -> None:
            for result in body["results"]:
                if (result["resourceType"], result["resourceName"]) == (2, "orders"):
                    result["configs"].append(config("plain.name", "hunter2", 1, isSensitive=True))

        quorum.on("DescribeConfigs", faults.change(send))
        made = loaded(quorum)
        assert value(made.image, "/configs/TOPIC:orders/plain.name", show_secrets=True) == REDACTED
        assert value(made.image, "/configs/TOPIC:orders/retention.ms") == "5"

    def test_resources_of_a_type_that_is_not_known_are_left_out_with_a_note(self, quorum: Quorum) -> None:
        quorum.bodies["ListConfigResources"] = {
            "configResources": [
                {"resourceType": -96, "resourceName": "who"},
                {"resourceType": 32, "resourceName": "readers"},
            ]
        }
        made = loaded(quorum)
        assert "UNKNOWN(-96)" in next(note for note in made.notes if "ListConfigResources" in note)
        assert {name for kind, name in made.image["configs"] if kind == "GROUP"} == {"readers"}
        assert not any("who" in str(resource) for resource in made.image["configs"])

    def test_reassignments(self, quorum: Quorum) -> None:
        quorum.on("ListPartitionReassignments", refused(DENIED))
        made = loaded(quorum)
        found = value(made.image, "/topics/byName/orders/1")
        assert (found["addingReplicas"], found["removingReplicas"]) == (NOT_AVAILABLE, NOT_AVAILABLE)
        assert any("DESCRIBE on CLUSTER:kafka-cluster" in note for note in made.notes)

    def test_topics_without_a_controller_that_lists_reassignments(self, quorum: Quorum) -> None:
        """Brokers pass that request on: it gets no answer, but they still know the topics."""
        quorum.on("ListPartitionReassignments", faults.slow(5))
        made = loaded(quorum, request_timeout_ms="150", default_api_timeout_ms="200")
        found = value(made.image, "/topics/byName/orders/1")
        assert (found["addingReplicas"], found["removingReplicas"]) == (NOT_AVAILABLE, NOT_AVAILABLE)
        assert found["replicas"]
        assert any("adding and removing replicas are not known" in note for note in made.notes)

    def test_topics_do_not_wait_long_for_reassignments(self, quorum: Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kshell.sources.brokers.topics._PATIENCE", 0.2)
        quorum.on("ListPartitionReassignments", faults.slow(20))
        began = time.monotonic()
        made = loaded(quorum)
        assert time.monotonic() - began < 15
        assert any("adding and removing replicas are not known" in note for note in made.notes)

    def test_topics_of_brokers_that_are_away_for_longer_than_topics_wait_for_reassignments(
        self, quorum: Quorum, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kshell.sources.brokers.topics._PATIENCE", 0.2)
        source = opened(quorum)
        source.image("brokers")
        quorum.on("ListPartitionReassignments", faults.hang_up)
        quorum.on("ApiVersions", faults.hang_up, times=8)
        image, notes = source.image("topics")
        assert value(image, "/topics/byName/orders/1")["replicas"]
        assert any("adding and removing replicas are not known" in note for note in notes)

    def test_who_may_not_see_the_quorum_reads_why(self, quorum: Quorum) -> None:
        quorum.on("DescribeQuorum", faults.error(DENIED, whole=True))
        source = opened(quorum)
        facts = source.quorum(source.load())
        assert "DESCRIBE on CLUSTER:kafka-cluster" in facts["leaderId"][1]
        assert facts["kraftVersion"][1] == 1

    @pytest.mark.parametrize("release", ["3.3", "3.7", "4.0"])
    def test_kinds_of_configs_that_a_release_does_not_list(self, release: str) -> None:
        with Quorum(brokers=1, release=release) as quorum:
            quorum.bodies |= BODIES | {"ListConfigResources": {"configResources": [{"resourceName": "sub"}]}}
            quorum.configs[16, "sub"] = [config("interval.ms", "9", 7)]
            made = loaded(quorum)
        listed = release != "3.3"
        assert (("configs", "GROUP") in made.image[MISSING]) == listed
        assert (("CLIENT_METRICS", "sub") in made.image["configs"]) == listed


class TestTopicsThatMayBeMissing:
    """Brokers leave out what the principal may not DESCRIBE, and say nothing: who reads the answer has to know."""

    @pytest.mark.parametrize(
        ("only", "noted"),
        [
            (("topics",), 1),
            (("topics", "brokers", "configs"), 1),
            (("topics", "acls"), 1),
            (("acls",), 0),
            (("brokers", "configs", "scram"), 0),
        ],
    )
    def test_where_topics_were_asked_for(self, quorum: Quorum, only: tuple[str, ...], noted: int) -> None:
        assert opened(quorum).image(*only)[1].count(TOPICS_MAY_BE_MISSING) == noted

    def test_the_note_on_the_whole_image_says_as_much_of_all_its_parts(self, quorum: Quorum) -> None:
        (note,) = loaded(quorum).notes
        assert "what brokers report and the principal may see (-q has all of it)" in note

    def test_without_an_authorizer_all_are_there(self, quorum: Quorum) -> None:
        quorum.on("DescribeAcls", refused(54))
        source = opened(quorum)
        assert source.image("topics", "acls")[1] == source.image("topics")[1] == []

    def test_whoever_may_not_list_acls_does_not_know(self, quorum: Quorum) -> None:
        quorum.on("DescribeAcls", refused(31))
        assert TOPICS_MAY_BE_MISSING in opened(quorum).image("topics")[1]

    def test_topics_that_are_not_there_at_all_have_a_note_of_their_own(self, quorum: Quorum) -> None:
        image, notes = opened(quorum, api_versions_exclude="DescribeTopicPartitions:0-20,Metadata:0-20").image("topics")
        assert ("topics",) in image[MISSING]
        assert TOPICS_MAY_BE_MISSING not in notes

    @pytest.mark.parametrize(
        ("line", "noted"),
        [
            ("topics", 1),
            ("partitions --offline", 1),
            ("drain-check 101", 1),
            ("what-if --kill 101", 1),
            ("what-if --unclean orders-1", 1),
            ("why orders-1", 1),
            ("skew", 1),
            ("registrations", 1),
            ("brokers --load", 1),
            ("plan-restore", 1),
            ("sql 'SELECT * FROM topics'", 1),
            ("acls", 0),
            ("brokers", 0),
            ("quotas", 0),
            ("features", 0),
            ("sql 'SELECT * FROM users'", 0),
        ],
    )
    def test_each_answer_with_topics_says_it_once(self, quorum: Quorum, line: str, noted: int) -> None:
        session = Session(opened(quorum))
        result = run(session, line)
        "".join(render(result, "text"))
        assert session.notes().count(TOPICS_MAY_BE_MISSING) == noted
        assert result.exit_code != EXIT_SOURCE


class TestMinimumThatIsRefused:
    """DESCRIBE_CONFIGS is denied for a topic: it may have a min.insync.replicas of its own."""

    @pytest.fixture
    def session(self, quorum: Quorum) -> Session:
        def refuse(body: Message) -> None:
            for result in body["results"]:
                if (result["resourceType"], result["resourceName"]) == (2, "orders"):
                    result.update(errorCode=29, configs=[])

        two = partition(0, isrNodes=[101, 102])
        quorum.bodies["DescribeTopicPartitions"] = {
            "topics": [topic("orders", ORDERS, two), topic("open", uuid(8), partition(0, isrNodes=[101]))]
        }
        quorum.configs[2, "open"] = []
        quorum.on("DescribeConfigs", faults.change(refuse))
        return Session(opened(quorum))

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("partitions --under-min-isr --fail-if-any", 3),
            ("topics --where 'underMinIsr > 0' --fail-if-any", 3),
            ("drain-check 102 --fail-if-any", 3),
            ("drain-check 102 --fail-if-any --min-isr-default 1", 3),
            ("drain-check 102 --fail-if-any --min-isr-default 2", 3),
            ("drain-check 102 --fail-if-any --where 'topic == open'", 0),
            ("drain-check 101 --fail-if-any", 1),
            ("what-if --kill 102 --fail-if-any", 3),
            ("what-if --kill 102 --fail-if-any --min-isr-default 2", 3),
            ("partitions --under-min-isr --fail-if-any --min-isr-default 2 --where 'topic == orders'", 3),
            ("partitions --under-min-isr --fail-if-any --min-isr-default 2", 1),
        ],
    )
    def test_no_row_is_no_answer(self, session: Session, line: str, code: int) -> None:
        result = run(session, line)
        "".join(render(result, "text"))
        assert result.exit_code == code

    def test_the_refusal_is_to_blame(self, session: Session) -> None:
        lines(session, "drain-check 102")
        assert [remark for remark in session.remarks if "min.insync.replicas" in remark] == [
            "min.insync.replicas of 1 topic is unknown: brokers do not report the configs of TOPIC:orders:"
            " DescribeConfigs: TOPIC_AUTHORIZATION_FAILED (the principal needs DESCRIBE_CONFIGS on TOPIC:orders);"
            " --min-isr-default does not count there, as a value may be set",
            "min.insync.replicas of 1 topic is not in the log: --min-isr-default says what the brokers' files have",
        ]
        lines(session, "drain-check 102 --min-isr-default 1")
        assert sum("min.insync.replicas" in remark for remark in session.remarks) == 1

    @pytest.mark.parametrize(
        ("refused", "line", "code"),
        [
            ("", "drain-check 102 --fail-if-any --min-isr-default 1", 3),
            ("", "partitions --under-min-isr --fail-if-any --min-isr-default 1", 3),
            ("101", "drain-check 102 --fail-if-any", 3),
            ("101", "partitions --under-min-isr --fail-if-any", 3),
            ("102", "drain-check 102 --fail-if-any", 0),
            ("102", "partitions --under-min-isr --fail-if-any", 0),
        ],
    )
    def test_configs_of_brokers_that_may_have_the_value(
        self, quorum: Quorum, refused: str, line: str, code: int
    ) -> None:
        """The default of all brokers, and that of the leader; those of another broker do not matter."""

        def refuse(body: Message) -> None:
            for result in body["results"]:
                if (result["resourceType"], result["resourceName"]) == (4, refused):
                    result.update(errorCode=31, configs=[])

        one = partition(0, isrNodes=[101, 102], leaderId=101)
        quorum.bodies["DescribeTopicPartitions"] = {"topics": [topic("open", uuid(8), one)]}
        quorum.configs[2, "open"] = []
        quorum.configs[4, ""] = [config("min.insync.replicas", "1", 3)] if refused else []
        quorum.on("DescribeConfigs", faults.change(refuse))
        result = run(Session(opened(quorum)), line)
        "".join(render(result, "text"))
        assert result.exit_code == code

    def test_rows_do_not_claim_the_given_value(self, session: Session) -> None:
        found = {row["name"]: row["minIsr"] for row in rows(session, "topics --min-isr-default 2")}
        assert found == {"orders": None, "open": 2}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener that accepts, and stays silent, as that of a stopped process does."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


class TestBrokersThatHang:
    SOON: dict[str, str] = {  # noqa: RUF012
        "request_timeout_ms": "300",
        "socket_connection_setup_timeout_ms": "300",
        "default_api_timeout_ms": "30000",
    }

    @pytest.mark.parametrize(
        ("protocol", "reason"),
        [("PLAINTEXT", "ApiVersions: no answer in time"), ("SSL", "the TLS handshake did not end in time")],
    )
    def test_the_first_error_ends_the_command(self, silent: str, protocol: str, reason: str) -> None:
        source = BrokerSource(silent, settings(security_protocol=protocol, **self.SOON))
        session = Session(source)
        for line in ("topics", "skew", "acls", "ls /image"):
            began = time.monotonic()
            with pytest.raises(SourceTimeoutError) as raised:
                lines(session, line)
            assert time.monotonic() - began < 10
            assert raised.value.message == f"{silent}: {reason}"
            assert raised.value.hint
        source.close()

    def test_the_time_for_the_whole_operation_is_the_most(self, silent: str) -> None:
        source = BrokerSource(
            silent, settings(default_api_timeout_ms="300", socket_connection_setup_timeout_ms="30000")
        )
        began = time.monotonic()
        with pytest.raises(SourceTimeoutError):
            source.load()
        assert time.monotonic() - began < 10
        source.close()

    def test_another_one_of_the_list_answers(self, quorum: Quorum, silent: str) -> None:
        source = quorum.keep(BrokerSource(f"{silent},{quorum.bootstrap_servers}", settings(**self.SOON)))
        assert value(source.image("topics")[0], "/topics/byName/orders/0")

    def test_one_that_has_answered_before(self, quorum: Quorum) -> None:
        source = opened(quorum, **self.SOON)
        source.image("topics", "configs")
        quorum.on(None, faults.slow(60))
        began = time.monotonic()
        with pytest.raises(SourceTimeoutError, match="DescribeCluster: no answer in time"):
            source.image("topics", "brokers", "configs", "acls")
        assert time.monotonic() - began < 10
        assert len(quorum.asked_for("DescribeAcls")) == 1, "for the first image, to know whether topics may be missing"

    def test_another_broker_of_the_cluster_takes_over(self, quorum: Quorum) -> None:
        source = quorum.keep(BrokerSource(quorum.brokers[0].address, settings(**self.SOON)))
        source.image("brokers")
        quorum.brokers[0].on(None, faults.slow(60))
        image, _ = source.image("brokers", "topics")
        assert list(image["brokers"]) == [101, 102]
        assert value(image, "/topics/byName/orders/0")

    def test_between_two_questions(self, quorum: Quorum) -> None:
        """The request for reassignments has no answer, and then nothing has: topics are not asked for in vain."""
        for broker in quorum.brokers:
            broker.on("ListPartitionReassignments", faults.slow(60))
            broker.on("ApiVersions", faults.slow(60), skip=1 if broker is quorum.brokers[0] else 0)
        source = quorum.keep(BrokerSource(quorum.brokers[0].address, settings(**self.SOON)))
        began = time.monotonic()
        with pytest.raises(SourceTimeoutError):
            source.image("topics", "configs")
        assert time.monotonic() - began < 25
        assert not quorum.asked_for("DescribeTopicPartitions")

    def test_a_question_that_has_no_answer_names_the_broker(self, quorum: Quorum) -> None:
        quorum.on("DescribeTopicPartitions", faults.slow(60))
        session = Session(opened(quorum, **self.SOON | {"default_api_timeout_ms": "400"}))
        with pytest.raises(SourceError) as raised:
            lines(session, "topics")
        broker = quorum.brokers[0].address
        assert (
            raised.value.message
            == f"topics: no answer from brokers: {broker}: DescribeTopicPartitions: no answer in time"
        )


class TestTrouble:
    def test_an_error_that_passes(self, quorum: Quorum) -> None:
        quorum.on("ListPartitionReassignments", refused(41), times=2)
        found = value(loaded(quorum).image, "/topics/byName/orders/1")
        assert found["addingReplicas"] == [102]
        assert len(quorum.asked_for("ListPartitionReassignments")) == 3

    def test_an_error_that_does_not_pass_is_bounded(self, quorum: Quorum) -> None:
        quorum.on("DescribeClientQuotas", refused(41))
        made = loaded(quorum, default_api_timeout_ms="300")
        assert "NOT_CONTROLLER" in value(made.image, "/clientQuotas")

    @pytest.mark.parametrize("code", [-1, 42, 4711])
    def test_errors_that_nobody_expects(self, quorum: Quorum, code: int) -> None:
        quorum.on("DescribeAcls", refused(code))
        made = loaded(quorum)
        assert value(made.image, "/acls").startswith(NOT_AVAILABLE)
        assert any("/image/acls" in note for note in made.notes)

    def test_a_broker_that_is_down(self, quorum: Quorum) -> None:
        source = opened(quorum)
        quorum.on("DescribeCluster", faults.change(lambda body: body["brokers"].append({"brokerId": 103, "host": "127.0.0.1", "port": 1})))  # fmt: skip  # noqa: E501
        made = source.load()
        assert value(made.image, "/configs/BROKER:103").startswith(NOT_AVAILABLE)
        assert made.image["brokers"][103].value.supported_features == NOT_AVAILABLE
        assert any("broker 103 cannot be asked" in note for note in made.notes)

    def test_the_connection_ends_in_the_middle(self, quorum: Quorum) -> None:
        quorum.on("DescribeAcls", faults.hang_up, times=1)
        assert len(loaded(quorum).image["acls"]) == 1

    def test_some_of_the_topics_are_not_taken_for_all(self, quorum: Quorum) -> None:
        body = BODIES["DescribeTopicPartitions"] | {"nextCursor": {"topicName": "orders", "partitionIndex": 1}}
        quorum.on("DescribeTopicPartitions", lambda reply: setattr(reply, "body", body), times=1)
        quorum.on("DescribeTopicPartitions", faults.slow(5), skip=1)
        made = loaded(quorum, request_timeout_ms="150", default_api_timeout_ms="200")
        assert "no answer in time" in value(made.image, "/topics")
        assert (made.image["topics"], made.image["topicNames"]) == ({}, {})

    def test_a_part_that_is_not_answered_leaves_the_rest(self, quorum: Quorum) -> None:
        quorum.on("DescribeAcls", faults.slow(5))
        made = loaded(quorum, request_timeout_ms="150", default_api_timeout_ms="200")
        assert "no answer in time" in value(made.image, "/acls")
        assert value(made.image, "/clientQuotas/clientId(app)_user(<default>)/request_percentage") == 12.5

    def test_a_refusal_of_scram_users_can_be_answered(self, quorum: Quorum) -> None:
        """A broker that refuses null for "all users" fails over its own answer, and never sends one (seen in 4.3.1)."""
        loaded(quorum)
        assert quorum.asked_for("DescribeUserScramCredentials")[0].body == {"users": []}

    def test_no_broker_is_there(self, quorum: Quorum) -> None:
        source = opened(quorum)
        quorum.stop()
        with pytest.raises(ConnectError):
            source.load()

    def test_only_now_can_be_asked(self, quorum: Quorum) -> None:
        source = opened(quorum)
        assert source.offset_of("now") is None
        for ask in (lambda: source.load(until=5), source.listing, lambda: source.offset_of("5"), lambda: source.offset_of("-1h")):  # fmt: skip  # noqa: E501
            with pytest.raises(SourceError, match="only the present state"):
                ask()
        with pytest.raises(UsageError):
            source.offset_of("yesterday-ish")

    def test_every_command_that_needs_the_log_says_so_in_one_sentence(
        self, quorum: Quorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        session = Session(opened(quorum))
        for line in NEED_THE_LOG:
            with pytest.raises(SourceError) as refused:
                lines(session, line)
            assert NO_LOG in refused.value.message, line
            assert (refused.value.hint, refused.value.exit_code) == (WHERE_LOGS_ARE, EXIT_SOURCE), line
        assert not list(tmp_path.iterdir())

    def test_an_answer_stays_good_for_a_moment(self, quorum: Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
        source = opened(quorum)
        assert source.refresh()
        source.load()
        assert not source.refresh()
        monkeypatch.setattr("kshell.sources.brokers.source._FRESH", 0.0)
        assert source.refresh()

    def test_brokers_alone_are_taken(self, quorum: Quorum) -> None:
        with pytest.raises(WrongEndpointError, match="this is a controller"):
            quorum.keep(BrokerSource(quorum.bootstrap, settings())).load()

    def test_one_part_alone(self, quorum: Quorum) -> None:
        image, notes = opened(quorum).image("brokers")
        assert list(image["brokers"]) == [101, 102]
        assert not image["topics"]
        assert not quorum.asked_for("DescribeTopicPartitions")
        assert notes == []


TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
ACLS = st.builds(Acl, *[TEXT] * 7)


@given(ACLS, ACLS)
def test_two_acls_have_two_names(one: Acl, other: Acl) -> None:
    names = acl_key(one), acl_key(other)
    assert (names[0] == names[1]) == (one == other)
    assert all("/" not in name and name.count(",") == 6 for name in names)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"listeners": "A://h:1", "listener.security.protocol.map": "A:SSL"}, [("A", "h", 1, "SSL")]),
        ({"listeners": "PLAINTEXT://h:1"}, [("PLAINTEXT", "h", 1, "PLAINTEXT")]),
        ({"listeners": "A://:1", "advertised.listeners": "a://[::1]:2"}, [("A", "::1", 2, "A")]),
        ({"listeners": "C://h:1,B://h:2", "controller.listener.names": "c"}, [("B", "h", 2, "B")]),
        ({"listeners": "B://0.0.0.0:1"}, []),
        ({"listeners": "B://[::]:1"}, []),
        ({"listeners": "B://h:0"}, []),
        ({"listeners": "nonsense"}, []),
        ({"listeners": "A://h:1,B://h"}, []),
        ({"listeners": None}, []),
        ({}, []),
    ],
)
def test_listeners(values: dict[str, str | None], found: list[tuple[str, str, int, str]]) -> None:
    assert listeners_of(values) == tuple(Listener(*one) for one in found)


def test_many_at_once() -> None:
    meeting = threading.Barrier(4, timeout=10)

    def work(number: int) -> int:
        if number < 4:
            meeting.wait()  # passes only where four work together
        return number * number

    assert concurrently(work, range(50)) == [number * number for number in range(50)]
    assert concurrently(work, []) == []
    with pytest.raises(ZeroDivisionError):
        concurrently(lambda number: 1 // number, range(40))


def test_partitions_stay_plain() -> None:
    untold: Any = NOT_AVAILABLE
    assert plain(Partition((1,), untold, (1,), (), (), untold, (), 1, untold, 0, untold))["elr"] == NOT_AVAILABLE
