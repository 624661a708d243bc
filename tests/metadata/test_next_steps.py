"""Commands of Kafka's tools: by release, filled in, and read by a shell as they are meant."""

from __future__ import annotations

import json
import shlex
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.metadata.families.acls import Acl
from kshell.metadata.families.cluster import Broker
from kshell.metadata.health.check import (
    Check,
    CheckedState,
    CheckFindings,
    ObservedValue,
    PartitionObservation,
    checks,
    step_of,
)
from kshell.metadata.image import Image
from kshell.metadata.kafka_tools import KafkaTools, acl_words, move_command, release_of
from kshell.metadata.next_steps import Cure, NextStep, next_step
from kshell.metadata.partitions import Partition
from kshell.metadata.reassignment import Placement, cancel_command
from kshell.metadata.values import BatchPosition, Entry, Origin, Provenance
from kshell.protocol.primitives import ZERO_UUID, Uuid

HOSTILE = "a {b} 'c' $(d) `e`\n{0}"
NOWHERE = Origin(1, 1, "", 0, BatchPosition("", 0, 0, False))


@pytest.mark.parametrize(
    ("release", "tool", "flag"),
    [
        ((3, 9), "kafka-leader-election.sh", "--admin.config"),
        ((4, 1), "kafka-leader-election.sh", "--admin.config"),
        ((4, 2), "kafka-leader-election.sh", "--command-config"),
        ((4, 0), "kafka-cluster.sh unregister", "--config"),
        ((4, 4), "kafka-cluster.sh unregister", "--command-config"),
        (None, "kafka-cluster.sh unregister", "--command-config"),
        ((3, 9), "kafka-features.sh", "--command-config"),
    ],
)
def test_the_file_of_properties_by_release(release: tuple[int, int] | None, tool: str, flag: str) -> None:
    tools = KafkaTools("b:9092", "c:9093", "my file", release)
    assert tools.fill(f"{tool} --id {{id}}", {"id": 8}) == f"{tool} --bootstrap-server b:9092 {flag} 'my file' --id 8"


def test_commands_for_controllers_go_to_brokers_where_no_controller_is_known() -> None:
    template = "kafka-cluster.sh unregister-controller --id {id} --bootstrap-controller"
    known = KafkaTools("b:9092", "c:9093").fill(template, {"id": 8})
    assert known == "kafka-cluster.sh unregister-controller --bootstrap-controller c:9093 --id 8"
    unknown = KafkaTools("b:9092").fill(template, {"id": 8})
    assert unknown == "kafka-cluster.sh unregister-controller --bootstrap-server b:9092 --id 8"


def test_tokens_are_given_to_who_has_a_name() -> None:
    tools = KafkaTools("b:9092", authenticated="b:9094")
    line = tools.fill("kafka-delegation-tokens.sh --create", {})
    assert line == "kafka-delegation-tokens.sh --bootstrap-server b:9094 --command-config FILE --create"
    assert tools.fill("kafka-topics.sh --list", {}) == "kafka-topics.sh --bootstrap-server b:9092 --list"
    plain = KafkaTools("b:9092").fill("kafka-delegation-tokens.sh --create", {})
    assert "--bootstrap-server b:9092" in plain


def test_names_and_addresses_are_words_for_a_shell() -> None:
    tools = KafkaTools("'{host}:1'", None, "{file}")
    line = tools.fill("kafka-topics.sh --delete --topic {topic} {more}", {"topic": HOSTILE, "more": ["x y", "{z}"]})
    plain = line.replace("$'", "'").replace("\\'", "").replace("\\n", "")
    assert "{host}:1" in plain and "{file}" in plain and shlex.split(plain)[-2:] == ["x y", "{z}"]
    assert line.isprintable()


def test_the_first_cure_that_fits() -> None:
    cures = (
        Cure("old", until=(4, 0)),
        Cure("on", at_least={"kraft.version": 1}),
        Cure("new {0}", ("kafka-topics.sh --topic {t}",), since=(4, 2), below={"metadata.version": 33}),
        Cure("else"),
    )

    def text(release: tuple[int, int] | None, **finalized: int) -> str:
        levels = {name.replace("_", "."): level for name, level in finalized.items()}
        return next_step(cures, KafkaTools(release=release), levels, {"t": "a"}).text

    assert text((3, 9), kraft_version=1) == "old"
    assert text((4, 0), kraft_version=1) == "on"
    assert text((4, 1)) == "else"
    assert text((4, 2), metadata_version=32) == "new kafka-topics.sh --bootstrap-server HOST:9092 --topic a"
    assert text(None, metadata_version=33) == "else"


def test_releases() -> None:
    assert release_of("3.9.2 or later") == (3, 9) and release_of("4.10") == (4, 10)
    assert release_of(None) is None and release_of("x") is None


