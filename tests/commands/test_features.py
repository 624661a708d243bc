"""features: what is finalized and supported, verdicts on changes, and the map of levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell.commands.features import parse_targets
from kshell.engine.completion import complete
from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.metadata.feature_update import ClusterFeatures, NodeFeatures, check
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.choose import NoSource
from kshell.sources.quorum.source import QuorumSource
from tests.builders import FIXTURES, batch, value, write_log
from tests.commands.healthy import FEATURES, broker, controller, records, write
from tests.commands.shell import lines, opened, rows, run
from tests.server import Quorum, faults, settings

METADATA = "metadata.version"


def level(number: int, name: str = METADATA) -> bytes:
    """A finalized level."""
    return value("FEATURE_LEVEL", name=name, featureLevel=number)


def supporting(top: int) -> list[dict[str, Any]]:
    """What a node registers whose software is older."""
    return [FEATURES[0] | {"maxSupportedVersion": top}, FEATURES[1]]


def verdicts(session: Session, line: str) -> dict[str, tuple[Any, list[str], str | None]]:
    """Feature -> (possible, who is in the way, why); the exit code says whether all are possible."""
    result = run(session, line)
    told = {row["feature"]: (row["possible"], row["inTheWay"], row["reason"]) for row in rows(session, line)}
    verdicts = {one[0] for one in told.values()}
    assert result.exit_code == (1 if False in verdicts else 3 if None in verdicts else 0)
    return told


def test_what_all_support(tmp_path: Path) -> None:
    session = opened(write(tmp_path, level(29), broker(3, features=supporting(29))))
    found = {row["feature"]: row for row in rows(session, "features")}
    assert list(found) == [METADATA, "kraft.version"]
    assert found[METADATA] == {
        "feature": METADATA,
        "level": 29,
        "name": "4.2-IV1",
        "minVersion": 7,
        "maxVersion": 29,
        "highestVersion": 30,
        "inTheWay": ["broker 3"],
        "nodes": {title: {"min": 7, "max": 29 if title == "broker 3" else 30} for title in (
            "broker 1", "broker 2", "broker 3", "controller 11", "controller 12", "controller 13")},
        "command": None,
    }  # fmt: skip


def test_a_node_that_does_not_support_the_finalized_level(tmp_path: Path) -> None:
    session = opened(write(tmp_path, broker(3, features=supporting(29))))
    assert rows(session, "features")[0]["inTheWay"] == ["broker 3"]


class TestCanUpgrade:
    def test_everybody_supports_it(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(29)))
        assert verdicts(session, "features --can-upgrade metadata.version=30") == {METADATA: (True, [], None)}
        assert verdicts(session, "features --can-upgrade metadata.version=4.3")[METADATA][0] is True

    def test_who_is_in_the_way(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(27), broker(3, features=supporting(28)), controller(12, features=[])))
        possible, nodes, reason = verdicts(session, "features --can-upgrade metadata.version=30")[METADATA]
        assert (possible, nodes) == (False, ["broker 3", "controller 12"])
        assert reason == (
            "only 7 (3.3-IV3) to 28 (4.2-IV0) is supported: broker 3; the feature is not supported: controller 12"
        )

    def test_a_fenced_broker_counts(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(29), broker(3, fenced=True, features=supporting(29))))
        assert verdicts(session, "features --can-upgrade 4.3-IV0")[METADATA][1] == ["broker 3"]

    def test_a_voter_that_has_not_registered(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(29), voters=(11, 12, 13, 14, 15)))
        possible, nodes, reason = verdicts(session, "features --can-upgrade metadata.version=30")[METADATA]
        assert (possible, nodes) == (False, ["controller 14", "controller 15"])
        assert reason is not None and "has not registered" in reason

    def test_unknown_where_controllers_do_not_register(self, tmp_path: Path) -> None:
        at = [number for number, record in enumerate(records()) if record in [controller(n) for n in (11, 12, 13)]]
        session = opened(write(tmp_path, level(14), without=at))
        possible, nodes, reason = verdicts(session, "features --can-upgrade metadata.version=30")[METADATA]
        assert (possible, nodes) == (None, ["controller 11", "controller 12", "controller 13"])
        assert reason == "what controller 11, controller 12, controller 13 supports is not known"
        # What is finalized they all support.
        assert verdicts(session, "features --can-upgrade metadata.version=14")[METADATA][0] is True
        # A broker that does not support it decides, whatever controllers do.
        assert verdicts(session, "features --can-upgrade metadata.version=31")[METADATA][0] is False

    def test_a_release_means_its_default_levels(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path))
        told = verdicts(session, "features --can-upgrade 4.3")
        assert {name for name, one in told.items() if one[0]} == {METADATA, "kraft.version"}
        assert told["group.version"][2] is not None and "the feature is not supported" in told["group.version"][2]

    def test_no_downgrade(self, tmp_path: Path) -> None:
        told = verdicts(opened(write(tmp_path)), "features --can-upgrade metadata.version=29")
        assert told[METADATA][2] == "30 (4.3-IV0) is finalized: this would be a downgrade"

    @pytest.mark.parametrize("name", [METADATA, "kraft.version", "group.version", "no.such.version"])
    def test_level_0_is_no_upgrade(self, name: str, tmp_path: Path) -> None:
        """Even where it is 0 already: ``kafka-features.sh upgrade`` refuses to ask for it."""
        possible, _, reason = verdicts(opened(write(tmp_path)), f"features --can-upgrade {name}=0")[name]
        assert possible is False
        assert reason is not None and "level 0, which turns a feature off, is a downgrade" in reason

    def test_dependencies_count_what_is_asked_for_too(self, tmp_path: Path) -> None:
        elr = {"name": "eligible.leader.replicas.version", "minSupportedVersion": 0, "maxSupportedVersion": 1}
        features = [*FEATURES, elr]
        session = opened(write(
            tmp_path, level(22), *(broker(n, features=features) for n in (1, 2, 3)),
            *(controller(n, features=features) for n in (11, 12, 13)),
        ))  # fmt: skip
        alone = "features --can-upgrade eligible.leader.replicas.version=1"
        told = verdicts(session, alone)
        assert told["eligible.leader.replicas.version"][2] == "needs metadata.version 23 (4.0-IV1)"
        assert all(one[0] for one in verdicts(session, f"{alone} --can-upgrade metadata.version=23").values())

    def test_not_while_a_migration_goes_on(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(29), value("ZK_MIGRATION_STATE", zkMigrationState=1)))
        reason = verdicts(session, "features --can-upgrade metadata.version=30")[METADATA][2]
        assert reason == "a migration from ZooKeeper is in progress"


class TestCanDowngrade:
    def test_what_would_be_lost(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path))
        possible, nodes, reason = verdicts(session, "features --can-downgrade metadata.version=29")[METADATA]
        assert (possible, nodes) == (False, [])
        assert reason == "metadata might be lost: 30 (4.3-IV0) brought new records or fields"

    def test_what_changed_no_metadata(self, tmp_path: Path) -> None:
        session = opened(write(tmp_path, level(29)))
        assert verdicts(session, "features --can-downgrade 4.1")[METADATA][0] is True
        assert verdicts(session, "features --can-downgrade metadata.version=22")[METADATA][0] is False

    def test_no_upgrade(self, tmp_path: Path) -> None:
        told = verdicts(opened(write(tmp_path, level(29))), "features --can-downgrade metadata.version=30")
        assert told[METADATA][2] == "29 (4.2-IV1) is finalized: this would be an upgrade"


def test_kraft_version_by_who_leads() -> None:
    """Controllers of 4.1 and later refuse to lower it; older ones take it for a feature without any effect."""
    for top, lowered, raised in ((30, False, True), (21, True, True)):
        supported = {METADATA: (1, top), "kraft.version": (0, 1)}
        cluster = ClusterFeatures({METADATA: 21, "kraft.version": 1}, (NodeFeatures("controller", 1, supported),), 1)
        assert check(cluster, {"kraft.version": 0}, upgrade=False)[0].possible is lowered
        cluster = cluster._replace(finalized={METADATA: 21})
        verdict = check(cluster, {"kraft.version": 1}, upgrade=True)[0]
        assert (verdict.possible, verdict.reason is None) == (raised, top == 30)


def test_kraft_version_is_not_said_to_be_another_than_it_is() -> None:
    """Controllers of 4.0 finalized it; they accept a lower level, but as one of a feature without any effect."""
    session = opened(FIXTURES / "4.0.0" / "controller-3001")
    same, lower = (rows(session, f"features --can-downgrade kraft.version={level}")[0] for level in (1, 0))
    assert (same["level"], same["possible"]) == (1, False)
    assert same["reason"] == (
        "controllers before 4.1 treat kraft.version as level 0, whatever is finalized: this would be an upgrade"
    )
    note = "accepted, but controllers before 4.1 do not act on it: the quorum stays as it is"
    assert (lower["level"], lower["possible"], lower["reason"], lower["command"]) == (1, True, note, None)
    assert lines(session, "features --can-downgrade kraft.version=0", width=300)[0] == (
        f"kraft.version=0: possible; 7 of 7 nodes support it; kraft.version: {note}"
    )


@pytest.mark.parametrize(("top", "lowered"), [(21, True), (25, False)])
def test_a_feature_that_nobody_knows_by_who_leads(top: int, lowered: bool) -> None:
    """Level 0 of it is nothing to 3.9; 4.0 and later look it up, and do not find it."""
    cluster = ClusterFeatures({METADATA: 20}, (NodeFeatures("controller", 1, {METADATA: (1, top)}),), 1)
    verdict = check(cluster, {"no.such.version": 0}, upgrade=False)[0]
    assert (verdict.possible, verdict.reason is None) == (lowered, lowered)
    assert check(cluster, {"streams.version": 0}, upgrade=False)[0].possible is True


class TestLive:
    def test_controllers_that_do_not_register_are_asked(self) -> None:
        """Before 3.7 nobody tells the ids of those that do not lead; these say that they support 7 to 33."""
        with Quorum(controllers=2, brokers=1, release="3.6") as quorum:
            quorum.append(level(13), broker(101, features=supporting(34)[:1]))
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            assert verdicts(session, "features --can-upgrade metadata.version=14")[METADATA] == (True, [], None)
            refused = verdicts(session, "features --can-upgrade metadata.version=34")[METADATA]
            assert refused[:2] == (False, ["controller 1", f"controller {quorum.controllers[1].address}"])

    def test_one_that_does_not_answer_is_unknown(self) -> None:
        with Quorum(controllers=2, release="3.6") as quorum:
            quorum.append(level(13))
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            assert session.image
            quorum.on("ApiVersions", faults.hang_up)
            assert verdicts(session, "features --can-upgrade metadata.version=14")[METADATA][0] is None
            assert session.remarks

    def test_brokers_and_the_controllers_they_name(self) -> None:
        with Quorum(controllers=2, brokers=1) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            assert [row["feature"] for row in rows(session, "features")] == [METADATA, "kraft.version"]
            assert set(verdicts(session, "features --can-upgrade metadata.version=34")[METADATA][1]) >= {
                "controller 1", "controller 2",
            }  # fmt: skip

    def test_a_controller_that_is_down_is_not_said_to_be_unregistered(self) -> None:
        """Brokers do not report registrations: whether a controller that does not answer has one, they cannot know."""
        with Quorum(controllers=3, brokers=1) as quorum:
            quorum.on(
                "ApiVersions", faults.change(lambda body: body["finalizedFeatures"][0].update(maxVersionLevel=29))
            )
            quorum.controllers[2].stop()
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            possible, nodes, reason = verdicts(session, "features --can-upgrade metadata.version=30")[METADATA]
            assert (possible, nodes) == (None, ["controller 3"])
            assert reason == (
                "controller 3 did not answer, so what it supports is not known; its registration says it (-q)"
            )
            refused = verdicts(session, "features --can-upgrade metadata.version=34")[METADATA]
            assert refused[0] is False and "registered" not in str(refused[2])

    def test_a_controller_that_is_down_counts_by_its_registration(self) -> None:
        """As Kafka counts it: the log has the registration, whether the node runs or not."""
        with Quorum(controllers=3, brokers=1) as quorum:
            ids = [node.id for node in quorum.controllers]
            quorum.append(level(29), broker(101), *(controller(number) for number in ids))
            quorum.controllers[2].stop()
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            assert verdicts(session, "features --can-upgrade metadata.version=30") == {METADATA: (True, [], None)}


class TestMap:
    def test_needs_no_source(self) -> None:
        found = {(row["feature"], row["level"]): row for row in rows(Session(NoSource()), "features map")}
        assert found[METADATA, 30] == {
            "feature": METADATA, "level": 30, "name": "4.3-IV0", "release": "4.3", "lastRelease": None,
            "metadataVersion": "4.3-IV0", "needs": {},
        }  # fmt: skip
        assert (found[METADATA, 1]["release"], found[METADATA, 1]["lastRelease"]) == ("3.0", "3.9")
        share = found["share.version", 1]
        # A preview in 4.1, a default from 4.2 on.
        assert (share["release"], share["metadataVersion"]) == ("4.1", "4.2-IV0")

    def test_everything_else_needs_one(self) -> None:
        with pytest.raises(UsageError):
            run(Session(NoSource()), "features")


@pytest.mark.parametrize(
    "line",
    [
        "features mapp",
        "features map --can-upgrade 4.3",
        "features --can-upgrade 4.3 --can-downgrade 4.2",
        "features --can-upgrade 9.9",
        "features --can-upgrade four",
        "features --can-upgrade metadata.version=",
        "features --can-upgrade kraft.version=-1",
        "features --can-upgrade kraft.version=99999",
        "features --can-upgrade kraft.version=1 --can-upgrade 4.3",
        "features --columns reason",
        "features map --sort possible",
    ],
)
def test_wrong_lines(line: str, sample: Session) -> None:
    with pytest.raises(UsageError):
        run(sample, line)


def test_rows_are_chosen_as_everywhere(sample: Session) -> None:
    assert rows(sample, "features map --where 'release == nothing' --columns feature,level") == []
    found = rows(sample, "features map --where 'release == \"4.1\"' --sort -level")
    assert [(row["feature"], row["level"]) for row in found] == [
        (METADATA, 27), (METADATA, 26), ("share.version", 1),
    ]  # fmt: skip
    result = run(sample, "features --can-downgrade 4.2 --where possible --columns feature")
    assert result.exit_code == 1  # the verdict is on all of it, whatever is shown


def test_a_release_to_levels() -> None:
    assert parse_targets(["4.0"], upgrade=True) == {
        METADATA: 25, "kraft.version": 1, "transaction.version": 2, "group.version": 1,
    }  # fmt: skip
    assert parse_targets(["4.0.1"], upgrade=False)["share.version"] == 0


def test_completion(sample: Session) -> None:
    assert sample.image
    offered = {one.text.strip() for one in complete(sample, "features --can-upgrade ").candidates}
    assert {"4.3", "3.3", "transaction.version=2"} <= offered


def test_a_release_is_a_question_of_its_own(sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, "features 4.4")
    assert (raised.value.hint or "").startswith("`features --can-upgrade 4.4` says whether the cluster is ready")


def test_what_is_possible_says_of_how_many_nodes_and_whether_anything_is_left_to_do(tmp_path: Path) -> None:
    session = opened(write(tmp_path, level(29)))
    nodes = "6 of 6 nodes support it"
    assert lines(session, f"features --can-upgrade {METADATA}=30")[0] == f"{METADATA}=30: possible; {nodes}"
    there = f"{METADATA}=29: every level is finalized already, nothing to do; {nodes}"
    assert lines(session, f"features --can-upgrade {METADATA}=29")[0] == there


def test_nodes_that_do_not_say_what_they_support_are_not_counted() -> None:
    told = lines(opened(FIXTURES / "3.3.2" / "broker-0"), "features --can-upgrade 3.3")[0]
    assert told.endswith("2 of 3 nodes support it, and whether the others do is not known")


def test_nor_are_they_called_ready_where_others_are_not() -> None:
    told = lines(opened(FIXTURES / "3.3.2" / "broker-0"), "features --can-upgrade 3.4")[0]
    assert "2 of 3 nodes run software that does not support it, and of 1 more it is not known; upgrade" in told


def test_without_a_node_nothing_is_said_of_nodes(tmp_path: Path) -> None:
    write_log(tmp_path, batch([value("FEATURE_LEVEL", name=METADATA, featureLevel=25)], 0))
    answer = lines(opened(tmp_path), f"features --can-upgrade {METADATA}=25")[0]
    assert answer.endswith("every level is finalized already, nothing to do")


@pytest.mark.parametrize(
    "words", ["--can-upgrade metadata.version=6", "--can-upgrade no.version=1", "--can-downgrade 3.2"]
)
def test_software_is_blamed_only_where_it_is_all_that_is_in_the_way(sample: Session, words: str) -> None:
    answer = lines(sample, f"features {words}")[0]
    assert "not possible, for the reasons below; 6 of 6 nodes are in the way" in answer


def test_nodes_that_support_different_levels_are_software_all_the_same(tmp_path: Path) -> None:
    nodes = (broker(3, features=supporting(29)), broker(4, features=supporting(28)))
    answer = lines(opened(write(tmp_path, level(28), *nodes)), f"features --can-upgrade {METADATA}=30")[0]
    assert "not yet: 2 of 7 nodes run software that does not support it" in answer


def test_golden(tmp_path: Path) -> None:
    session = opened(write(tmp_path, level(29), broker(3, features=supporting(29))))
    line = "features --can-upgrade metadata.version=30"
    reason = "only 7 (3.3-IV3) to 29 (4.2-IV1) is supported: broker 3"
    assert lines(session, line) == [
        "metadata.version=30: not yet: 1 of 6 nodes runs software that does not support it; upgrade that first, then"
        " the levels",
        "",
        "feature           level         target        possible  inTheWay  reason",
        f"metadata.version  29 (4.2-IV1)  30 (4.3-IV0)  no        broker 3  {reason}",
    ]
    assert "".join(render(run(session, line), "csv")) == (
        "feature,level,target,possible,inTheWay,reason,command\n"
        f'metadata.version,29,30,false,"[""broker 3""]",{reason},\n'
    )
    assert json.loads("".join(render(run(session, line), "jsonl"))) == {
        "feature": METADATA,
        "level": 29,
        "target": 30,
        "possible": False,
        "inTheWay": ["broker 3"],
        "reason": reason,
        "command": None,
    }
    assert lines(session, "features") == [
        "feature           level  name     maxVersion  inTheWay",
        "metadata.version     29  4.2-IV1          29  broker 3",
        "kraft.version         0  -                 1  -",
    ]
