"""The tables: against the tree, on every recorded directory, and what is special about each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.formats import FORMATS
from kshell.engine.session import Session
from kshell.errors import SourceError
from kshell.metadata.image import Image
from kshell.metadata.names import encode_name
from kshell.metadata.partial import MISSING
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables.declaration import Table, Type, columns, tables, type_text, where_type
from kshell.tables.where_kinds import kind_of
from kshell.tree.node import Leaf
from kshell.tree.paths import split
from tests import builders
from tests.builders import FIXTURES, node_name, recorded, uuid, value
from tests.commands import cluster
from tests.commands.shell import lines, opened, rows, run
from tests.live import oneshot
from tests.server import Quorum, settings

INTERFACE = {
    "topics": "name topicId partitions replicationFactor underReplicated offline configs",
    "partitions": "topic topicId partition leader leaderEpoch partitionEpoch replicas isr elr lastKnownElr"
    " addingReplicas removingReplicas state",
    "brokers": "id epoch fenced inControlledShutdown rack listeners",
    "controllers": "id listeners isLeader",
    "configs": "resourceType resourceName name value source isSensitive isReadOnly synonyms type documentation",
    "acls": "id resourceType resourceName patternType principal host operation permissionType",
}
"""The binding columns."""
ALL = list(tables().values())


@pytest.mark.parametrize("table", ALL, ids=lambda one: one.name)
class TestEachTable:
    def test_is_declared_in_full(self, table: Table) -> None:
        names = [field.name for field in table.fields]
        assert len(names) == len(set(names))
        assert all(field.doc and not field.doc.endswith(".") for field in table.fields)
        binding = INTERFACE.get(table.name, "").split()
        assert names[: len(binding)] == binding
        for field in table.fields:
            assert type_text(field.type)
            assert kind_of(where_type(field.type))

    @pytest.mark.parametrize("node", recorded(), ids=node_name)
    def test_rows_are_of_the_declared_types(self, table: Table, node: Path) -> None:
        session = opened(node / METADATA_DIRECTORY)
        names = {field.name for field in table.fields}
        for row in table.rows(session, session.image, None):
            assert set(row) <= names
            for field in table.fields:
                assert fits(row.get(field.name), field.type), (field.name, row.get(field.name))


def fits(found: Any, declared: Type) -> bool:
    if found is None:
        return True
    if isinstance(declared, str):
        wanted = {"string": str, "boolean": bool, "float64": float}.get(declared, int)
        if declared.startswith("int"):
            bits = int(declared[3:]) - 1
            return type(found) is int and -(2**bits) <= found < 2**bits
        return type(found) is wanted
    if isinstance(declared, Mapping):
        inner = declared.get("*")
        if inner is not None:
            return isinstance(found, dict) and all(fits(item, inner) for item in found.values())
        return isinstance(found, dict) and all(fits(found[name], below) for name, below in declared.items())
    return isinstance(found, list) and all(fits(item, declared[0]) for item in found)


def test_wide_columns_are_the_tables() -> None:
    topics = tables()["topics"]
    shown = columns(topics.fields)
    assert [column.name for column in shown if column.wide] == ["minIsr", "underMinIsr", "reassigning"]
    assert [column.name for column in shown if column.spare > 0] == [
        "topicId", "partitions", "replicationFactor", "configs",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["topics", "partitions", "brokers --load", "skew", "skew --rack", "features", "users"])
def test_text_fits_a_narrow_terminal_and_cuts_nothing(sample: Session, line: str) -> None:
    shown = lines(sample, line, width=80)
    assert max(map(len, shown)) <= 80
    assert "…" not in "".join(shown)


def test_reassignments_are_shown_to_whom_asks_for_them(sample: Session) -> None:
    assert "addingReplicas" in lines(sample, "partitions --reassigning", width=80)[0]
    assert "addingReplicas" not in lines(sample, "partitions", width=80)[0]


def test_who_can_lead_an_offline_partition_is_seen_beside_a_long_name() -> None:
    session = opened(FIXTURES / "4.3.1" / "broker-0")
    for width in (60, 80):
        assert {"replicas", "elr"} <= set(lines(session, "partitions --offline", width=width)[0].split()), width
    assert "elr" not in lines(session, "partitions", width=80)[0].split(), "else this shows nothing"


def test_a_narrow_terminal_leaves_out_what_can_be_spared_the_last_first(sample: Session) -> None:
    def names(width: int | None) -> list[str]:
        return lines(sample, "partitions --limit 1", width=width)[0].split()

    assert lines(sample, "partitions --limit 1", width=60)[-1] == "1 row, 4 of 17 columns: -o wide shows all"
    assert names(60) == ["topic", "partition", "leader", "state"]

    whole = [column.name for column in columns(tables()["partitions"].fields) if not column.wide]
    assert names(None) == whole
    behind = {column.name for column in columns(tables()["partitions"].fields) if column.spare >= 3}
    assert names(300) == sorted(whole, key=lambda name: name in behind)
    assert names(120) == [name for name in names(300) if name in names(120)] != names(300)
    assert "leaderEpoch" in names(120) and "topicId" not in names(120)
    assert {column.name for column in columns(tables()["partitions"].fields) if column.spare < 3} >= {*names(80)}
    assert lines(sample, "partitions --limit 1 --columns topicId,topic", width=20)[0].startswith("topicId")


@pytest.mark.parametrize("node", recorded(), ids=node_name)
class TestAgainstTheTree:
    """The leaves of the tree were compared with Kafka's own shell: the rows must say the same."""

    def test_partitions(self, node: Path) -> None:
        session = opened(node / METADATA_DIRECTORY)
        found = rows(session, "partitions")
        keys = "leader leaderEpoch partitionEpoch replicas isr elr lastKnownElr addingReplicas removingReplicas".split()
        for row in found:
            leaf = at(session, f"/image/topics/byId/{row['topicId']}/{row['partition']}")
            assert {name: row[name] for name in (*keys, "directories", "leaderRecoveryState")} == leaf
            assert at(session, f"/image/topics/byId/{row['topicId']}/name") == row["topic"]
        count = len(rows(session, "find /image/topics/byId -type partition"))
        assert len(found) == len({(row["topic"], row["partition"]) for row in found}) == count

    def test_topics_count_what_partitions_say(self, node: Path) -> None:
        session = opened(node / METADATA_DIRECTORY)
        partitions = rows(session, "partitions")
        total = Counter(row["topic"] for row in partitions)
        offline = Counter(row["topic"] for row in partitions if row["leader"] == -1)
        behind = Counter(
            row["topic"] for row in partitions if len(row["isr"]) < len(row["replicas"]) - len(row["addingReplicas"])
        )
        below = Counter(row["topic"] for row in partitions if "under-min-isr" in row["problems"])
        found = rows(session, "topics")
        assert {row["name"]: row["partitions"] for row in found} == total
        for row in found:
            name = row["name"]
            assert (row["offline"], row["underReplicated"], row["underMinIsr"]) == (
                offline[name], behind[name], below[name],
            )  # fmt: skip
        assert rows(session, "topics --columns name,partitions") == [
            {"name": row["name"], "partitions": row["partitions"]} for row in found
        ]

    def test_the_rest_are_leaves(self, node: Path) -> None:
        session = opened(node / METADATA_DIRECTORY)
        for row in rows(session, "acls"):
            assert {"id": row["id"], **at(session, f"/image/acls/byId/{row['id']}")} == row
        for row in rows(session, "users"):
            leaf = at(session, f"/image/scram/{row['mechanism']}/{encode_name(row['name'])}")
            assert leaf["iterations"] == row["iterations"]
        for row in rows(session, "quotas"):
            assert at(session, f"/image/clientQuotas/{row['name']}/{encode_name(row['key'])}") == row["value"]
        for row in rows(session, "tokens"):
            assert at(session, f"/image/delegationToken/{encode_name(row['tokenId'])}") == row
        counts = {"acls": "acl", "users": "scram", "quotas": "quota", "tokens": "delegationToken"}
        for command, kind in counts.items():
            assert len(rows(session, command)) == len(rows(session, f"find /image -type {kind}")), command