def step(finding: str, release: tuple[int, int], finalized: dict[str, int], **places: object) -> tuple[str, list[str]]:
    found = step_of(finding, KafkaTools("b:1", "c:2", release=release), finalized, places)
    return found.text, list(found.commands)


def test_a_cure_that_only_an_upgrade_brings() -> None:
    for release in ((3, 9), (4, 0), (4, 3)):
        text, commands = step("staleController", release, {"metadata.version": 21}, id=7, needed=33)
        assert commands == [] and "upgrade all nodes to Kafka 4.4" in text
    text, commands = step("staleController", (4, 4), {"metadata.version": 30}, id=7, needed=33)
    assert commands == [
        "kafka-features.sh --bootstrap-server b:1 upgrade --feature metadata.version=33",
        "kafka-cluster.sh unregister-controller --bootstrap-controller c:2 --id 7",
    ]
    assert step("staleController", (4, 4), {"metadata.version": 33}, id=7, needed=33)[1] == commands[1:]


def test_voters_of_a_quorum() -> None:
    remove = "remove-controller --controller-id 7 --controller-directory-id D"
    places = {"id": 7, "directory": "D"}
    for release in ((3, 9), (4, 4)):
        assert step("evenVoters", release, {"kraft.version": 1}, **places)[1] == [
            f"kafka-metadata-quorum.sh --bootstrap-controller c:2 {remove}"
        ]
    assert step("evenVoters", (4, 0), {}, **places)[1] == []
    assert step("evenVoters", (4, 1), {}, **places)[1] == [
        "kafka-features.sh --bootstrap-server b:1 upgrade --feature kraft.version=1"
    ]


def test_the_level_of_metadata_by_release() -> None:
    places = {"feature": "metadata.version", "level": 21, "name": "3.9-IV0"}
    assert step("featureBehind", (3, 9), {}, **places)[1][0].endswith("upgrade --metadata 3.9-IV0")
    assert step("featureBehind", (4, 0), {}, **places)[1][0].endswith("upgrade --feature metadata.version=21")


def test_every_command_is_in_its_sentence() -> None:
    """A reader of the text sees what a program runs."""
    for check in checks():
        for cure in check.cures:
            assert all(f"{{{number}}}" in cure.text for number in range(len(cure.commands))), check.name
            assert "kafka-" not in cure.text or not cure.commands or "add-controller" in cure.text, check.name


@pytest.mark.parametrize(
    ("kind", "operation", "since"),
    [
        ("TOPIC", "READ", (3, 3)),
        ("TOPIC", "ALL", (3, 3)),
        ("TOPIC", "CLUSTER_ACTION", None),
        ("GROUP", "WRITE", None),
        ("GROUP", "ALTER_CONFIGS", (4, 0)),
        ("CLUSTER", "DELETE", None),
        ("TRANSACTIONAL_ID", "TWO_PHASE_COMMIT", (4, 1)),
        ("DELEGATION_TOKEN", "READ", None),
        ("USER", "DESCRIBE_TOKENS", (3, 3)),
        ("USER", "(99)", None),
        ("(9)", "ALL", None),
    ],
)
def test_an_acl_is_written_only_where_the_tool_takes_its_operation(
    kind: str, operation: str, since: tuple[int, int] | None
) -> None:
    """``AclEntry.supportedOperations`` of each release; Kafka itself has no such rule."""
    acl = Acl(kind, "kafka-cluster", "LITERAL", "User:a", "*", operation, "ALLOW")
    for release in ((3, 3), (3, 9), (4, 0), (4, 1), (4, 4)):
        assert (acl_words(acl, release) is not None) == (since is not None and release >= since), release
    assert (acl_words(acl) is not None) == (since is not None)
    assert acl_words(acl._replace(principal="a")) is None


# --- where replicas go -----------------------------------------------------------------------------------------------


def broker(number: int, rack: str | None, **more: object) -> Broker:
    plain = Broker(number, 1, ZERO_UUID, (), {}, rack, False, False, False, (Uuid(bytes([number] * 16)),), None)
    return plain._replace(**more)  # type: ignore[arg-type]


def placement(*brokers: Broker) -> Placement:
    table = {one.id: Entry(one, NOWHERE) for one in brokers}
    return Placement(Image({"brokers": table}, Provenance(1, 1, 1)))


def partition(*replicas: int, **more: object) -> Partition:
    given = {
        "replicas": replicas, "directories": (ZERO_UUID,) * len(replicas), "isr": replicas, "removing_replicas": (),
        "adding_replicas": (), "elr": (), "last_known_elr": (), "leader": replicas[0],
        "leader_recovery_state": "RECOVERED", "leader_epoch": 1, "partition_epoch": 1, **more,
    }  # fmt: skip
    return Partition(**given)  # type: ignore[arg-type]


