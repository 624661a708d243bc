"""quorum: the leader's own words on a live source, the log's on a directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Frames, Report, Rows
from kshell.engine.session import Session
from kshell.errors import AuthorizationError, UsageError
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import FIXTURES, value
from tests.commands.healthy import FEATURES, broker, controller, records, write
from tests.commands.shell import lines, opened, rows, run, sections
from tests.server import Quorum, faults, settings

KEYS = {"id", "directoryId", "logEndOffset", "lag", "lastFetchTimestamp", "lastCaughtUpTimestamp", "endpoints"}


def live(quorum: Quorum, **properties: str) -> Session:
    """A session at the controllers."""
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(**properties))))


def test_one_object_as_the_interface_has_it() -> None:
    with Quorum(controllers=2, brokers=1) as quorum:
        session = live(quorum)
        told = json.loads("".join(render(run(session, "quorum"), "json")))
        assert list(told) == ["clusterId", "leaderId", "leaderEpoch", "highWatermark", "voters", "observers"]
        assert (told["clusterId"], told["leaderId"], told["leaderEpoch"]) == (quorum.cluster_id, 1, quorum.epoch)
        assert told["highWatermark"] == quorum.log.high_watermark
        assert [set(one) for one in told["voters"] + told["observers"]] == [KEYS] * 3
        assert [one["id"] for one in told["voters"]] == [1, 2]
        assert [one["id"] for one in told["observers"]] == [101]
        assert told["voters"][1]["directoryId"] == str(builders.uuid(2))
        port = quorum.controllers[0].port
        assert told["voters"][0]["endpoints"] == [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}]


def test_no_image_is_loaded() -> None:
    with Quorum(controllers=3) as quorum:
        quorum.elect(2)
        quorum.commit()
        session = live(quorum)
        assert sections(session, "quorum")[""]["leaderId"] == 2
        assert not session.is_loaded
        assert quorum.asked_for("Fetch") == quorum.asked_for("FetchSnapshot") == []


def test_lags_and_ages_by_the_leaders_clock() -> None:
    """What the leader answered is an hour off this machine's clock; ages are not."""

    def behind(body: dict) -> None:  # type: ignore[type-arg]
        one, two = body["topics"][0]["partitions"][0]["currentVoters"]
        one["lastFetchTimestamp"] = 1_700_000_003_600
        two |= {"logEndOffset": one["logEndOffset"] - 7, "lastFetchTimestamp": 1_700_000_000_000}
        two["lastCaughtUpTimestamp"] = 1_699_999_900_000

    with Quorum(controllers=2) as quorum:
        quorum.append(*(builders.value("TOPIC", name=f"t{n}", topicId=builders.uuid(n)) for n in range(1, 20)))
        quorum.on("DescribeQuorum", faults.change(behind))
        session = live(quorum)
        row = lines(session, "quorum")[-1].split()
        assert row[:2] == ["voter", "2"]
        assert row[2:9] == ["7", "3.6", "s", "ago", "2", "min", "ago"]
        assert sections(session, "quorum")[""]["voters"][1]["lag"] == 7


def test_what_is_not_told_is_null() -> None:
    """Controllers of 3.3 have no endpoints or directory ids to tell; their cluster is unknown."""
    with Quorum(controllers=2, release="3.3") as quorum:
        told = sections(live(quorum), "quorum")[""]
        assert told["clusterId"] is None
        assert [(one["directoryId"], one["endpoints"]) for one in told["voters"]] == [(None, [])] * 2


def test_brokers_are_asked_the_same() -> None:
    with Quorum(controllers=1, brokers=2) as quorum:
        session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
        told = sections(session, "quorum")[""]
        assert (told["clusterId"], told["leaderId"]) == (quorum.cluster_id, 1)
        assert not session.is_loaded


def test_a_denied_question_names_the_acl() -> None:
    with Quorum() as quorum:
        quorum.on("DescribeQuorum", faults.error(31))
        with pytest.raises(AuthorizationError) as raised:
            run(live(quorum), "quorum")
        assert raised.value.hint == "the principal needs DESCRIBE on CLUSTER:kafka-cluster"


def test_a_directory_knows_leader_and_voters(sample: Session) -> None:
    told = sections(sample, "quorum")[""]
    assert (told["leaderId"], told["highWatermark"], told["observers"]) == (3000, None, None)
    assert [one["id"] for one in told["voters"]] == [3000, 3001, 3002]
    assert {one["lag"] for one in told["voters"]} == {None}
    assert {name: set(one) for name, one in enumerate(told["voters"])} == dict.fromkeys(range(3), KEYS)


def test_an_epoch_without_a_leader(tmp_path: Path) -> None:
    """A number that is no node's id is for programs: people read that there is none."""
    builders.write_log(tmp_path, builders.batch([value("TOPIC", name="t", topicId=builders.uuid(1))]))
    (tmp_path / "quorum-state").write_text('{"leaderId":-1,"leaderEpoch":5,"currentVoters":[{"voterId":9}]}')
    session = opened(tmp_path)
    assert sections(session, "quorum")[""]["leaderId"] == -1
    assert lines(session, "quorum")[2].split() == ["leaderId", "none"]
    assert any("leader none, epoch 5, voters 9" in line for line in lines(session, "status"))


