"""hash, verify and save on a running cluster of each release: one hash on every node at the same offset, whole files
behind every log, and a saved directory that Kafka's own tools read, with the image that Kafka has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import dumplog, jars, javashell, text
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, copy_node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until
from tests.live import oneshot, workload
from tests.live.test_random_directories import RELEASES

pytestmark = pytest.mark.live

IN_EVERY_RUN = ("3.3.2", "3.9.2", "4.4.0")
ROUNDS = 6
SAVES = 3
_WITH_SCRAM = (3, 5)
_DYNAMIC = (4, 1)
"""From here on the quorum's voters are in its log."""
_AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(version, marks=() if version in IN_EVERY_RUN else (pytest.mark.soak, pytest.mark.long))
        for version in sorted({*RELEASES, "3.4.1", "3.8.1"})
    ],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three controllers, after changes of every kind and snapshots in between."""
    version = request.param
    jars.require(jars.LATEST, version)
    props = [
        _AUTHORIZER,
        "super.users=User:ANONYMOUS",
        *small_files(version, snapshot_bytes=2000, segment_bytes=20_000),
    ]
    dynamic = numbers(version) >= _DYNAMIC
    with Cluster(version, controllers=3, brokers=1, dynamic=dynamic, props=props) as running:
        with running.admin() as admin:
            for number in range(ROUNDS):
                workload.change(admin, number, scram=numbers(version) >= _WITH_SCRAM)
        yield running


def answer(source: Path | tuple[str, ...], *words: str) -> dict[str, Any]:
    return json.loads("\n".join(oneshot.lines(source, *words, "-o", "json")))  # type: ignore[no-any-return]


def directories(cluster: Cluster) -> list[Path]:
    return [node.metadata for node in cluster.nodes]


def test_every_node_has_the_hash_of_the_quorum_at_the_same_offset(cluster: Cluster) -> None:
    live = answer(("-q", cluster.bootstrap_controllers), "hash")
    offset = live["offset"]

    def reached() -> bool:
        return all(answer(directory, "hash")["offset"] >= offset for directory in directories(cluster))

    wait_until(reached, "every node has the records", 30)
    found = [answer(directory, "hash", "--as-of", str(offset)) for directory in directories(cluster)]
    assert len(found) == 4
    assert {each["hash"] for each in found} == {live["hash"]}
    assert {each["offset"] for each in found} == {offset}
    again = oneshot.run(("-q", cluster.bootstrap_controllers), "hash", "--as-of", str(offset), "--expect", live["hash"])
    assert again.returncode == 0, again.stderr
    other = oneshot.run(directories(cluster)[0], "hash", "--as-of", str(offset // 2), "--expect", live["hash"])
    assert other.returncode == 1


def test_files_of_running_nodes_and_what_an_observer_fetched_are_whole(cluster: Cluster) -> None:
    sources: list[Path | tuple[str, ...]] = [*directories(cluster), ("-q", cluster.bootstrap_controllers)]
    replayed = []
    for source in sources:
        done = oneshot.run(source, "verify", "--deep", "-o", "json")
        checks = json.loads(done.stdout)
        told = [(each["file"], each["verdict"], each["firstBadByte"], each["reason"]) for each in checks]
        assert [each for each in told if each[1] not in oneshot.WELL] == [], source
        assert done.returncode == 0, done.stderr
        assert any(check["kind"] == "segment" and check["records"] for check in checks)
        snapshots = [check for check in checks if check["kind"] == "snapshot" and isinstance(source, Path)]
        replayed += [check for check in snapshots if "replay of the log gives the same values" in check["witness"]]
    assert replayed


def test_a_record_of_the_quorum_is_explained_as_the_nodes_file_has_it(cluster: Cluster) -> None:
    # The log of a node that was slow to start begins behind the snapshot that it fetched first.
    begins = [min(int(segment.stem) for segment in directory.glob("*.log")) for directory in directories(cluster)]
    words = ("explain", str(max(3, *begins)), "--record", "-o", "jsonl", "--columns", "hex,field,value")
    live = oneshot.lines(("-q", cluster.bootstrap_controllers), *words)
    assert live
    assert all(oneshot.lines(directory, *words) == live for directory in directories(cluster))


# --- save ------------------------------------------------------------------------------------------------------------


def test_what_is_saved_under_changes_is_what_kafka_has_and_its_tools_read_it(cluster: Cluster, tmp_path: Path) -> None:
    """At the offset at which a save ends, Kafka has the same image in it as in the directory of a controller."""
    live = ("-q", cluster.bootstrap_controllers)
    found = []
    with workload.changing(cluster.admin(), scram=numbers(cluster.version) >= _WITH_SCRAM, first=100) as work:
        for number in range(SAVES):
            rounds = work.rounds
            wait_until(lambda rounds=rounds: work.rounds > rounds, "nothing changes", 60)  # type: ignore[misc]
            found.append((tmp_path / f"saved-{number}", answer(live, "save", str(tmp_path / f"saved-{number}"))))
    last = max(facts["offset"] for _, facts in found)
    controller = cluster.controllers[0]
    wait_until(lambda: answer(controller.metadata, "hash")["offset"] >= last, "the controller has the records", 60)
    copy_node(controller, tmp_path / "controller")
    for saved, facts in found:
        offset = facts["offset"]
        assert answer(live, "hash", "--as-of", str(offset))["hash"] == facts["hash"]
        assert json.loads((saved / "manifest.json").read_text())["hash"] == facts["hash"]
        assert answer(saved, "hash", "--expect", facts["hash"])["offset"] == offset
        in_saved = text.read(expected_image(saved / METADATA))
        assert len(in_saved.leaves) > 20
        assert text.compare(in_saved, oneshot.lines(saved, *oneshot.FIND)) == []
        in_controller = text.read(expected_image(tmp_path / "controller" / METADATA, offset))
        assert (in_saved.leaves, in_saved.last_offset) == (in_controller.leaves, in_controller.last_offset)
    dump_is_read(saved)
    answer(tmp_path / "controller", "save", str(tmp_path / "with-snapshots"))
    dump_is_read(tmp_path / "with-snapshots")
    if cluster.version not in jars.WITHOUT_SHELL:
        shell_reads(cluster.version, tmp_path / "with-snapshots")


def dump_is_read(saved: Path) -> None:
    """kafka-dump-log has every record of the log and of the snapshots as our dump does."""
    log = sorted((saved / METADATA).glob("*.log"))
    snapshots = sorted((saved / METADATA).glob("*-*.checkpoint"))
    kafkas = dumplog.dump([*log, *snapshots])
    assert [row for file in log for row in kafkas[file]] == dumped(saved)
    for file in snapshots:
        assert kafkas[file] == dumped(file)


def dumped(source: Path) -> list[dumplog.Row]:
    return [json.loads(line) for line in oneshot.lines(source, "dump", "-o", "jsonl", "--show-secrets")]


def shell_reads(version: str, saved: Path) -> None:
    """kafka-metadata-shell of the release lists the topics of a saved snapshot that kshell lists. It reads snapshots
    only, and its answer may be empty: it does not always wait for what it loads.
    """
    newest = sorted((saved / METADATA).glob("*-*.checkpoint"))[-1]
    topics = {json.loads(line)["name"] for line in oneshot.lines(newest, "topics", "-o", "jsonl")}
    assert topics
    place = "/topics" if numbers(version) < (3, 5) else "/image/topics/byName"

    def listed() -> bool:
        return set(javashell.run(newest, "ls", place, version=version, timeout=300).output.split()) == topics

    wait_until(listed, f"kafka-metadata-shell {version} does not list {sorted(topics)}", 300)
