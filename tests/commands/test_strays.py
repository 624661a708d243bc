"""``strays``: log directories against the image, in every form that they are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from tests.builders import uuid
from tests.commands import cluster
from tests.commands.shell import rows, run

ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """orders-0 on 1 and 2, orders-1 on 2 alone, a topic with dashes and digits in its name on 1."""
    return cluster.cluster(
        tmp_path / "source",
        cluster.broker(1), cluster.broker(2),
        cluster.topic(1, "orders"), cluster.topic(2, "a-1-b.2"),
        cluster.partition(1, 0, [1, 2], [1, 2], 1), cluster.partition(1, 1, [2], [2], 2),
        cluster.partition(2, 0, [1], [1], 1),
    )  # fmt: skip


def findings(session: Session, file: object, more: str = "") -> list[tuple[Any, ...]]:
    result = run(session, f"strays --log-dirs {file} {more}")
    found = [(row["broker"], row["topic"], row["partition"], row["finding"]) for row in result]  # type: ignore[attr-defined]
    assert result.exit_code == bool(found)
    return found


def log_dirs(*brokers: tuple[int, list[str], str | None]) -> str:
    told = {
        "version": 1,
        "brokers": [
            {
                "broker": broker,
                "logDirs": [
                    {
                        "logDir": "/data", "error": error,
                        "partitions": [
                            {"partition": name.rstrip("*"), "size": 5, "offsetLag": 0, "isFuture": name.endswith("*")}
                            for name in names
                        ],
                    }
                ],
            }
            for broker, names, error in brokers
        ],
    }  # fmt: skip
    return f"Querying brokers for log directories information\nReceived log directory …\n{json.dumps(told)}\n"


class TestToolOutput:
    def test_of_one_broker(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "out"
        file.write_text(log_dirs((1, ["old-0"], None), (2, ["orders-0", "orders-1", "older-0"], None)))
        assert findings(session, file, "--broker 2") == [(2, "older", 0, "unknown-topic")]
        with pytest.raises(CommandError, match="nothing about broker 3") as raised:
            run(session, f"strays --log-dirs {file} --broker 3")
        assert raised.value.hint == "it is about brokers 1 and 2"

    def test_clean(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "out"
        file.write_text(log_dirs((1, ["orders-0", "a-1-b.2-0"], None), (2, ["orders-0", "orders-1"], None)))
        assert findings(session, file) == []

    def test_findings(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "out"
        file.write_text(log_dirs((1, ["orders-0*", "orders-1", "orders-7", "gone-3", "a-1-b.2-0"], None)))
        assert findings(session, file) == [
            (1, "gone", 3, "unknown-topic"),
            (1, "orders", 0, "missing"),  # a future replica is not there yet
            (1, "orders", 1, "not-a-replica"),
            (1, "orders", 7, "no-such-partition"),
        ]
        found = {row["topic"]: row for row in rows(session, f"strays --log-dirs {file}")}
        assert (found["gone"]["size"], found["gone"]["logDir"], found["gone"]["replicas"]) == (5, "/data", None)

    def test_of_a_directory_that_failed_nothing_is_missing(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "out"
        file.write_text(
            log_dirs((1, [], "org.apache.kafka.common.errors.KafkaStorageException"), (2, ["orders-1"], None))
        )
        assert findings(session, file) == [(2, "orders", 0, "missing")]
        assert session.remarks[0].startswith("broker 1:")

    @pytest.mark.parametrize(
        "text", ['{"logDirs"', '{"x": 1, "logDirs": 3}', '{"brokers": [{"broker": "x", "logDirs": []}]}',
                 '{"brokers": [{"broker": 1, "logDirs": [{"logDir": "/", "partitions": [{"partition": "x"}]}]}]}']
    )  # fmt: skip
    def test_broken_output(self, session: Session, tmp_path: Path, text: str) -> None:
        file = tmp_path / "out"
        file.write_text(text)
        with pytest.raises(CommandError) as raised:
            run(session, f"strays --log-dirs {file}")
        assert "kafka-log-dirs.sh" in raised.value.message


LISTINGS = {
    "ls": "orders-0\norders-1\na-1-b.2-0\nmeta.properties\n__cluster_metadata-0\n",
    "ls -l": "total 8\ndrwxr-xr-x 2 k k 4096 Nov  1 10:00 orders-0\ndrwxr-xr-x. 2 k k 40 Nov  1 10:00 orders-1\n"
    "drwxr-xr-x 2 k k 4096 Nov  1 10:00 a-1-b.2-0\n-rw-r--r-- 1 k k 88 Nov  1 10:00 meta.properties\n",
    "ls -R": "/data:\nmeta.properties\norders-0\norders-1\na-1-b.2-0\n\n/data/orders-0:\n00000000000000000000.log\n",
    "find": "/data\n/data/orders-0\n/data/orders-0/00000000000000000000.log\n/data/orders-1/leader-epoch-checkpoint\n"
    "/data/a-1-b.2-0/00000000000000000007-0000000001.checkpoint\n/data/__cluster_metadata-0/00000000000000000000.log\n",
    "grep": "".join(
        f"/data/{name}/partition.metadata:topic_id: {uuid(number)}\n"
        for name, number in (("orders-0", 1), ("orders-1", 1), ("a-1-b.2-0", 2))
    ),
}


class TestListings:
    @pytest.mark.parametrize("kind", list(LISTINGS))
    def test_every_form_says_the_same(self, session: Session, tmp_path: Path, kind: str) -> None:
        file = tmp_path / "listing"
        file.write_text(LISTINGS[kind])
        assert findings(session, file, "--broker 1") == [(1, "orders", 1, "not-a-replica")]

    @pytest.mark.parametrize(
        "listing",
        [
            "/var/data-0\n/var/data-0/logs\n/var/data-0/logs/meta.properties\n/var/data-0/logs/ghost-3\n",
            "/mnt/kafka-1\n/mnt/kafka-1/meta.properties\n/mnt/kafka-1/ghost-3/odd.file\n",
            "/mnt/kafka-1\n/mnt/kafka-1/recovery-point-offset-checkpoint\n/mnt/kafka-1/ghost-3\n",
            "/mnt:\nkafka-1\n\n/mnt/kafka-1:\nghost-3\n__cluster_metadata-0\n\n/mnt/kafka-1/ghost-3:\nodd.file\n",
            "lrwxrwxrwx 1 k k 40 Nov  1 10:00 ghost-3 -> /elsewhere/other-9\n",
            "/mnt/d/:\nghost-3/\nmeta.properties\n\n/mnt/d//ghost-3:\n00000000000000000000.log\n",
            "/mnt/disk-4:\nlost+found\n\n/mnt/disk-5:\ntotal 0\n\n/mnt/d:\nghost-3\n",
        ],
    )
    def test_what_has_directories_in_it_is_no_partition(self, session: Session, tmp_path: Path, listing: str) -> None:
        """Somebody deletes what is called a stray: the log directory itself must never be."""
        file = tmp_path / "listing"
        file.write_text(listing)
        found = findings(session, file, "--broker 1 --where 'finding != missing'")
        assert found == [(1, "ghost", 3, "unknown-topic")]

    def test_states_of_directories(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "listing"
        file.write_text(f"orders-0.{ID}-delete\norders-1.{ID}-delete\norders-3.{ID}-stray\na-1-b.2-0.{ID}-future\n")
        assert findings(session, file, "--broker 1") == [
            (1, "a-1-b.2", 0, "missing"),
            (1, "orders", 0, "missing"),
            (1, "orders", 3, "set-aside"),
        ]

    def test_another_topic_of_the_same_name(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "listing"
        file.write_text(LISTINGS["grep"].replace(str(uuid(1)), str(uuid(77))) + LISTINGS["ls"])
        assert findings(session, file, "--broker 2 --where 'topic == orders'") == [
            (2, "orders", 0, "missing"), (2, "orders", 0, "other-topic-id"),
            (2, "orders", 1, "missing"), (2, "orders", 1, "other-topic-id"),
        ]  # fmt: skip

    def test_whose_it_is_must_be_said(self, session: Session, tmp_path: Path) -> None:
        file = tmp_path / "listing"
        file.write_text(LISTINGS["ls"])
        with pytest.raises(CommandError) as raised:
            run(session, f"strays --log-dirs {file}")
        assert "--broker" in (raised.value.hint or "")

    @pytest.mark.parametrize("text", ["", "nothing here\n", "a\x00b\n\xff"])
    def test_no_listing_at_all(self, session: Session, tmp_path: Path, text: str) -> None:
        file = tmp_path / "listing"
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(CommandError):
            run(session, f"strays --log-dirs {file} --broker 1")

    def test_files_that_are_not_there(self, session: Session, tmp_path: Path) -> None:
        with pytest.raises(CommandError):
            run(session, f"strays --log-dirs {tmp_path}/none --broker 1")
        with pytest.raises(UsageError):
            run(session, "strays")


class TestDirectory:
    def make(self, place: Path, **ids: int) -> Path:
        for name in ("orders-0", "orders-1", "__cluster_metadata-0"):
            (place / name).mkdir(parents=True)
        for name, number in ids.items():
            (place / f"{name}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid(number)}")
        (place / "orders-9").write_text("a file")
        return place

    def test_it_says_itself_whose_it_is(self, session: Session, tmp_path: Path) -> None:
        place = self.make(tmp_path / "data", orders=1)
        (place / "meta.properties").write_text("#\nversion=1\nnode.id=2\n")
        assert findings(session, place) == []

    def test_ids_are_compared(self, session: Session, tmp_path: Path) -> None:
        place = self.make(tmp_path / "data", orders=66)
        assert findings(session, place, "--broker 2") == [
            (2, "orders", 0, "missing"), (2, "orders", 0, "other-topic-id"),
        ]  # fmt: skip

    def test_one_that_does_not_say(self, session: Session, tmp_path: Path) -> None:
        with pytest.raises(CommandError) as raised:
            run(session, f"strays --log-dirs {self.make(tmp_path / 'data')}")
        assert "meta.properties" in raised.value.message