def test_the_state_of_a_moment_is_the_logs() -> None:
    with Quorum() as quorum:
        quorum.append(builders.value("TOPIC", name="t", topicId=builders.uuid(1)))
        session = live(quorum)
        told = sections(session, "quorum --as-of 0")[""]
        assert (told["highWatermark"], told["clusterId"]) == (None, quorum.cluster_id)
        assert quorum.asked_for("DescribeQuorum") == []


class TestCanUpgrade:
    """From a static quorum to a dynamic one; the levels of nodes say which release they run."""

    def asked(self, source: Session) -> tuple[int, dict[str, dict[str, Any]]]:
        """The exit code, and the rows by what they are about."""
        result = run(source, "quorum --can-upgrade")
        assert isinstance(result, Rows)
        return result.exit_code, {row["requirement"]: row for row in map(dict, result.rows)}

    def of_release(self, directory: Path, top: int, *more: bytes, level: int = 25) -> Session:
        features = [FEATURES[0] | {"maxSupportedVersion": top}, FEATURES[1]]
        nodes = [controller(number, features=features) for number in (11, 12, 13)]
        nodes += [broker(number, features=features) for number in (1, 2, 3)]
        version = value("FEATURE_LEVEL", name="metadata.version", featureLevel=level)
        return opened(write(directory, version, *nodes, *more))

    def test_from_4_1_on_it_can_be_done(self, tmp_path: Path) -> None:
        code, told = self.asked(self.of_release(tmp_path, 27))
        line = "kafka-features.sh --bootstrap-server h:9092 upgrade --feature kraft.version=1"
        assert (code, told["kraftVersion"]["command"]) == (0, line)
        assert line in told["kraftVersion"]["nextStep"]
        assert [told[name]["fulfilled"] for name in ("software", "nodes", "voters", "properties")] == [
            True, True, None, None,
        ]  # fmt: skip

    @pytest.mark.parametrize("top", [21, 25])
    def test_before_only_an_upgrade_helps(self, tmp_path: Path, top: int) -> None:
        code, told = self.asked(self.of_release(tmp_path, top, level=21))
        assert (code, told["kraftVersion"]["command"]) == (1, None)
        assert told["software"]["fulfilled"] is False
        assert told["software"]["nextStep"] == "there is no other cure: upgrade all nodes to Kafka 4.1 or later"

    def test_a_node_that_does_not_support_it_is_named(self, tmp_path: Path) -> None:
        old = broker(2, features=[FEATURES[0] | {"maxSupportedVersion": 27}])
        code, told = self.asked(self.of_release(tmp_path, 27, old))
        assert code == 1 and told["nodes"]["fulfilled"] is False and "broker 2" in told["nodes"]["evidence"]

    def test_a_voter_that_has_not_registered_is_named(self, tmp_path: Path) -> None:
        directory = write(tmp_path, voters=(11, 12, 13, 14))
        code, told = self.asked(opened(directory))
        assert code == 1 and "controller 14 has not registered" in told["nodes"]["evidence"]

    def test_a_dynamic_quorum_is_one_already(self, sample: Session) -> None:
        code, told = self.asked(sample)
        assert (code, list(told)) == (0, ["kraftVersion"]) and "dynamic already" in told["kraftVersion"]["evidence"]

    def test_a_voter_that_is_down_keeps_it(self) -> None:
        with Quorum(controllers=3, brokers=1) as quorum:
            numbers = [node.id for node in quorum.controllers]
            quorum.append(*(record for record in records() if record not in [controller(n) for n in (11, 12, 13)]))
            quorum.append(*(controller(number) for number in numbers))

            def then(body: dict[str, Any]) -> None:
                for replica in body["topics"][0]["partitions"][0]["currentVoters"]:
                    late = 60_000 if replica["replicaId"] == numbers[1] else 0
                    replica |= {"lastFetchTimestamp": 1_000_000 - late, "lastCaughtUpTimestamp": 1_000_000 - late}

            quorum.on("DescribeQuorum", faults.change(then))
            code, told = self.asked(live(quorum))
            assert (code, told["voters"]["fulfilled"]) == (1, False)
            assert told["voters"]["nextStep"] == f"start the controllers {numbers[1]}"


class TestWatch:
    def test_is_watch_with_the_same_options(self) -> None:
        """An election between two runs is seen; the format is the line's own."""
        with Quorum(controllers=2) as quorum:
            session = live(quorum)
            watched = run(session, "quorum --watch -n 0.1 -o json")
            assert isinstance(watched, Frames)
            assert watched.every == 0.1
            parts = iter(watched.parts)
            for leader in (1, 2):
                quorum.elect(leader)
                quorum.commit()
                part = next(parts)
                assert part.call is not None and part.call.shape.output == "json"
                assert isinstance(part.result, Report)
                body = part.result.sections[0].body
                assert isinstance(body, dict)
                assert body["leaderId"] == leader

    def test_the_interval_is_for_watching(self, sample: Session) -> None:
        with pytest.raises(UsageError):
            run(sample, "quorum -n 1")


def test_a_release_that_nobody_told_is_not_taken_for_a_new_one() -> None:
    """Controllers register from 3.7 on: of a 3.3 cluster's, the log does not say what runs."""
    found = {
        row["requirement"]: row for row in rows(opened(FIXTURES / "3.3.2/controller-3000"), "quorum --can-upgrade")
    }
    assert found["software"]["fulfilled"] is None and "is not known" in found["software"]["evidence"]