def at(session: Session, path: str) -> Any:
    _, leaf = session.node(path)
    assert isinstance(leaf, Leaf), split(path)
    shown = leaf.value()
    return shown


class TestPartitions:
    @pytest.fixture
    def trouble(self, tmp_path: Path) -> Session:
        """A topic of every trouble, one of none; min.insync.replicas is 2 for all but one."""
        return cluster.cluster(
            tmp_path,
            *(cluster.broker(number) for number in (1, 2, 3)),
            cluster.config(cluster.BROKER, "", "min.insync.replicas", "2"),
            cluster.config(cluster.BROKER, "3", "min.insync.replicas", "3"),
            cluster.topic(1, "t"),
            cluster.partition(1, 0, [1, 2, 3], [1, 2, 3], 1),
            cluster.partition(1, 1, [1, 2, 3], [1, 2], 1),
            cluster.partition(1, 2, [1, 2, 3], [1], 1),
            cluster.partition(1, 3, [1, 2, 3], [2], -1),
            cluster.partition(1, 4, [1, 2, 3], [1, 2, 3], 2),
            cluster.partition(1, 5, [1, 2, 3], [1, 2], 1, addingReplicas=[3]),
            cluster.partition(1, 6, [1, 2, 3], [1, 2, 3], 1, leaderRecoveryState=1),
            cluster.partition(1, 7, [3, 1, 2], [3, 1], 3),
        )

    @pytest.mark.parametrize(
        ("flags", "expected"),
        [
            ("", [0, 1, 2, 3, 4, 5, 6, 7]),
            ("--offline", [3]),
            ("--under-min-isr", [2, 3, 7]),
            ("--at-min-isr", [1, 5]),
            ("--under-replicated", [1, 2, 3, 7]),
            ("--non-preferred", [4]),
            ("--reassigning", [5]),
            ("--unclean", [6]),
            ("--offline --unclean", [3, 6]),
            ("--under-replicated --where 'leader == 1'", [1, 2]),
            ("--at-min-isr --min-isr-default 3", [1, 5]),
        ],
    )
    def test_flags(self, trouble: Session, flags: str, expected: list[int]) -> None:
        assert [row["partition"] for row in rows(trouble, f"partitions {flags}")] == expected

    def test_states(self, trouble: Session) -> None:
        found = {row["partition"]: row["state"] for row in rows(trouble, "partitions")}
        assert found == {
            0: "online", 1: "under-replicated", 2: "under-min-isr", 3: "offline", 4: "online", 5: "online",
            6: "online", 7: "under-min-isr",
        }  # fmt: skip

    def test_what_only_the_brokers_files_say_is_unknown_or_given(self, tmp_path: Path) -> None:
        session = cluster.cluster(tmp_path, cluster.topic(1, "t"), cluster.partition(1, 0, [1, 2], [1], 1))
        assert rows(session, "partitions --under-min-isr") == []
        assert "--min-isr-default" in session.remarks[0]
        assert "1 topic " in session.remarks[0]
        assert rows(session, "partitions")[0]["minIsr"] is None
        assert session.remarks == []
        (row,) = rows(session, "partitions --under-min-isr --min-isr-default 2")
        assert (row["minIsr"], row["state"], session.remarks) == (2, "under-min-isr", [])

    def test_a_partition_that_cannot_be_read_is_a_row(self, tmp_path: Path) -> None:
        raw = value("PARTITION", 1, partitionId=1, topicId=uuid(1), replicas=[1], isr=[1], removingReplicas=[],
                    addingReplicas=[], leader=1, leaderEpoch=0, partitionEpoch=0,
                    directories=[uuid(1), uuid(2)])  # fmt: skip
        place = tmp_path / METADATA_DIRECTORY
        values = [cluster.topic(1, "t"), cluster.partition(1, 0, [1], [1], 1), raw]
        builders.write_snapshot(place, builders.snapshot(values), end_offset=9)
        session = opened(place)
        found = rows(session, "partitions")
        assert [(row["partition"], row["state"]) for row in found] == [(0, "online"), (1, "undecoded")]
        assert json.loads("".join(render(run(session, "partitions"), "json")))[1]["leader"] is None
        assert rows(session, "topics")[0]["partitions"] == 2
        assert rows(session, "partitions --offline") == []


