"""What gives a partition without a leader one: each case, whom Kafka would elect, and the step that is proposed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from kshell.metadata.delta import Delta
from kshell.metadata.election import (
    ACTIVE,
    FENCED,
    NO_DIRECTORY,
    STOPPING,
    UNCLEAN,
    UNREGISTERED,
    ElectionCase,
    is_unclean_enabled,
    leaderless,
    steps,
)
from kshell.metadata.families.cluster import Broker
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.kafka_tools import KafkaTools
from kshell.metadata.partial import UNREPORTED
from kshell.metadata.partition_state import LOST
from kshell.metadata.partitions import Partition
from kshell.metadata.values import BatchPosition, Entry, Origin, Provenance
from kshell.protocol.primitives import ZERO_UUID

TOOLS = KafkaTools(servers='"$BOOTSTRAP_SERVER"')
NOWHERE = Origin(1, 1, "", 0, BatchPosition("", 0, 0, False))
SPARE = {9: Entry(Broker(9, 1, ZERO_UUID, (), {}, None, False, False, False, (), None), NOWHERE)}
"""A broker that runs, and has no replica."""
ELECT = 'kafka-leader-election.sh --bootstrap-server "$BOOTSTRAP_SERVER" --election-type {} --topic t --partition 0'


def partition(replicas: list[int], **more: Any) -> Partition:
    """A partition without a leader."""
    given: dict[str, Any] = {
        "replicas": tuple(replicas), "directories": (ZERO_UUID,) * len(replicas), "isr": (), "removing_replicas": (),
        "adding_replicas": (), "elr": (), "last_known_elr": (), "leader": -1, "leader_recovery_state": "RECOVERED",
        "leader_epoch": 1, "partition_epoch": 1, **{name: tuple(value) for name, value in more.items()},
    }  # fmt: skip
    return Partition(**given)


class Case(NamedTuple):
    """A partition, what became of its brokers, and what the step must say and must not."""

    partition: Partition
    statuses: Mapping[int, str]
    says: tuple[str, ...]
    never: tuple[str, ...] = ()
    resort: tuple[str, ...] | None = None
    """What the last resort says; ``None``: there is none."""
    has_elr: bool = True
    elects_unclean: bool = False


CASES: dict[str, Case] = {
    "the last of the ISR is down": Case(
        partition([3, 1], isr=[3]), {3: FENCED, 1: ACTIVE},
        ("start broker 3 ", "it is in the ISR, and leads without loss"), ("broker 1", ELECT.format("unclean")),
        ("makes broker 1 the leader", ELECT.format("unclean")), has_elr=False,
    ),
    "several of the ISR are down": Case(
        partition([1, 2, 3], isr=[1, 2]), {1: FENCED, 2: FENCED, 3: ACTIVE},
        ("start brokers 1 and 2 ", "elects the first that is back without loss"), ("broker 3",),
        ("makes broker 3 the leader",), has_elr=False,
    ),
    "the ELR does not count beside an ISR": Case(
        partition([1, 2], isr=[1], elr=[2]), {1: FENCED, 2: ACTIVE},
        ("start broker 1 ", "in the ISR"), ("start broker 2",), ("makes broker 2 the leader",),
    ),
    "one of the ELR is down": Case(
        partition([3, 1], elr=[3], last_known_elr=[3]), {3: FENCED, 1: ACTIVE},
        ("start broker 3 ", "it is in the ELR", "Kafka elects it as the last leader"), ("broker 1",),
        ("makes broker 1 the leader",),
    ),
    "two of the ELR are down": Case(
        partition([2, 3], elr=[2, 3], last_known_elr=[3]), {2: FENCED, 3: FENCED},
        ("start brokers 2 and 3 ", "crashed leaves the ELR when it starts", "elects broker 3 as the last leader"), (),
        ("no other replica exists, so all its records are lost", "makes broker 9 lead, empty"),
    ),
    "one of the ELR is down, and nobody knows the others": Case(
        partition([1, 2], elr=[1], last_known_elr=[1]), {1: STOPPING, 2: UNREGISTERED},
        ("broker 1 is in controlled shutdown",), ("broker 2",),
        ("no other replica runs: start broker 2, which is not registered, with the same log directories",
         "with the loss of records that only others had", "if these are lost, too, so are all records"),
    ),
    "a broker that runs is not to be started": Case(
        partition([2, 1], elr=[2, 1]), {2: FENCED, 1: ACTIVE},
        ("broker 1 runs and is in the ELR", ELECT.format("preferred")), ("start", "unclean"),
    ),
    "the broker is registered no more": Case(
        partition([2, 1], elr=[2], last_known_elr=[2]), {2: UNREGISTERED, 1: ACTIVE},
        ("start broker 2, which is not registered, with the same log directories",
         "it leaves the ELR when it registers, and then Kafka elects it as the last leader"), ("without loss",),
        ("makes broker 1 the leader",),
    ),
    "the broker is registered no more, and another led last": Case(
        partition([2, 1], elr=[2], last_known_elr=[1]), {2: UNREGISTERED, 1: FENCED},
        ("start broker 2, which is not", "leaves the ELR", "Kafka elects broker 1 as the last leader"),
        ("without loss",), ("start broker 1, then have it elected uncleanly",),
    ),
    "the broker is registered no more, and another of the ELR is no replica any more": Case(
        partition([2], elr=[1, 2], last_known_elr=[2]), {1: ACTIVE, 2: UNREGISTERED},
        ("start broker 2, which is not", "only an unclean election is left", "; the unclean election: ",
         ELECT.format("unclean")),
        ("as the last leader,", "empty:"), ("no other replica exists, so all its records are lost",),
    ),
    "the broker is registered no more, and one that may lack records runs": Case(
        partition([1, 2], elr=[2]), {1: ACTIVE, 2: UNREGISTERED},
        ("start broker 2, which is not", "only an unclean election is left"), ("kafka-leader-election.sh",),
        ("makes broker 1 the leader",),
    ),
    "the broker is registered no more, and one that may lack records may come back": Case(
        partition([1, 2], elr=[2]), {1: FENCED, 2: UNREGISTERED},
        ("start broker 2, which is not", "only an unclean election is left"), ("kafka-leader-election.sh",),
        ("start broker 1, then have it elected uncleanly, with the loss",),
    ),
    "the broker is registered no more, who departed stays in the ELR, and the last leader runs": Case(
        partition([3, 2], elr=[1, 2], last_known_elr=[2]), {1: ACTIVE, 2: UNREGISTERED, 3: ACTIVE},
        ("start broker 2, which is not", "only an unclean election is left"), ("kafka-leader-election.sh",),
        ("makes broker 3 the leader",),
    ),
    "the broker is registered no more, and Kafka elects uncleanly by itself": Case(
        partition([2], elr=[2]), {2: UNREGISTERED},
        ("start broker 2, which is not", "only an unclean election is left"), ("kafka-leader-election.sh",),
        ("no other replica exists, so all its records are lost",), elects_unclean=True,
    ),
    "the only replica is down, and who had the records is no replica any more": Case(
        partition([2], elr=[1]), {1: ACTIVE, 2: FENCED},
        ("start broker 2, then have it elected uncleanly, with the loss of records that only others had",),
    ),
    "nobody has all records, one is down and one is registered no more": Case(
        partition([2, 1]), {2: FENCED, 1: UNREGISTERED},
        ("no replica runs: start broker 2, or start broker 1, which is not registered, with the same log directories,"
         " then have it elected uncleanly, with the loss of records that only others had",),
    ),
    "the last of the ISR, from before the ELR was on": Case(
        partition([2, 1], isr=[2]), {2: FENCED, 1: ACTIVE},
        ("start broker 2 ", "it is in the ISR", "then only an unclean election is left"), (),
        ("makes broker 1 the leader",),
    ),
    "the broker is in controlled shutdown": Case(
        partition([2], isr=[2]), {2: STOPPING},
        ("broker 2 is in controlled shutdown: start it again when the process has ended",), ("start broker",),
        ("no other replica exists", "kafka-reassign-partitions.sh"), has_elr=False,
    ),
    "the replica's log directory is offline": Case(
        partition([2, 1], isr=[2]), {2: NO_DIRECTORY, 1: ACTIVE},
        ("broker 2 runs, but the log directory of the replica is offline", "restart the broker"), ("start broker",),
        ("makes broker 1 the leader",), has_elr=False,
    ),
    "members of the ELR are no replicas any more": Case(
        partition([2], elr=[1], last_known_elr=[2]), {1: ACTIVE, 2: ACTIVE},
        ("broker 1 is in the ELR but no replica any more", "makes broker 2 the leader", ELECT.format("unclean")),
        ("start", "have it elected: "),
    ),
    "one of the ELR is a replica and down, another is none": Case(
        partition([2, 3], elr=[1, 2], last_known_elr=[2]), {1: ACTIVE, 2: FENCED, 3: ACTIVE},
        ("start broker 2 ", "broker 1, which is no replica any more, stays in it"),
        ("start broker 1", "as the last leader"),
        ("makes broker 3 the leader",),
    ),
    "the last leader is down, ISR and ELR are empty": Case(
        partition([2, 1], last_known_elr=[2]), {2: FENCED, 1: ACTIVE},
        ("start broker 2 ", "it was the last leader, and Kafka elects it by itself"), ("without loss", "broker 1"),
        ("makes broker 1 the leader",),
    ),
    "the last leader runs": Case(
        partition([2, 1], last_known_elr=[2]), {2: ACTIVE, 1: FENCED},
        ("broker 2 runs and was the last leader", ELECT.format("preferred"), "stays lost"), ("start",),
    ),
    "the last leader of a cluster without ELR": Case(
        partition([2, 1], last_known_elr=[2]), {2: FENCED, 1: ACTIVE},
        ("no replica is known to have all records", "makes broker 1 the leader", ELECT.format("unclean")),
        ("elects it by itself",), has_elr=False,
    ),
    "several that were known": Case(
        partition([2, 1], last_known_elr=[2, 1]), {2: FENCED, 1: ACTIVE},
        ("no replica is known to have all records", "makes broker 1 the leader"), ("start",),
    ),
    "a last leader that is nobody": Case(
        partition([1], last_known_elr=[-1]), {1: ACTIVE},
        ("no replica is known to have all records", "makes broker 1 the leader"), ("start", "-1"),
    ),
    "nobody has all records, and nobody runs": Case(
        partition([2, 1]), {2: FENCED, 1: NO_DIRECTORY},
        ("no replica runs: start broker 2, or repair the replica's log directory of broker 1", ELECT.format("unclean")),
    ),
    "nobody has all records, and who might lead shuts down": Case(
        partition([2, 1]), {2: FENCED, 1: STOPPING},
        ("no replica runs: start broker 2, or start broker 1 again when the process has ended (it is in controlled"
         " shutdown), then have it elected uncleanly", ELECT.format("unclean")),
    ),
    "nobody has all records, and nobody is registered": Case(
        partition([2, 1]), {2: UNREGISTERED, 1: UNREGISTERED},
        ("no replica runs: start brokers 2 or 1, which are not registered, with the same log directories",
         ELECT.format("unclean")), ("other replica", "kafka-reassign-partitions.sh"),
        ("all records are lost", "kafka-reassign-partitions.sh", "makes broker 9 lead, empty"),
    ),
    "the only replica is registered no more": Case(
        partition([3]), {3: UNREGISTERED},
        ("no replica runs: start broker 3, which is not registered, with the same log directories, then have it elected"
         " uncleanly: ",), ("other", "exists", "lost"), ("all records are lost", "makes broker 9 lead, empty"),
    ),
    "a reassignment adds replicas, and the old one is down": Case(
        partition([4, 1], isr=[1], adding_replicas=[4], removing_replicas=[1]), {1: FENCED, 4: ACTIVE},
        ("start broker 1 ",), ("broker 4",),
        ("makes broker 4 (which a reassignment adds: it may be empty) the leader",), has_elr=False,
    ),
    "Kafka does not wait for the broker with all records": Case(
        partition([3, 1], isr=[3]), {3: FENCED, 1: FENCED},
        ("whichever other replica is up first, with loss", "unclean.leader.election.enable=false", "start broker 3 "),
        (), ("start broker 1, then have it elected uncleanly",), has_elr=False, elects_unclean=True,
    ),
    "Kafka is about to elect uncleanly": Case(
        partition([3, 1], elr=[3]), {3: FENCED, 1: ACTIVE},
        ("Kafka elects broker 1 soon, with loss", "unclean.leader.election.enable=false"), (),
        ("makes broker 1 the leader",), elects_unclean=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_step_of_each_case(name: str) -> None:
    case = CASES[name]
    first, resort, if_never = steps(
        ElectionCase(case.partition, case.statuses, case.has_elr, elects_unclean=case.elects_unclean, registered=SPARE),
        "t",
        0,
        TOOLS,
    )
    assert all(part in first.text for part in case.says), first
    assert not any(part in first.text for part in case.never), first
    assert (resort is None) is (case.resort is None)
    assert all(part in (resort.text if resort else "") for part in case.resort or ()), resort
    assert bool(if_never) is (resort is not None)
    for step in filter(None, (first, resort)):
        assert all(command in step.text for command in step.commands)
        assert step.text.count("kafka-leader-election.sh") == sum("leader-election" in line for line in step.commands)
        places = [step.text.index(command) for command in step.commands]
        assert places == sorted(places), "commands stand in the order in which they are run"


@pytest.mark.parametrize("name", CASES)
def test_brokers_to_wait_for_do_not_serve_and_lead_when_they_have_come(name: str) -> None:
    """Of every case that has them: nobody is to start what runs, and each that comes back is a leader."""
    case = CASES[name]
    now = ElectionCase(case.partition, case.statuses, case.has_elr)
    if now.elect("preferred") is not None:
        return
    assert all(case.statuses[broker] != ACTIVE for broker in now.awaited)
    for broker in now.awaited:
        later = now._replace(statuses={**case.statuses, broker: ACTIVE}).elect("preferred")
        assert later is not None and later.id == broker


def test_a_topics_name_is_quoted_for_a_shell() -> None:
    first, _, _ = steps(ElectionCase(partition([1]), {1: ACTIVE}, has_elr=True), "a; rm -rf ~", 3, TOOLS)
    assert "--topic 'a; rm -rf ~' --partition 3" in first.text
    assert first.commands and first.commands[0] in first.text


def test_where_no_replica_is_left_a_broker_that_runs_takes_the_place() -> None:
    case = ElectionCase(partition([2, 1]), {2: UNREGISTERED, 1: UNREGISTERED}, has_elr=True)
    first, resort, if_never = steps(case._replace(registered=SPARE), "t", 0, TOOLS)
    assert first.commands == (ELECT.format("unclean"),)
    assert resort is not None and if_never == "only if those log directories are gone"
    place, elect = resort.commands
    assert json.loads(shlex.split(place)[1])["partitions"] == [{"topic": "t", "partition": 0, "replicas": [9]}]
    assert elect == ELECT.format("unclean")
    nobody = steps(case, "t", 0, TOOLS).last_resort
    assert (
        nobody is not None
        and nobody.commands == ()
        and nobody.text.endswith("no broker runs that could lead it, empty: start one more broker")
    )


class TestImage:
    """What is read of an image: brokers' states and directories, features, configs."""

    def image(self, configs: Mapping[tuple[str, str], str] = {}, version: int = 25, elr: int = 1) -> Image:
        delta = Delta(EMPTY)
        origin = Origin(1, 1, "", 0, BatchPosition("", 0, 0, False))
        delta.put("features", "metadata.version", version, origin)
        delta.put("features", "eligible.leader.replicas.version", elr, origin)
        for resource, value in configs.items():
            delta.put_inner("configs", resource, "unclean.leader.election.enable", value, origin)
        return delta.apply(Provenance(1, 1, 1))

    @pytest.mark.parametrize(
        ("configs", "expected"),
        [
            ({}, False),
            ({("TOPIC", "t"): "true"}, True),
            ({("TOPIC", "u"): "true"}, False),
            ({("BROKER", ""): "TRUE"}, True),
            ({("BROKER", ""): "true", ("TOPIC", "t"): "false"}, False),
            ({("BROKER", ""): "true", ("BROKER", "3000"): "false"}, False),
            ({("BROKER", "1"): "true"}, False),
        ],
    )
    def test_the_topics_value_then_the_controllers_then_all_nodes(
        self, configs: Mapping[tuple[str, str], str], expected: bool
    ) -> None:
        assert is_unclean_enabled(self.image(configs), "t", 3000) is expected

    @pytest.mark.parametrize(("version", "elects"), [(20, False), (21, True)])
    def test_controllers_before_3_9_never_elect_uncleanly_by_themselves(self, version: int, elects: bool) -> None:
        image = self.image({("TOPIC", "t"): "true"}, version)
        assert leaderless(image, "t", partition([1])).elects_unclean is elects

    def test_the_last_leader_counts_where_the_feature_is_on(self) -> None:
        value = partition([1], last_known_elr=[1])
        assert [leaderless(self.image(elr=level), "t", value).last_leader for level in (0, 1)] == [None, 1]

    def test_a_broker_that_nobody_registered_is_told_from_one_without_its_directory(self) -> None:
        value = partition([1])._replace(directories=(LOST,))
        assert leaderless(self.image(), "t", value).statuses == {1: UNREGISTERED}

    def test_what_brokers_leave_out_is_an_empty_list(self) -> None:
        value = partition([1])._replace(elr=UNREPORTED, directories=UNREPORTED)
        case = leaderless(self.image(), "t", value, is_partial=True)
        assert (case.elr, case.complete, case.elect(UNCLEAN)) == ((), (), None)
