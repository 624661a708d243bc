"""A result beyond its rows: slices, pages, differences, other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import kshell
from kshell.engine import registry
from kshell.errors import UsageError
from kshell.result import Result
from kshell.result.difference import changes
from kshell.sources.choose import demo_directory
from tests.result.test_frames import LINES


@pytest.fixture(scope="module")
def session() -> kshell.api.Session:
    return kshell.open(demo_directory())


def test_it_is_a_list_of_rows(session: kshell.api.Session) -> None:
    topics = session.run("topics --columns name")
    assert topics[0] == {"name": "__transaction_state"}
    assert [row["name"] for row in topics[1:3]] == ["audit-log", "clicks"]
    assert len(topics) == len(list(topics)) == len(topics.rows)
    assert topics[-1] == topics.rows[-1]
    assert session.run("topics --limit 0")  # an empty answer is an answer


def test_rows_are_the_callers_own(session: kshell.api.Session) -> None:
    result = session.run("topics --columns name --limit 1")
    result.rows[0]["name"] = "changed"
    assert result[0]["name"] == "__transaction_state"


def test_a_tree_is_its_leaves(session: kshell.api.Session) -> None:
    tree = session.run("cat /image/topics/byName/orders")
    assert {"path", "value"} == set(tree[0])
    assert any(row["path"].endswith("/0") for row in tree)


def test_a_page_has_sections(session: kshell.api.Session) -> None:
    status = session.run("status")
    assert status.sections["cluster"].to_dict()["offset"] == 206
    assert status.sections["problems"][0]["level"] == "critical"
    assert session.run("topics").sections == {}


@pytest.mark.parametrize(
    "line", [*LINES, "status", "quorum", "health", "help", "man topics", "why orders-0", "info", "stat /"]
)
def test_another_process_gets_the_same(session: kshell.api.Session, line: str) -> None:
    result = session.run(line)
    twin = pickle.loads(pickle.dumps(result))
    assert twin.rows == result.rows
    assert twin.exit_code == result.exit_code
    assert str(twin) == str(result)
    assert twin._repr_html_() == result._repr_html_()
    assert twin._repr_markdown_() == result._repr_markdown_()


def test_a_pickle_is_read_where_no_source_is(session: kshell.api.Session, tmp_path: pytest.TempPathFactory) -> None:
    data = pickle.dumps(session.run("timeline legacy-import-0"))
    code = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)))"
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert int(done.stdout) == len(session.run("timeline legacy-import-0"))


def test_difference_of_rows(session: kshell.api.Session) -> None:
    old = session.at(100).run("topics --columns name,partitions")
    new = session.run("topics --columns name,partitions")
    found = old.diff(new)
    assert found.exit_code == 1
    names = {row["path"] for row in found if row["change"] == "added"}
    assert names == {row["name"] for row in new} - {row["name"] for row in old}
    assert new.diff(new).rows == [] and new.diff(new).exit_code == 0
    assert isinstance(found, Result)


def test_difference_says_which_fields(session: kshell.api.Session) -> None:
    path = "cat /image/topics/byName/legacy-import/0"
    found = session.at(160).run(path).diff(session.run(path))
    changed = {row["path"]: (row["old"]["value"], row["new"]["value"]) for row in found}
    assert changed["leader"] == (3, -1)
    line = "partitions --where 'topic == \"legacy-import\"'"
    (row,) = session.at(160).run(line).diff(session.run(line))
    assert row["change"] == "changed" and "leader" in row["fields"]
    assert row["path"].startswith("legacy-import ") and row["path"].endswith(" 0")


def test_a_key_is_as_short_as_tells_rows_apart() -> None:
    old = [{"topic": "a", "partition": 0, "leader": 1}, {"topic": "a", "partition": 1, "leader": 1}]
    new = [{"topic": "a", "partition": 0, "leader": 2}, {"topic": "b", "partition": 0, "leader": 1}]
    found = [(row["change"], row["path"], row["fields"]) for row in changes(old, new, ["topic", "partition", "leader"])]
    assert found == [("changed", "a 0", ["leader"]), ("added", "b 0", []), ("removed", "a 1", [])]


def test_what_describes_a_row_is_no_part_of_its_key(session: kshell.api.Session) -> None:
    quotas = session.sql("SELECT * FROM quotas")
    doubled = session.sql("SELECT * REPLACE (value * 2 AS value) FROM quotas")
    assert {(row["change"], tuple(row["fields"])) for row in quotas.diff(doubled)} == {("changed", ("value",))}
    listed = "ls -l /image/topics/byName"
    found = {(row["change"], row["path"]) for row in session.at(100).run(listed).diff(session.run(listed))}
    assert ("removed", "tmp-backfill") in found and ("added", "__transaction_state") in found
    before, after = (at.run("partitions --columns leader,topic,partition") for at in (session.at(100), session))
    assert {row["change"] for row in before.diff(after) if row["path"].startswith("clicks ")} == {"changed"}
    old = [{"feature": "metadata.version", "level": 14, "name": "3.6-IV2"}]
    new = [{"feature": "metadata.version", "level": 19, "name": "3.7-IV4"}]
    [(path, fields)] = [(row["path"], row["fields"]) for row in changes(old, new, ["feature", "level", "name"])]
    assert (path, fields) == ("metadata.version", ["level", "name"])


def test_rows_that_come_twice_are_counted() -> None:
    found = list(changes([{"a": 1}, {"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], ["a"]))
    assert sorted((row["change"], row["path"]) for row in found) == [
        ("added", '{"a": 3}'), ("removed", '{"a": 1}'), ("removed", '{"a": 2}'),
    ]  # fmt: skip


def test_what_cannot_be_compared(session: kshell.api.Session) -> None:
    with pytest.raises(UsageError, match="no column in common"):
        session.run("brokers --columns id").diff(session.run("topics --columns name"))
    with pytest.raises(UsageError, match="another result"):
        session.run("topics").diff([])  # type: ignore[arg-type]


def test_secrets_are_not_shown_by_themselves() -> None:
    shown = kshell.open(demo_directory(), show_secrets=True).run("cat /image/scram/SCRAM-SHA-256/alice")
    salt = shown.to_dict()["salt"]
    assert salt != "[redacted]"
    looks = [shown._repr_html_(), shown._repr_markdown_(), repr(shown)]
    assert not any(salt in str(look) for look in looks)


def test_words_are_lines(session: kshell.api.Session) -> None:
    assert session.run("pwd").diff(session.run("pwd")).rows == []
    assert all(name in str(session.run("help")) for name in registry.names())