class TestTopics:
    def test_secrets_among_configs_are_hidden(self, tmp_path: Path) -> None:
        session = cluster.cluster(
            tmp_path, cluster.topic(1, "t"), cluster.config(cluster.TOPIC, "t", "made.up", "s3cret"),
            cluster.config(cluster.TOPIC, "t", "retention.ms", "1"),
        )  # fmt: skip
        assert rows(session, "topics")[0]["configs"] == {"made.up": "[redacted]", "retention.ms": "1"}
        assert rows(session, "topics --show-secrets")[0]["configs"]["made.up"] == "s3cret"

    def test_names_sort_as_the_tree_sorts_them(self, tmp_path: Path) -> None:
        session = cluster.cluster(tmp_path, *(cluster.topic(at, name) for at, name in enumerate("b 10 9 a".split(), 1)))
        assert [row["name"] for row in rows(session, "topics")] == ["9", "10", "a", "b"]
        assert rows(session, "topics")[0]["replicationFactor"] is None


class TestQuotas:
    NAMES = (None, "<default>", "%3Cdefault>", "%253Cdefault>", "%3cdefault>", "50%", "a/b", "")
    SHOWN = ("<default>", "%3Cdefault>", "%253Cdefault>", "%25253Cdefault>", "%3cdefault>", "50%", "a/b", "")

    @pytest.fixture(params=["user", "client-id", "ip"])
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def limits(self, tmp_path: Path, kind: str) -> Session:
        """One limit for each name: its number."""
        records = [
            value(
                "CLIENT_QUOTA",
                entity=[{"entityType": kind, "entityName": name}],
                key="producer_byte_rate",
                value=float(number),
                remove=False,
            )
            for number, name in enumerate(self.NAMES)
        ]
        return cluster.cluster(tmp_path, *records)

    def test_the_default_never_reads_like_a_name(self, limits: Session, kind: str) -> None:
        column = {"client-id": "clientId"}.get(kind, kind)
        by_value = {row["value"]: row for row in rows(limits, "quotas")}
        assert tuple(by_value[number][column] for number in range(len(self.NAMES))) == self.SHOWN
        assert [by_value[number]["entity"][kind] for number in range(len(self.NAMES))] == list(self.NAMES)

    @pytest.mark.parametrize("output", FORMATS)
    def test_in_no_format(self, limits: Session, kind: str, output: str) -> None:
        column = {"client-id": "clientId"}.get(kind, kind)
        whole = "".join(render(run(limits, f"quotas --columns {column},value --sort value"), output))
        printed = {
            "".join(render(run(limits, f"quotas --columns {column} --where 'value == {number}'"), output))
            for number in range(len(self.NAMES))
        }
        assert len(printed) == len(self.NAMES)
        assert "3Cdefault" in whole

    def test_conditions_and_paths(self, limits: Session, kind: str) -> None:
        column = {"client-id": "clientId"}.get(kind, kind)
        for number, shown in enumerate(self.SHOWN):
            assert [row["value"] for row in rows(limits, f"quotas --where \"{column} == '{shown}'\"")] == [number]
        paths = [row["name"] for row in rows(limits, "quotas")]
        assert len(set(paths)) == len(self.NAMES)