SIX = tuple(broker(number, f"rack-{number % 3}") for number in range(6))


def test_a_broker_that_is_gone_is_replaced_in_its_place_and_rack() -> None:
    there = placement(*SIX)
    for number in range(4):
        assert there.replace(partition(0, 1, 2), (1,), number) == (0, 4, 2)
    assert placement(*SIX[:3]).replace(partition(0, 1, 2), (1,), 0) is None
    assert placement(*SIX[:3], broker(4, None)).replace(partition(0, 1, 2), (1,), 0) == (0, 4, 2)


def test_two_that_are_gone_are_replaced_by_two() -> None:
    replicas = placement(*SIX).replace(partition(0, 1, 2), (0, 1), 0)
    assert replicas is not None and replicas[2] == 2
    assert {number % 3 for number in replicas} == {0, 1, 2}


@pytest.mark.parametrize(
    "unfit",
    [
        {"fenced": True},
        {"in_controlled_shutdown": True},
        {"cordoned_directories": (Uuid(bytes([4] * 16)),)},
    ],
)
def test_a_broker_that_takes_no_replicas_gets_none(unfit: dict[str, object]) -> None:
    there = placement(*SIX[:3], broker(4, "rack-1", **unfit))
    assert there.replace(partition(0, 1, 2), (1,), 0) is None
    assert there.widen(partition(0), 4, 0) == (0, 1, 2)


def test_what_a_reassignment_removes_does_not_come_back() -> None:
    moving = partition(0, 1, 2, 5, removing_replicas=(5,))
    assert placement(*SIX).replace(moving, (1,), 0) == (0, 4, 2)
    tools = KafkaTools("b:1")
    line = cancel_command(tools, [("a", 3, partition(0, 1, 5, adding_replicas=(5,)))])
    assert json.loads(shlex.split(line)[1])["partitions"] == [{"topic": "a", "partition": 3, "replicas": [0, 1]}]
    assert line.endswith("--cancel")


@given(
    unfit=st.sets(st.integers(1, 6)),
    replicas=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    removing=st.sets(st.integers(1, 8)),
    leaving=st.lists(st.integers(1, 8), max_size=6),
)
def test_whether_there_are_enough_brokers_is_known_before_they_are_chosen(
    unfit: set[int], replicas: list[int], removing: set[int], leaving: list[int]
) -> None:
    brokers = placement(*(broker(number, None, fenced=number in unfit) for number in range(1, 7)))
    value = partition(*replicas, removing_replicas=tuple(removing))
    assert brokers.can_replace(value, leaving) == (brokers.replace(value, leaving, 1) is not None)


def test_replicas_are_spread_over_racks() -> None:
    replicas = placement(*SIX).spread(partition(0, 3, 1), 0)
    assert replicas is not None and replicas[0] == 0 and {number % 3 for number in replicas} == {0, 1, 2}
    assert placement(SIX[0], SIX[3]).spread(partition(0, 3), 0) is None


def test_the_assignment_is_one_word() -> None:
    line = move_command(KafkaTools("b:1"), [("it's", 0, [1, 2])])
    words = shlex.split(line)
    assert json.loads(words[1]) == {
        "version": 1, "partitions": [{"topic": "it's", "partition": 0, "replicas": [1, 2]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cure", "steps"),
    [
        (Cure("look"), 1),
        (Cure("look at {topic}"), 2),
        (Cure("look at {topic}/{partition}"), 6),
        (Cure("{0} of {topic}", ("kafka-topics.sh --describe --topic {topic} {partition}",)), 6),
        (Cure("look", ("kafka-topics.sh --describe --topic {topic} {partition}",)), 1),
    ],
)
def test_findings_of_partitions_are_counted_by_the_sentence_of_their_step(cure: Cure, steps: int) -> None:
    """However many sentences came before: of those that name the partition, not all are made."""
    of_check = Check("c", "info", "", (cure,))
    state = cast(CheckedState, SimpleNamespace(tools=KafkaTools(), features=SimpleNamespace(finalized={})))
    findings = CheckFindings(of_check)
    for number in range(3):
        observation = PartitionObservation("", NextStep(f"other {number}"))
        findings.add_partition("t", number, ObservedValue(of_check, observation, state))
    for topic in ("a", "b"):
        for number in range(3):
            findings.add_partition(topic, number, ObservedValue(of_check, PartitionObservation(""), state))
    groups = findings.by_step(2)
    assert [group.count for group in groups.values()] == [1, 1, 1] + ([6 // steps] * steps if steps < 6 else [])
    everything = findings.by_step(20)
    assert [group.count for group in everything.values()] == [1, 1, 1] + [6 // steps] * steps
