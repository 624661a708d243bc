"""diff by content: two clusters that were made by the same script are equal, and one change is named."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.sources.choose import NoSource
from tests.builders import FIXTURES, batch, control_batch, leader_change, uuid, value, write_log
from tests.commands.shell import lines, opened, rows, run

ACL: dict[str, Any] = {
    "resourceType": 2, "resourceName": "orders", "patternType": 3, "principal": "User:a", "host": "*", "operation": 3,
    "permissionType": 3,
}  # fmt: skip


def cluster(directory: Path, seed: int, *, acl: dict[str, Any] = ACL, more: tuple[bytes, ...] = ()) -> Path:
    """A cluster that a script made: all that Kafka makes up or counts depends on the seed, and nothing else."""
    rng = random.Random(seed)

    def new() -> Any:
        return uuid(rng.getrandbits(120))

    broker = rng.randrange(1000)
    listener = {"name": "PLAINTEXT", "host": f"host{seed}", "port": 9000 + seed, "securityProtocol": 0}
    feature = {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 25}
    topics = [new(), new()]
    log_dirs = [new(), new()]
    records = [
        value("FEATURE_LEVEL", name="metadata.version", featureLevel=25),
        value("REGISTER_BROKER", 3, brokerId=1, brokerEpoch=broker, incarnationId=new(), endPoints=[listener],
              features=[feature], fenced=False, logDirs=log_dirs),
        value("REGISTER_CONTROLLER", controllerId=3000, incarnationId=new(), zkMigrationReady=False,
              endPoints=[listener], features=[feature]),
        value("CONFIG", resourceType=2, resourceName="orders", name="retention.ms", value="7"),
        *(value("TOPIC", name=name, topicId=one) for name, one in zip(("orders", "pay"), topics, strict=True)),
        *(value("PARTITION", 1, topicId=one, partitionId=0, replicas=[1, 2], isr=rng.sample([1, 2], 2), leader=1,
                leaderEpoch=rng.randrange(9), partitionEpoch=rng.randrange(9), directories=log_dirs)
          for one in topics),
        *(value("ACCESS_CONTROL_ENTRY", id=new(), **one) for one in (acl, {**ACL, "principal": "User:b"},
                                                                   {**ACL, "principal": "User:b"})),
        value("USER_SCRAM_CREDENTIAL", name="a", mechanism=1, salt=rng.randbytes(9), storedKey=rng.randbytes(9),
              serverKey=rng.randbytes(9), iterations=4096),
        value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": "a"}], key="k", value=3.0, remove=False),
        value("DELEGATION_TOKEN", owner="User:a", requester="User:a", renewers=["User:b"], issueTimestamp=seed,
              maxTimestamp=seed + 9, expirationTimestamp=seed + 5, tokenId=str(new())),
        value("PRODUCER_IDS", brokerId=1, brokerEpoch=broker, nextProducerId=seed * 1000),
        *more,
    ]  # fmt: skip
    quiet = [value("NO_OP")] * rng.randrange(5)
    write_log(directory / "__cluster_metadata-0", control_batch([leader_change()]), batch(quiet + records, 1))
    (directory / "meta.properties").write_text(f"version=1\ncluster.id=cluster-{seed}\nnode.id=3000\n")
    return directory


def both(tmp_path: Path, **changed: Any) -> tuple[Session, str]:
    """A session on the first of two clusters, and the line that compares it with the second."""
    first, second = cluster(tmp_path / "a", 1), cluster(tmp_path / "b", 2, **changed)
    return opened(first / "__cluster_metadata-0"), f"diff {first} {second}"


def test_two_clusters_of_one_script_are_equal(tmp_path: Path) -> None:
    session, line = both(tmp_path)
    result = run(session, line)
    assert (rows(session, line), result.exit_code) == ([], 0)
    assert "two clusters, cluster-1 and cluster-2" in session.remarks[0]
    assert rows(session, f"{line} --stat") == []
    session.remarks.clear()
    run(session, f"{line} --by content")
    assert "salts and keys" in session.remarks[0]  # equal without them does not mean equal passwords


def test_by_id_compares_all(tmp_path: Path) -> None:
    session, line = both(tmp_path)
    kinds = {row["type"] for row in rows(session, f"{line} --by id")}
    assert kinds == {
        "acl", "broker", "controller", "delegationToken", "partition", "producerId", "provenance", "scram", "topicId",
        "topicName",
    }  # fmt: skip
    sides = f"removed (-): only in {tmp_path}/a, added (+): only in {tmp_path}/b"
    assert session.remarks == [sides]
    session.remarks.clear()
    run(session, f"{line} --by id --stat")
    assert session.remarks == [sides]


def test_the_acl_that_changed_is_named(tmp_path: Path) -> None:
    session, line = both(tmp_path, acl={**ACL, "operation": 4})
    changes = rows(session, line)
    assert [(row["change"], row["type"]) for row in changes] == [("removed", "acl"), ("added", "acl")]
    assert [(row["old"] or row["new"])["operation"] for row in changes] == ["READ", "WRITE"]
    assert run(session, line).exit_code == 1
    assert [line[0] for line in lines(session, line)] == ["-", "+"]


def test_an_acl_twice_is_not_the_same_as_once(tmp_path: Path) -> None:
    again = value("ACCESS_CONTROL_ENTRY", id=uuid(5), **ACL)
    session, line = both(tmp_path, more=(again,))
    (change,) = rows(session, line)
    assert (change["change"], change["new"]["principal"]) == ("added", "User:a")


@pytest.mark.parametrize(
    ("record", "path", "fields"),
    [
        (value("CONFIG", resourceType=2, resourceName="orders", name="retention.ms", value="8"),
         "/image/configs/TOPIC:orders/retention.ms", []),
        (value("TOPIC", name="new", topicId=uuid(9)), "/image/topics/byName/new/name", []),
        (value("FEATURE_LEVEL", name="metadata.version", featureLevel=24),
         "/image/features/metadataVersion", []),
        (value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": "a"}], key="k", value=4.0, remove=False),
         "/image/clientQuotas/user(a)/k", []),
        (value("USER_SCRAM_CREDENTIAL", name="a", mechanism=1, salt=b"1", storedKey=b"2", serverKey=b"3",
               iterations=8192), "/image/scram/SCRAM-SHA-256/a", ["iterations"]),
        (value("REMOVE_USER_SCRAM_CREDENTIAL", name="a", mechanism=1), "/image/scram/SCRAM-SHA-256/a", []),
    ],
    ids=["config", "topic", "feature", "quota", "user", "user removed"],
)  # fmt: skip
def test_what_counts(tmp_path: Path, record: bytes, path: str, fields: list[str]) -> None:
    session, line = both(tmp_path, more=(record,))
    changes = rows(session, line)
    assert [(row["path"], row["fields"]) for row in changes] == [(path, fields)]


def test_partitions_count_but_for_epochs(tmp_path: Path) -> None:
    first = tmp_path / "one.log"
    second = tmp_path / "two.log"
    for number, file in enumerate((first, second), 1):
        values = [
            value("TOPIC", name="t", topicId=uuid(number)),
            value("PARTITION", topicId=uuid(number), partitionId=0, replicas=[1, 2], isr=[1, 2][:number], leader=1,
                  leaderEpoch=number, partitionEpoch=number),
            value("PARTITION", topicId=uuid(number), partitionId=number, replicas=[1], isr=[1], leader=1),
        ]  # fmt: skip
        write_log(tmp_path / str(number), batch(values))
        (tmp_path / str(number) / f"{0:020d}.log").rename(file)
    session = opened(first)
    changes = rows(session, f"diff {first} {second} --by content")
    assert [(row["path"], row["change"], row["fields"]) for row in changes] == [
        ("/image/topics/byName/t/0", "changed", ["isr"]),
        ("/image/topics/byName/t/1", "removed", []),
        ("/image/topics/byName/t/2", "added", []),
    ]


def test_points_of_one_cluster_are_compared_by_id_unless_content_is_asked_for(sample: Session) -> None:
    assert any(row["type"] == "provenance" for row in rows(sample, "diff 160 now"))
    kinds = {row["type"] for row in rows(sample, "diff 160 now --by content")}
    assert not kinds & {"provenance", "topicId", "producerId"}


def test_within_one_cluster_addresses_and_passwords_are_content(tmp_path: Path) -> None:
    """Only what Kafka generates or counts is left out: nothing else there differs unless somebody changed it."""
    copies = {}
    for seed in (1, 2):
        listener = {"name": "PLAINTEXT", "host": f"host{seed}", "port": 9, "securityProtocol": 0}
        copies[seed] = cluster(
            tmp_path / str(seed), 1,
            more=(
                value("REGISTER_BROKER", 3, brokerId=2, brokerEpoch=seed, incarnationId=uuid(seed),
                      endPoints=[listener], features=[], fenced=False, logDirs=[uuid(seed)]),
                value("USER_SCRAM_CREDENTIAL", name="b", mechanism=1, salt=bytes([seed]), storedKey=bytes([seed]),
                      serverKey=bytes([seed]), iterations=4096),
                value("DELEGATION_TOKEN", owner="User:c", requester="User:c", renewers=[], issueTimestamp=1,
                      maxTimestamp=9, expirationTimestamp=seed, tokenId="t"),
            ),
        )  # fmt: skip
    session = Session(NoSource())
    line = f"diff {copies[1]} {copies[2]} --by content"
    assert [(row["type"], row["fields"]) for row in rows(session, line)] == [
        ("broker", ["listeners"]),
        ("delegationToken", ["expiryTimestamp"]),
        ("scram", ["salt", "storedKey", "serverKey"]),
    ]
    assert "addresses" not in session.remarks[0]
    printed = lines(session, line)
    assert "host1" in printed[0] and "host2" in printed[0]
    assert "salt [redacted] -> [redacted]" in printed[2]


def test_a_copy_of_the_same_cluster_is_compared_by_id() -> None:
    nodes = FIXTURES / "4.3.1"
    session = opened(nodes / "broker-0")
    changes = rows(session, f"diff {nodes / 'controller-3000'} {nodes / 'broker-0'}")
    assert any(row["type"] == "topicId" for row in changes)
    assert not any("cluster" in remark for remark in session.remarks)


@pytest.mark.parametrize("more", ["--json-patch", "/image/topics/byId"])
def test_what_is_about_ids_needs_them(sample: Session, more: str) -> None:
    line = f"diff 160 now {more}"
    with pytest.raises(UsageError, match="ids"):
        run(sample, f"{line} --by content")
    run(sample, f"{line} --by id")


def test_text_names_the_fields_that_count_and_no_others() -> None:
    """A broker that registered anew has another epoch and another incarnation, which content leaves out."""
    newer, older = (str(FIXTURES / release / "controller-3001") for release in ("4.3.1", "4.2.1-rolled"))
    session, line = Session(NoSource()), f"diff {newer} {older} --by content /image/cluster"
    told = rows(session, line)
    assert len(told) == 5
    for row, printed in zip(told, lines(session, line), strict=True):
        assert {part.split(".")[0].split()[0] for part in printed.partition(": ")[2].split(", ")} == set(row["fields"])


def test_text_has_nothing_of_what_does_not_count(tmp_path: Path) -> None:
    newer, older = (str(FIXTURES / release / "controller-3001") for release in ("4.3.1", "4.2.1-rolled"))
    session, line = Session(NoSource()), f"diff {newer} {older} --by content"
    printed = lines(session, line)
    assert not [text for text in printed if "partitionEpoch" in text or "directories=" in text or "leaderEpoch" in text]
    told = rows(session, line)
    added = next(row for row in told if row["type"] == "partition" and row["change"] == "added")
    assert "partitionEpoch" in added["new"], "the rows are whole"
    for sign, change in (("+", "added"), ("-", "removed")):
        names = {
            row["path"].removesuffix("/name") for row in told if row["type"] == "topicName" and row["change"] == change
        }
        partitions = Counter(
            row["path"].rpartition("/")[0] for row in told if row["type"] == "partition" and row["change"] == change
        )
        topics = [text.split() for text in printed if text.startswith(f"{sign} /image/topics/byName/")]
        assert {words[1]: words[2] for words in topics} == {name: f"partitions={partitions[name]}," for name in names}
        assert len(topics) == len(names) > 30


def test_a_topic_that_both_have_is_told_by_its_partitions(tmp_path: Path) -> None:
    more = value("PARTITION", 1, topicId=uuid(7), partitionId=1, replicas=[1], isr=[1], leader=1, leaderEpoch=0,
                 partitionEpoch=0, directories=[uuid(8)])  # fmt: skip
    first = cluster(tmp_path / "a", 1, more=(value("TOPIC", name="more", topicId=uuid(7)),))
    second = cluster(tmp_path / "b", 2, more=(value("TOPIC", name="more", topicId=uuid(7)), more))
    (told,) = lines(opened(first / "__cluster_metadata-0"), f"diff {first} {second}")
    assert told.startswith("+ /image/topics/byName/more/1 replicas=[1]")


def test_a_condition_chooses_changes_and_does_not_change_them(tmp_path: Path) -> None:
    gone = value("PARTITION", 1, topicId=uuid(7), partitionId=0, replicas=[1, 2], isr=[1], leader=1, leaderEpoch=0,
                 partitionEpoch=0, directories=[uuid(8), uuid(9)])  # fmt: skip
    first = cluster(tmp_path / "a", 1, more=(value("TOPIC", name="gone", topicId=uuid(7)), gone))
    session = opened(first / "__cluster_metadata-0")
    line = f"diff {first} {cluster(tmp_path / 'b', 2)}"
    whole = "- /image/topics/byName/gone partitions=1, replicationFactor=2"
    assert lines(session, line) == [whole]
    assert lines(session, f"{line} --where 'type in [topicName, partition]'") == [whole]
    assert lines(session, f"{line} --where 'type == topicName'") == ["- /image/topics/byName/gone/name gone"]
    (told,) = lines(session, f"{line} --where 'type == partition'")
    assert told.startswith("- /image/topics/byName/gone/0 replicas=[1,2], isr=[1]")


def test_what_is_redacted_on_both_sides_is_still_said_to_differ(tmp_path: Path) -> None:
    session, line = both(tmp_path)
    told = [text for text in lines(session, f"{line} --by id") if "/image/scram/" in text]
    secret = "[redacted] -> [redacted]"
    assert told == [f"~ /image/scram/SCRAM-SHA-256/a: salt {secret}, storedKey {secret}, serverKey {secret}"]