class TestBrokers:
    def test_load_counts_partitions(self, sample: Session) -> None:
        partitions = rows(sample, "partitions")
        for row in rows(sample, "brokers --load"):
            one = row["id"]
            assert row["leaders"] == sum(part["leader"] == one for part in partitions)
            assert row["replicas"] == sum(one in part["replicas"] for part in partitions)
            assert row["preferredLeaders"] == sum(part["replicas"][0] == one for part in partitions)
            assert row["outOfSync"] == sum(one in part["replicas"] and one not in part["isr"] for part in partitions)

    def test_load_is_only_there_when_it_is_asked_for(self, sample: Session) -> None:
        found = json.loads("".join(render(run(sample, "brokers"), "json")))
        assert "leaders" not in found[0]


class TestAcls:
    def test_principal_also_gives_what_counts_for_everybody(self, sample: Session) -> None:
        assert {row["principal"] for row in rows(sample, "acls --principal User:intern")} == {"User:intern", "User:*"}
        assert len(rows(sample, "acls")) == 9


class TestNotTold:
    def test_a_table_that_the_source_does_not_tell_is_no_empty_table(self, sample: Session) -> None:
        session = Session(sample.source)
        missing = {("acls",): "not available from brokers: DescribeAcls: refused"}
        image = Image({**sample.image.tables, MISSING: missing}, sample.image.provenance)
        session.__dict__["loaded"] = sample.loaded._replace(image=image)
        with pytest.raises(SourceError) as raised:
            run(session, "acls")
        assert "DescribeAcls: refused" in raised.value.message
        assert rows(session, "quotas")


