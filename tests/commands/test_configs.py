"""``configs``, ``configs check`` and ``man config``: rows, what is judged and why, and what nobody may read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.cluster.configs import parse_entity
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import AuthorizationError, CommandError, KshellError, NodeError, UsageError
from kshell.metadata.config_types import TABLE, known_key, known_types
from kshell.metadata.redaction import REDACTED
from kshell.protocol.decoder import Message
from kshell.render import render
from kshell.sources.brokers.config_entries import SOURCES, TYPES, ConfigEntry
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from kshell.tables.config_conflicts import conflicts
from kshell.tables.configs import check, typed
from tests import builders
from tests.builders import uuid, value
from tests.commands.shell import lines, opened, rows, run, sections
from tests.server import Quorum, faults, settings

COLUMNS = "resourceType resourceName name value source isSensitive isReadOnly synonyms type documentation".split()
DOCUMENTED = "How <b>long</b> &lt;data&gt; is kept.\x1b[31m"
TIERED = {
    "remote.storage.enable": "true", "retention.ms": "604800000", "local.retention.ms": "-2",
    "remote.copy.lag.ms": "10000", "remote.log.delete.on.disable": "false",
}  # fmt: skip


def told(name: str, value: str | None, source: int, kind: int = 0, **other: Any) -> Message:
    made: Message = {"name": name, "value": value, "configSource": source, "configType": kind, "isSensitive": False}
    return made | {"readOnly": False, "synonyms": [], "documentation": None} | other


def synonym(name: str, value: str | None, source: int) -> Message:
    return {"name": name, "value": value, "source": source}


CONFIGS = {
    (2, "orders"): [
        told("retention.ms", "5", 1, 5, documentation=DOCUMENTED,
             synonyms=[synonym("retention.ms", "5", 1), synonym("log.retention.hours", "168", 5)]),
        told("cleanup.policy", "delete", 5, 7, synonyms=[synonym("log.cleanup.policy", "delete", 5)]),
        told("segment.ms", "1", 3, 5, synonyms=[synonym("log.roll.ms", "1", 3), synonym("log.roll.hours", "168", 5)]),
        told("of.a.later.release", "token", 5, 2),
        told("preallocate", "false", 5, 99),
    ],
    (4, "101"): [
        told("ssl.key.password", None, 4, 9, isSensitive=True, synonyms=[synonym("ssl.key.password", None, 4)]),
        told("background.threads", "10", 5, 3),
        told("broker.id", "101", 4, 3, readOnly=True),
    ],
    (8, "101"): [told("root", "INFO", 6), told("kafka.log.LogCleaner", "DEBUG", 6)],
}  # fmt: skip


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(brokers=1) as made:
        made.configs |= CONFIGS
        made.append(
            value("TOPIC", name="orders", topicId=uuid(1)),
            value("CONFIG", resourceType=2, resourceName="orders", name="retention.ms", value="5"),
            value("CONFIG", resourceType=4, resourceName="", name="ssl.key.password", value="hunter2"),
        )
        yield made


def at_brokers(quorum: Quorum, **properties: str) -> Session:
    return Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings(**properties))))


def at_controllers(quorum: Quorum, **properties: str) -> Session:
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(**properties))))


BOTH = pytest.mark.parametrize("at", [at_brokers, at_controllers])


class TestOfALog:
    def test_everything_that_was_set(self, sample: Session) -> None:
        found = rows(sample, "configs")
        assert {row["resourceType"] for row in found} >= {"TOPIC", "BROKER"}
        shown = json.loads("".join(render(run(sample, "configs"), "json")))
        assert list(shown[0]) == COLUMNS
        assert sum(len(table) for table in sample.image["configs"].values()) == len(found)

    def test_one_entity_or_many(self, sample: Session) -> None:
        one = rows(sample, "configs TOPIC:orders")
        assert {row["resourceName"] for row in one} == {"orders"}
        assert {row["source"] for row in one} == {"DYNAMIC_TOPIC_CONFIG"}
        many = rows(sample, "configs 'topic:*'")
        assert {row["resourceType"] for row in many} == {"TOPIC"}
        assert len(many) > len(one)
        assert rows(sample, "configs TOPIC:orders 'TOPIC:*'") == [*one, *many]

    def test_a_name_that_is_there_counts_as_it_is_written(self, tmp_path: Path) -> None:
        """Group ids may have any characters."""

        def config(group: str) -> bytes:
            return builders.value(
                "CONFIG", resourceType=32, resourceName=group, name="consumer.session.timeout.ms", value="1"
            )

        builders.write_log(tmp_path, builders.batch([config(name) for name in ("[x]", "x", "a*b", "acb", "*")]))
        session = opened(tmp_path)
        for name, names in (("[x]", ["[x]"]), ("a*b", ["a*b"]), ("a?b", ["a*b", "acb"]), ("[xy]", ["x"])):
            assert [row["resourceName"] for row in rows(session, f"configs 'GROUP:{name}'")] == names, name
        assert len(rows(session, "configs 'GROUP:*'")) == 5, "of all groups, though one is called so"

    def test_what_a_log_does_not_know_is_null(self, sample: Session) -> None:
        for row in rows(sample, "configs"):
            assert (row["isReadOnly"], row["synonyms"], row["documentation"]) == (None, None, None)

    def test_secrets(self, sample: Session) -> None:
        hidden = [row for row in rows(sample, "configs") if row["isSensitive"] or row["isSensitive"] is None]
        assert hidden
        assert {row["value"] for row in hidden} == {REDACTED}
        assert REDACTED not in {row["value"] for row in rows(sample, "configs --show-secrets")}

    def test_more_is_asked_for_than_a_log_holds(self, sample: Session) -> None:
        plain = rows(sample, "configs TOPIC:orders")
        assert rows(sample, "configs TOPIC:orders --effective") == plain
        assert "needs -q or -b" in sample.remarks[0]

    @pytest.mark.parametrize("entity", ["TOPIC:nope", "BROKER:99", "'TOPIC:no*'"])
    def test_what_is_not_there(self, sample: Session, entity: str) -> None:
        with pytest.raises(CommandError):
            run(sample, f"configs {entity}")

    @pytest.mark.parametrize("entity", ["orders", "TOPIC:", "TOPIC", "SHELF:a", ":a", "GROUP"])
    def test_what_is_no_entity(self, sample: Session, entity: str) -> None:
        with pytest.raises(UsageError):
            run(sample, f"configs {entity}")

    @pytest.mark.parametrize(
        ("entity", "hint"),
        [("orders", "such as TOPIC:orders"), ("1", "such as BROKER:1"), ("TOPIC:ordrs", "TOPIC:orders?")],
    )
    def test_what_may_be_meant(self, sample: Session, entity: str, hint: str) -> None:
        with pytest.raises(KshellError) as raised:
            run(sample, f"configs {entity}")
        assert hint in (raised.value.hint or "")

    def test_options_that_exclude_each_other(self, sample: Session) -> None:
        with pytest.raises(UsageError):
            run(sample, "configs --effective --overridden")


class TestOfNodes:
    @BOTH
    def test_what_was_set_there(self, quorum: Quorum, at: Any) -> None:
        (row,) = rows(at(quorum), "configs TOPIC:orders")
        assert row == {
            "resourceType": "TOPIC",
            "resourceName": "orders",
            "name": "retention.ms",
            "value": "5",
            "source": "DYNAMIC_TOPIC_CONFIG",
            "isSensitive": False,
            "isReadOnly": False,
            "synonyms": [
                {"name": "retention.ms", "value": "5", "source": "DYNAMIC_TOPIC_CONFIG"},
                {"name": "log.retention.hours", "value": "168", "source": "DEFAULT_CONFIG"},
            ],
            "type": "LONG",
            "documentation": None,
        }

    @BOTH
    def test_what_is_no_default(self, quorum: Quorum, at: Any) -> None:
        found = rows(at(quorum), "configs TOPIC:orders --overridden")
        assert {row["name"]: row["source"] for row in found} == {
            "retention.ms": "DYNAMIC_TOPIC_CONFIG",
            "segment.ms": "DYNAMIC_DEFAULT_BROKER_CONFIG",
        }

    @BOTH
    def test_everything_in_force(self, quorum: Quorum, at: Any) -> None:
        found = {row["name"]: row for row in rows(at(quorum), "configs TOPIC:orders --effective")}
        assert len(found) == 5
        assert found["preallocate"]["type"] == "UNKNOWN"
        assert found["of.a.later.release"]["value"] == REDACTED

    @BOTH
    def test_documentation_only_when_asked_for(self, quorum: Quorum, at: Any) -> None:
        session = at(quorum)
        (row,) = rows(session, "configs TOPIC:orders --docs")
        assert row["documentation"] == DOCUMENTED
        asked = [one.body["includeDocumentation"] for one in quorum.asked_for("DescribeConfigs")]
        assert asked[-1] is True
        assert "documentation" in lines(session, "configs TOPIC:orders --docs")[0]
        assert "documentation" not in lines(session, "configs TOPIC:orders")[0]

    def test_a_broker_is_asked_about_itself(self, quorum: Quorum) -> None:
        found = {row["name"]: row for row in rows(at_brokers(quorum), "configs BROKER:101 --effective --show-secrets")}
        assert found["ssl.key.password"]["value"] == REDACTED
        assert found["ssl.key.password"]["synonyms"][0]["value"] == REDACTED
        assert found["broker.id"]["isReadOnly"] is True
        assert found["background.threads"]["type"] == "INT"

    def test_levels_of_loggers_are_no_secrets(self, quorum: Quorum) -> None:
        found = rows(at_brokers(quorum), "configs BROKER_LOGGER:101")
        assert {row["name"]: row["value"] for row in found} == {"root": "INFO", "kafka.log.LogCleaner": "DEBUG"}

    def test_a_topic_that_does_not_exist(self, quorum: Quorum) -> None:
        quorum.on("DescribeConfigs", faults.change(lambda body: [one.update(errorCode=3) for one in body["results"]]))
        with pytest.raises(CommandError, match="there is no such topic") as raised:
            run(at_brokers(quorum), "configs TOPIC:nope")
        assert raised.value.exit_code == 2

    def test_a_refusal_names_the_acl(self, quorum: Quorum) -> None:
        quorum.on("DescribeConfigs", faults.change(lambda body: [one.update(errorCode=29) for one in body["results"]]))
        with pytest.raises(AuthorizationError) as raised:
            run(at_brokers(quorum), "configs TOPIC:orders")
        assert "DESCRIBE_CONFIGS" in (raised.value.hint or "")

    @BOTH
    @pytest.mark.parametrize(
        ("resource", "code", "place"),
        [
            ("BROKER", 31, "CLUSTER:kafka-cluster"),
            ("TOPIC:orders", 29, "TOPIC:orders"),
            ("GROUP:g", 30, "GROUP:g"),
        ],
    )
    def test_a_refusal_names_the_one_acl_that_is_needed(
        self, quorum: Quorum, at: Any, resource: str, code: int, place: str
    ) -> None:
        quorum.on("DescribeConfigs", faults.error(code))
        session = at(quorum)
        needed = f"the principal needs DESCRIBE_CONFIGS on {place}"
        if at is at_brokers:
            with pytest.raises(AuthorizationError) as raised:
                run(session, f"configs {resource} --effective")
            assert raised.value.hint == needed
        else:
            rows(session, f"configs {resource} --effective")
            assert session.remarks[0].endswith(f" ({needed})")

    @pytest.mark.parametrize("output", ["text", "jsonl"])
    @pytest.mark.parametrize("trouble", ["refused", "dead"])
    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("configs BROKER:101 --effective --where 'name == nothing' --fail-if-any", 3),
            ("configs BROKER:101 --effective --where 'name == nothing'", 3),
            ("configs BROKER:101 --effective --fail-if-any", 1),
            ("configs BROKER:101 --effective", 0),
            ("configs BROKER:101 --overridden --where 'name == nothing' --fail-if-any", 3),
            ("configs BROKER:101 --where 'type == INT' --fail-if-any", 3),
            # What was set is in the log.
            ("configs BROKER:101 --where 'name == nothing' --fail-if-any", 0),
            ("configs BROKER:101 --fail-if-any", 1),
        ],
    )
    def test_no_row_is_no_answer_where_a_node_does_not_say_more(
        self, quorum: Quorum, line: str, code: int, trouble: str, output: str
    ) -> None:
        quorum.append(value("CONFIG", resourceType=4, resourceName="101", name="log.cleaner.threads", value="2"))
        point = {"name": "P", "host": "127.0.0.1", "port": quorum.brokers[0].port, "securityProtocol": 0}
        quorum.append(
            value("REGISTER_BROKER", 1, brokerId=101, incarnationId=uuid(9), brokerEpoch=1, features=[], rack=None,
                  endPoints=[point])
        )  # fmt: skip
        if trouble == "dead":
            quorum.brokers[0].stop()
        else:
            quorum.on("DescribeConfigs", faults.error(31))
        session = at_controllers(quorum)
        result = run(session, line)
        "".join(render(result, output))
        assert (result.exit_code, "the rest is unknown" in session.remarks[0]) == (code, True)

    @BOTH
    def test_an_empty_answer_of_a_node_that_refuses_is_none(self, quorum: Quorum, at: Any) -> None:
        quorum.on("DescribeConfigs", faults.error(31))
        for line in ("configs BROKER:101", "configs BROKER:101 --fail-if-any", "configs BROKER:101 --effective"):
            try:
                result = run(at(quorum), line)
                "".join(render(result, "text"))
            except KshellError as error:
                assert (at, error.exit_code) == (at_brokers, 3)
            else:
                assert (at, result.exit_code) == (at_controllers, 3)

    def test_one_of_many_that_refuses_may_have_what_the_others_lack(self, quorum: Quorum) -> None:
        def refuse(body: Message) -> None:
            body["results"][0].update(errorCode=29, configs=[])

        quorum.on("DescribeConfigs", faults.change(refuse))
        session = at_brokers(quorum)
        line = "configs TOPIC:secret TOPIC:orders --effective --fail-if-any --where"
        for condition, code in (("name == nothing", 3), ("name == retention.ms", 1)):
            result = run(session, f"{line} '{condition}'")
            "".join(render(result, "jsonl"))
            assert result.exit_code == code

    def test_one_refusal_of_many_leaves_the_rest(self, quorum: Quorum) -> None:
        def refuse(body: Message) -> None:
            body["results"][0].update(errorCode=29, configs=[])

        quorum.on("DescribeConfigs", faults.change(refuse))
        session = at_brokers(quorum)
        assert [row["name"] for row in rows(session, "configs TOPIC:secret TOPIC:orders")] == ["retention.ms"]
        assert "TOPIC:secret" in session.remarks[0]

    @pytest.mark.parametrize("line", ["configs TOPIC:a TOPIC:b", "configs TOPIC:b TOPIC:a"])
    def test_the_order_in_which_resources_fail_does_not_matter(self, quorum: Quorum, line: str) -> None:
        def refuse(body: Message) -> None:
            for one in body["results"]:
                one.update(errorCode=29 if one["resourceName"] == "a" else 3, configs=[])

        quorum.on("DescribeConfigs", faults.change(refuse))
        session = at_controllers(quorum)
        assert rows(session, line) == []
        assert len(session.remarks) == 2

    def test_a_controller_that_is_too_old(self) -> None:
        with Quorum(release="3.6") as quorum:
            quorum.append(
                value("TOPIC", name="orders", topicId=uuid(1)),
                value("CONFIG", resourceType=2, resourceName="orders", name="retention.ms", value="5"),
            )
            session = at_controllers(quorum)
            (row,) = rows(session, "configs TOPIC:orders --effective")
        assert (row["name"], row["value"], row["type"]) == ("retention.ms", "5", "UNKNOWN")
        assert "unknown" in session.remarks[0]
        assert "DescribeConfigs" in session.remarks[0]

    def test_a_version_without_types(self, quorum: Quorum) -> None:
        session = at_brokers(quorum, api_versions_exclude="DescribeConfigs:3-9")
        (row,) = rows(session, "configs TOPIC:orders --docs")
        assert (row["value"], row["type"], row["documentation"]) == ("5", "UNKNOWN", None)
        assert "too old to report types" in session.remarks[0]

    def test_no_api_at_a_broker(self, quorum: Quorum) -> None:
        with pytest.raises(NodeError) as raised:
            run(at_brokers(quorum, api_versions_exclude="DescribeConfigs:0-9"), "configs TOPIC:orders")
        assert raised.value.exit_code == 3

    def test_the_moment_that_is_asked_for_is_the_logs(self, quorum: Quorum) -> None:
        session = at_controllers(quorum).reshape(point="0")
        assert rows(session, "configs") == []


class TestDraftOfKip569:
    @pytest.fixture
    def session(self) -> Iterator[Session]:
        with Quorum(brokers=1, dialects=["kip-569-draft"]) as made:
            valid = {"caseSensitive": True, "values": ["a", "b"]}
            made.configs[2, "orders"] = [
                told("compression.type", "a", 1, type="STRING", validator=valid),
                told("cleanup.policy", "b", 1, type="LIST", validator={"caseSensitive": False, "values": ["a", "b"]}),
                told("retention.ms", "1", 1, type="UNKNOWN", validator=None),
                told("segment.ms", "1", 1, type=None, validator=None),
            ]
            yield at_brokers(made, dialect="kip-569-draft")

    def test_the_same_rows(self, session: Session) -> None:
        found = {row["name"]: row["type"] for row in rows(session, "configs TOPIC:orders")}
        assert found == {
            "compression.type": "STRING",
            "cleanup.policy": "LIST",
            "retention.ms": "UNKNOWN",
            "segment.ms": "UNKNOWN",
        }

    @pytest.mark.parametrize(
        ("word", "valid"),
        [
            ("compression.type=a", True),
            ("compression.type=A", False),
            ("compression.type=zstd", False),
            ("cleanup.policy=B", True),
            ("cleanup.policy=A,b", True),
            ("cleanup.policy=compact", False),
            ("retention.ms=7", True),
            ("retention.ms=x", False),
        ],
    )
    def test_its_valid_values_decide(self, session: Session, word: str, valid: bool) -> None:
        (row,) = rows(session, f"configs check TOPIC:orders {word}")
        assert row["valid"] is valid


class TestCheck:
    @pytest.mark.parametrize(
        ("kind", "word", "valid"),
        [
            ("TOPIC", "retention.ms=-1", True),
            ("TOPIC", "retention.ms= 5 ", True),
            ("TOPIC", "retention.ms=-2", False),
            ("TOPIC", "retention.ms=1.5", False),
            ("TOPIC", "retention.ms=9223372036854775807", True),
            ("TOPIC", "retention.ms=9223372036854775808", False),
            ("TOPIC", "max.message.bytes=2147483648", False),
            ("TOPIC", "min.insync.replicas=0", False),
            ("TOPIC", "preallocate=TRUE", True),
            ("TOPIC", "preallocate=yes", False),
            ("TOPIC", "cleanup.policy=compact, delete", True),
            ("TOPIC", "cleanup.policy=compact,remove", False),
            ("TOPIC", "compression.type=zstd", True),
            ("TOPIC", "compression.type=ZSTD", False),
            ("TOPIC", "min.cleanable.dirty.ratio=0.5", True),
            ("TOPIC", "min.cleanable.dirty.ratio=1e-3", True),
            ("TOPIC", "min.cleanable.dirty.ratio=NaN", True),
            ("TOPIC", "min.cleanable.dirty.ratio=Infinity", False),
            ("TOPIC", "min.cleanable.dirty.ratio=half", False),
            ("TOPIC", "segment.bytes=100", True),
            ("TOPIC", "segment.bytes=10", False),
            ("TOPIC", "no.such.key=1", False),
            ("BROKER", "listener.name.internal.ssl.keystore.location=/a", True),
            ("BROKER", "listener.name.internal.max.connections=x", False),
            ("BROKER", "listener.name.internal.plain.connections.max.reauth.ms=x", False),
            ("BROKER", "group.coordinator.rebalance.protocols=classic,consumer", True),
            ("BROKER", "ssl.key.password=anything", True),
            ("GROUP", "consumer.session.timeout.ms=0", False),
            ("CLIENT_METRICS", "interval.ms=100", True),
            ("CLIENT_METRICS", "interval.ms=often", False),
        ],
    )
    def test_by_type_and_valid_values(self, sample: Session, kind: str, word: str, valid: bool) -> None:
        result = run(sample, f"configs check {kind}:1 '{word}'")
        assert isinstance(result, Rows)
        (row,) = result
        assert row["valid"] is valid, row
        assert result.exit_code == (0 if valid else 1)
        assert bool(row["reason"]) == (not valid or word == "segment.bytes=100")

    def test_several(self, sample: Session) -> None:
        result = run(sample, "configs check TOPIC:orders retention.ms=1 preallocate=maybe")
        assert isinstance(result, Rows)
        assert [row["valid"] for row in result] == [True, False]
        assert result.exit_code == 1

    def test_values_of_secret_keys_are_not_repeated(self, sample: Session) -> None:
        shown = "".join(lines(sample, "configs check BROKER:1 ssl.key.password=hunter2 no.such.key=hunter2"))
        assert "hunter2" not in shown
        assert shown.count(REDACTED) == 2

    @pytest.mark.parametrize("words", ["", "TOPIC:a", "TOPIC:a word", "TOPIC:a =1", "a b=1"])
    def test_what_is_no_check(self, sample: Session, words: str) -> None:
        with pytest.raises(UsageError):
            run(sample, f"configs check {words}")

    def test_it_needs_no_image(self, sample: Session) -> None:
        run(sample, "configs check TOPIC:orders retention.ms=1")
        assert not sample.is_loaded

    def test_a_node_knows_what_is_read_only(self, quorum: Quorum) -> None:
        first, second = rows(at_brokers(quorum), "configs check BROKER:101 broker.id=7 background.threads=7")
        assert (first["valid"], second["valid"]) == (False, True)
        assert "isReadOnly" in first["reason"]

    def test_a_node_knows_later_releases(self, quorum: Quorum) -> None:
        (row,) = rows(at_brokers(quorum), "configs check TOPIC:orders of.a.later.release=x")
        assert (row["valid"], row["type"]) == (True, "STRING")

    @pytest.mark.parametrize(
        ("assignment", "valid"),
        [
            ("BROKER_LOGGER:1 kafka.server=DEBUG", True),
            ("BROKER_LOGGER:1 kafka.server=debug", False),
            ("BROKER_LOGGER:1 root=OFF", False),
            ("TOPIC:t compression.gzip.level=-1", True),
            ("TOPIC:t compression.gzip.level=10", False),
            ("BROKER:1 compression.gzip.level=0", False),
            ("TOPIC:t leader.replication.throttled.replicas=0:1,1:2", True),
            ("TOPIC:t follower.replication.throttled.replicas=0", False),
            ("CLIENT_METRICS:m interval.ms=99", False),
            ("CLIENT_METRICS:m match=client_id=a.*", True),
            ("CLIENT_METRICS:m match=topic=a", False),
        ],
    )
    def test_rules_that_kafka_has_as_code(self, sample: Session, assignment: str, valid: bool) -> None:
        (row,) = rows(sample, f"configs check {assignment}")
        assert (row["valid"], row["value"]) == (valid, assignment.partition(" ")[2].partition("=")[2])
        assert (row["reason"] is None) == valid and row["expected"]

    @pytest.mark.parametrize(
        ("line", "refused"),
        [
            (
                "min.compaction.lag.ms=5 max.compaction.lag.ms=3 segment.ms=1",
                "min.compaction.lag.ms max.compaction.lag.ms",
            ),
            ("min.compaction.lag.ms=5 max.compaction.lag.ms=5", ""),
            ("min.compaction.lag.ms=5", ""),
            ("min.compaction.lag.ms=5 max.compaction.lag.ms=0", "max.compaction.lag.ms"),
            ("local.retention.ms=5 retention.ms=3", ""),
            (
                "remote.storage.enable=true local.retention.ms=5 retention.ms=3",
                "remote.storage.enable local.retention.ms retention.ms",
            ),
            (
                "remote.storage.enable=TRUE local.retention.ms=-1 retention.ms=3",
                "remote.storage.enable local.retention.ms retention.ms",
            ),
            ("remote.storage.enable=true local.retention.ms=-2 retention.ms=3", ""),
            ("remote.storage.enable=true local.retention.ms=5 retention.ms=-1", ""),
            (
                "remote.storage.enable=true local.retention.bytes=5 retention.bytes=3",
                "remote.storage.enable local.retention.bytes retention.bytes",
            ),
            ("remote.storage.enable=true cleanup.policy=delete,compact", "remote.storage.enable cleanup.policy"),
            ("remote.storage.enable=true cleanup.policy=delete", ""),
            (
                "remote.storage.enable=true remote.log.copy.disable=true local.retention.ms=3 retention.ms=5",
                "remote.storage.enable remote.log.copy.disable local.retention.ms retention.ms",
            ),
            ("remote.storage.enable=true remote.log.copy.disable=true local.retention.ms=-2 retention.ms=5", ""),
            ("remote.storage.enable=true remote.log.copy.disable=true local.retention.bytes=-1 retention.bytes=-1", ""),
            (
                "remote.storage.enable=true remote.copy.lag.ms=5 local.retention.ms=3",
                "remote.storage.enable remote.copy.lag.ms local.retention.ms",
            ),
            ("remote.storage.enable=true remote.copy.lag.ms=-1 local.retention.ms=3", ""),
            (
                "remote.storage.enable=true remote.copy.lag.ms=5 local.retention.ms=-2 retention.ms=3",
                "remote.storage.enable remote.copy.lag.ms local.retention.ms retention.ms",
            ),
            ("remote.storage.enable=true local.retention.bytes=4 retention.bytes=-5", ""),
            ("remote.storage.enable=true remote.copy.lag.bytes=9 local.retention.bytes=-2 retention.bytes=-5", ""),
            ("segment.ms=5 retention.ms=1 segment.bytes=2000000 retention.bytes=1 min.insync.replicas=9", ""),
        ],
    )
    def test_values_that_kafka_refuses_beside_each_other(self, sample: Session, line: str, refused: str) -> None:
        found = rows(sample, f"configs check TOPIC:t {line}")
        assert [row["name"] for row in found if not row["valid"]] == refused.split()
        assert all(row["valid"] or row["reason"] for row in found)

    @pytest.mark.parametrize(
        ("given", "refused"),
        [
            (
                {"retention.ms": "5000"},
                "remote.copy.lag.ms (10000) must be at most local.retention.ms (-2, which is retention.ms: 5000) while"
                " remote.storage.enable is true",
            ),
            (
                {"local.retention.ms": "-1"},
                "local.retention.ms (-1: no limit) must be at most retention.ms (604800000) while"
                " remote.storage.enable is true",
            ),
            (
                {"cleanup.policy": "compact"},
                "cleanup.policy must not contain compact while remote.storage.enable is true",
            ),
            (
                {"remote.storage.enable": "false"},
                "remote.storage.enable can be turned off only while remote.log.delete.on.disable is true",
            ),
            ({"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}, None),
            ({"remote.storage.enable": "true", "remote.log.delete.on.disable": "false"}, None),
        ],
    )
    def test_values_that_kafka_refuses_beside_those_in_force(self, given: dict[str, str], refused: str | None) -> None:
        found = conflicts("TOPIC", given, TIERED.get)
        assert found == ({} if refused is None else dict.fromkeys(given, refused))

    def test_what_was_never_on_can_be_turned_off(self) -> None:
        assert conflicts("TOPIC", {"remote.storage.enable": "false"}, lambda _: None) == {}

    @pytest.mark.parametrize(("heartbeat", "valid"), [("44999", True), ("45000", False)])
    def test_a_session_is_longer_than_a_heartbeat(self, sample: Session, heartbeat: str, valid: bool) -> None:
        line = f"configs check GROUP:g share.heartbeat.interval.ms={heartbeat} share.session.timeout.ms=45000"
        assert [row["valid"] for row in rows(sample, line)] == [valid, valid]

    def test_values_that_are_in_force_count_at_a_node(self, quorum: Quorum) -> None:
        """retention.ms of orders is 5 there; a value that is given counts instead."""
        session = at_brokers(quorum)
        tiered = "configs check TOPIC:orders remote.storage.enable=true local.retention.ms=6"
        assert {row["reason"] for row in rows(session, tiered)} == {
            "local.retention.ms (6) must be at most retention.ms (5) while remote.storage.enable is true"
        }
        assert all(row["valid"] for row in rows(session, f"{tiered} retention.ms=6"))

    def test_nothing_is_changed(self, quorum: Quorum) -> None:
        rows(at_brokers(quorum), "configs check TOPIC:orders retention.ms=1")
        assert not quorum.asked_for("IncrementalAlterConfigs")

    def test_a_node_that_does_not_tell_leaves_the_tables(self, quorum: Quorum) -> None:
        session = at_brokers(quorum, api_versions_exclude="DescribeConfigs:0-9")
        (row,) = rows(session, "configs check TOPIC:orders retention.ms=x")
        assert row["valid"] is False
        assert "DescribeConfigs" in session.remarks[0]

    @given(st.sampled_from(sorted((kind, key) for kind in TABLE for key in known_types(kind))), st.text(max_size=12))
    def test_every_key_and_any_text_has_a_verdict(self, key: tuple[str, str], text: str) -> None:
        verdict = check(*key, text, None)
        assert verdict.valid or verdict.reason

    @given(st.sampled_from(sorted((kind, key) for kind in TABLE for key in known_types(kind))))
    def test_every_default_is_valid(self, key: tuple[str, str]) -> None:
        default = known_types(key[0])[key[1]].default
        assert default is None or check(*key, default, None).valid


class TestManConfig:
    def test_of_tables(self, sample: Session) -> None:
        facts = sections(sample, "man config cleanup.policy")[""]
        assert facts == {
            "resourceType": "TOPIC",
            "name": "cleanup.policy",
            "type": "LIST",
            "default": "delete",
            "validValues": "a list of compact, delete",
            "synonyms": None,
            "isSensitive": False,
            "isReadOnly": None,
            "documentation": None,
            "from": "Kafka 4.4",
        }
        assert "a running cluster" in sample.remarks[0]

    def test_a_part_for_each_type(self, sample: Session) -> None:
        assert list(sections(sample, "man config min.insync.replicas")) == ["TOPIC", "BROKER"]

    def test_no_such_config(self, sample: Session) -> None:
        with pytest.raises(CommandError) as raised:
            run(sample, "man config retention.mss")
        assert "retention.ms" in (raised.value.hint or "")

    @pytest.mark.parametrize("line", ["man config", "man dump more"])
    def test_words_too_few_or_too_many(self, sample: Session, line: str) -> None:
        with pytest.raises(UsageError):
            run(sample, line)

    @BOTH
    def test_of_nodes(self, quorum: Quorum, at: Any) -> None:
        topic = {"errorCode": 0, "name": "orders", "topicId": uuid(1), "isInternal": False, "partitions": []}
        quorum.bodies["DescribeTopicPartitions"] = {"topics": [topic]}
        session = at(quorum)
        facts = sections(session, "man config retention.ms")[""]
        assert (facts["type"], facts["default"], facts["from"]) == ("LONG", "604800000", "node")
        assert facts["synonyms"] == ["log.retention.hours"]
        assert facts["documentation"] == DOCUMENTED
        text = "\n".join(lines(session, "man config retention.ms"))
        assert "How long <data> is kept." in text
        assert "\x1b" not in text

    def test_a_node_that_tells_nothing(self, quorum: Quorum) -> None:
        session = at_brokers(quorum, api_versions_exclude="DescribeConfigs:0-9")
        facts = sections(session, "man config retention.ms")[""]
        assert facts["from"] == "Kafka 4.4"
        assert session.remarks


def test_entities() -> None:
    assert parse_entity("topic:a:b") == ("TOPIC", "a:b")
    assert parse_entity("BROKER") == ("BROKER", "")
    assert parse_entity("client_metrics:x") == ("CLIENT_METRICS", "x")


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [("5", "INT", 5), ("true", "BOOLEAN", True), ("0.5", "DOUBLE", 0.5), ("05", "INT", "05"), ("5", "STRING", "5"),
     ("TRUE", "BOOLEAN", "TRUE"), (None, "INT", None), ("1e9", "DOUBLE", "1e9"), ("x", "LONG", "x"), ("5", None, "5"),
     ("9223372036854775807", "LONG", 9223372036854775807), ("[redacted]", "INT", "[redacted]")],
)  # fmt: skip
def test_values_are_coloured_by_type(text: str | None, kind: str | None, shown: Any) -> None:
    found = typed(text, kind)
    assert found == shown
    assert type(found) is type(shown)


def test_keys_are_known_with_and_without_a_prefix() -> None:
    for kind in TABLE:
        assert {known.type for known in known_types(kind).values()} <= {*TYPES.values()}
    assert (
        known_key("BROKER", "listener.name.x.scram-sha-256.sasl.jaas.config")
        == known_types("BROKER")["sasl.jaas.config"]
    )
    assert known_key("TOPIC", "listener.name.x.ssl.key.password") is None
    assert len(SOURCES) == 8


@given(st.sampled_from(sorted(TYPES.values())), st.text(max_size=30))
def test_any_text_of_any_type_is_judged(kind: str, text: str) -> None:
    entry = ConfigEntry("retention.ms", None, "DEFAULT_CONFIG", False, False, (), kind, None)
    assert check("TOPIC", "retention.ms", text, entry).type == kind


def test_the_page_of_a_config_needs_no_word_before_its_name(sample: Session) -> None:
    assert sections(sample, "man retention.ms") == sections(sample, "man config retention.ms")


def test_a_node_that_reports_another_type_than_kafka_declares() -> None:
    """Kafka's rule is for values of Kafka's type."""
    entry = ConfigEntry("compression.gzip.level", "x", "DEFAULT_CONFIG", False, False, (), "STRING", None)
    assert check("TOPIC", "compression.gzip.level", "x", entry).valid
    assert not check("TOPIC", "compression.gzip.level", "10", entry._replace(type="INT")).valid