class TestBrokersAsASource:
    """What brokers (-b) tell: each command asks for its own part, several tables for all of it once."""

    def test_a_command_asks_only_what_it_needs(self) -> None:
        with Quorum(brokers=1) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            assert rows(session, "acls") == []
            assert quorum.asked_for("DescribeAcls")
            assert not quorum.asked_for("DescribeTopicPartitions")
            assert rows(session, "topics") == rows(session, "partitions") == []
            assert quorum.asked_for("DescribeTopicPartitions")
            assert not quorum.asked_for("DescribeClientQuotas")

    def test_an_export_asks_once(self, tmp_path: Path) -> None:
        with Quorum(brokers=1) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            told = {row["table"]: row["rows"] for row in rows(session, f"export --format jsonl {tmp_path}/out")}
            assert len(quorum.asked_for("DescribeAcls")) == 1
        assert told["brokers"] == 1
        assert json.loads((tmp_path / "out" / "brokers.jsonl").read_text())["epoch"] is None
        assert json.loads((tmp_path / "out" / "provenance.jsonl").read_text())["offset"] is None


@pytest.mark.parametrize(("line", "seen"), [("partitions --under-min-isr", True), ("partitions --at-min-isr", True),
                                            ("partitions --offline", False)])  # fmt: skip
def test_the_minimum_is_seen_where_it_is_asked_for(sample: Session, line: str, seen: bool) -> None:
    assert ("minIsr" in lines(sample, line, width=80)[0].split()) == seen


class TestWhatNobodyCanTell:
    """Without min.insync.replicas in the log no partition is known to be above it: no row is no good news."""

    DIRECTORY = FIXTURES / "3.9.2" / "controller-3001"

    @pytest.mark.parametrize(
        ("more", "code"),
        [("", 3), ("--min-isr-default 1", 0), ("--min-isr-default 2", 1), ("--sort topic", 3)],
    )
    def test_of_an_alert(self, more: str, code: int) -> None:
        line = f"partitions --under-min-isr --fail-if-any {more} --as-of 100"
        for printed in ("", "-o jsonl", "-o csv"):
            done = oneshot.run(("-d", str(self.DIRECTORY)), *f"{line} {printed}".split())
            assert done.returncode == code, (line, printed, done.stderr)

    @pytest.mark.parametrize(
        ("condition", "more", "code"),
        [("underMinIsr > 0", (), 3), ("underMinIsr > 0", ("--min-isr-default", "1"), 0),
         ("underMinIsr > 0", ("--min-isr-default", "2"), 1), ("offline > 0", (), 0)],
    )  # fmt: skip
    def test_of_an_alert_on_topics(self, condition: str, more: tuple[str, ...], code: int) -> None:
        line = ("topics", "--where", condition, "--fail-if-any", "--as-of", "100", *more)
        done = oneshot.run(("-d", str(self.DIRECTORY)), *line)
        assert done.returncode == code, done.stderr
        assert ("min.insync.replicas" in done.stderr) is (code == 3)

    @pytest.mark.parametrize(
        ("condition", "more", "code"),
        [("state == under-min-isr", (), 3), ("state == under-replicated", (), 3), ("state != online", (), 3),
         ("under-min-isr in problems", (), 3), ("len(problems) > 0", (), 3), ("minIsr > 1", (), 3),
         ("state == under-min-isr", ("--min-isr-default", "1"), 0),
         ("state == under-min-isr", ("--min-isr-default", "2"), 1),
         ("state == offline", (), 0), ("offline in problems", (), 0), ("reassigning in problems", (), 0),
         ("leader == -1", (), 0)],
    )  # fmt: skip
    def test_of_an_alert_on_partitions(self, condition: str, more: tuple[str, ...], code: int) -> None:
        line = ("partitions", "--where", condition, "--fail-if-any", "--as-of", "100", *more)
        done = oneshot.run(("-d", str(self.DIRECTORY)), *line)
        assert done.returncode == code, done.stderr
        assert ("min.insync.replicas" in done.stderr) is (code == 3)

    def test_a_row_is_an_answer(self) -> None:
        done = oneshot.run(("-d", str(self.DIRECTORY)), "partitions", "--under-min-isr", "--fail-if-any")
        assert done.returncode == 1
        done = oneshot.run(("-d", str(self.DIRECTORY)), "partitions", "--offline", "--fail-if-any", "--as-of", "100")
        assert done.returncode == 0, "being offline does not depend on it"


def test_what_an_acl_is_limited_to_is_seen_at_every_width(sample: Session) -> None:
    for width in (60, 80, 100, 200):
        printed = "\n".join(lines(sample, "acls", width=width))
        assert ("PREFIXED" in printed, "10.20.0.7" in printed) == (True, True), width
    narrow = lines(sample, "acls", width=80)
    assert narrow[narrow.index("  host  10.20.0.7") - 1].startswith("GROUP"), "below its row"
    assert "LITERAL" not in "".join(narrow)
