"""``kshell.open`` and what it gives."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kshell
from kshell.errors import DeadlineError, KshellError, NoSuchPathError, SourceNotFoundError, UsageError
from tests.builders import damaged_log

DIRECTORY = str(Path(__file__).parents[1] / "kshell/demo")


def test_a_result_is_rows_and_json() -> None:
    with kshell.open(DIRECTORY) as session:
        result = session.run("find /image/cluster/brokers -type broker --values")
        assert [row["value"]["id"] for row in result.rows] == [1, 2, 3]
        assert len(result) == 3
        assert [row["path"] for row in result] == [f"/image/cluster/brokers/{n}" for n in (1, 2, 3)]
        assert '"epoch": 14' in result.to_json()
        assert result.to_dict() == result.rows
        assert result.exit_code == 0


def test_a_value_is_an_object() -> None:
    session = kshell.open(DIRECTORY)
    leaf = session.run("cat /image/cluster/brokers/3")
    assert leaf.to_dict()["fenced"] is True
    assert leaf.rows == [leaf.to_dict()]
    assert "fenced" in str(leaf)
    assert "<" in str(leaf._repr_html_()) and "|" in str(leaf._repr_markdown_())


def test_the_working_directory_stays() -> None:
    session = kshell.open(DIRECTORY)
    session.run("cd /image/features")
    assert session.run("pwd").to_dict() == "/image/features"
    assert session.run("cat metadataVersion").to_dict() == "4.3-IV0"


def test_points_in_time() -> None:
    session = kshell.open(DIRECTORY)
    path = "cat /image/topics/byName/legacy-import/0"
    assert session.run(path).to_dict()["leader"] == -1
    assert session.at(160).run(path).to_dict()["leader"] == 3
    assert kshell.open(DIRECTORY, as_of=160).run(path).to_dict()["leader"] == 3
    assert session.image.provenance.offset == 206


def test_secrets_only_on_demand() -> None:
    path = "cat /image/scram/SCRAM-SHA-256/alice"
    assert kshell.open(DIRECTORY).run(path).to_dict()["salt"] == "[redacted]"
    assert kshell.open(DIRECTORY, show_secrets=True).run(path).to_dict()["salt"] != "[redacted]"


def test_the_environment_names_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSHELL_DIRECTORY", DIRECTORY)
    assert kshell.open().run("pwd").to_dict() == "/"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("ls | wc", UsageError),
        ("ls > x", UsageError),
        ("", UsageError),
        ("cat /nope", KshellError),
        ("exit 3", UsageError),
        ("quit", UsageError),
        ("pwd; ls", UsageError),
        ("pwd && ls", UsageError),
    ],
)
def test_wrong_lines(line: str, error: type[KshellError]) -> None:
    with pytest.raises(error):
        kshell.open(DIRECTORY).run(line)


def test_a_wrong_directory() -> None:
    with pytest.raises(SourceNotFoundError):
        kshell.open("/nowhere/at/all")


def test_every_public_name_is_there() -> None:
    assert all(hasattr(kshell, name) for name in kshell.__all__)
    with pytest.raises(AttributeError):
        kshell.nothing  # noqa: B018


def test_importing_the_package_imports_little() -> None:
    import subprocess

    code = "import sys, kshell; print(sorted(m for m in sys.modules if m.startswith('kshell')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kshell', 'kshell.version']"


def test_the_remarks_of_a_command_are_not_those_of_the_next() -> None:
    """``pwd`` reads nothing, so it has nothing to remark on, whatever ran before it."""
    session = kshell.open(DIRECTORY)
    remarks = [note for note in session.run("configs --effective").notes if "needs -q or -b" in note]
    assert remarks
    assert remarks[0] not in session.run("pwd").notes


class TestCommandsAsMethods:
    def test_a_table_with_options(self) -> None:
        with kshell.open(demo=True) as session:
            assert session.topics(where="partitions > 4", columns=["name", "partitions"]).rows == (
                session.run("topics --where 'partitions > 4' --columns name,partitions").rows
            )
            assert session.partitions(offline=True).rows == session.run("partitions --offline").rows
            assert session.plan_restore().rows == session.run("plan-restore").rows
            assert session.status(as_of=100).to_dict()["cluster"]["offset"] == 100
            assert len(session.dump(type=["TOPIC_RECORD", "CONFIG_RECORD"]).rows) == (
                len(session.run("dump --type TOPIC_RECORD --type CONFIG_RECORD").rows)
            )

    def test_words_need_no_quotes(self) -> None:
        with kshell.open(demo=True) as session:
            asked = session.run("can", "User:alice", "READ", "TOPIC:a topic with 'blanks' and $signs")
            assert asked.to_dict()["resource"] == "TOPIC:a topic with 'blanks' and $signs"
            line = "can User:alice READ TOPIC:orders"
            assert session.can("User:alice", "READ", "TOPIC:orders").to_dict() == session.run(line).to_dict()
            assert session.ls("/image/topics").rows == session.run("ls /image/topics").rows

    def test_a_path_is_no_glob(self) -> None:
        with kshell.open(demo=True) as session:
            assert len(session.run("ls /image/topics/byName/*").rows) > 1
            with pytest.raises(NoSuchPathError, match=r"byName/\*: no such path"):
                session.run("ls", "/image/topics/byName/*")
            with pytest.raises(NoSuchPathError, match=r"byName/\{orders,clicks\}: no such path"):
                session.ls("/image/topics/byName/{orders,clicks}")

    def test_what_would_not_end(self) -> None:
        with kshell.open(demo=True) as session:
            with pytest.raises(DeadlineError, match=r"gave up after 0\.5 s"):
                session.follow(timeout=0.5)
            with pytest.raises(UsageError, match="would never end"):
                session.watch("topics")
            assert session.watch("topics", times=2, interval=0.01).rows == session.topics().rows
            with pytest.raises(UsageError, match="main thread"), ThreadPoolExecutor(1) as pool:
                pool.submit(session.topics, timeout=5).result()

    def test_what_came_before_the_timeout_is_not_lost(self) -> None:
        with kshell.open(demo=True) as session:
            result = session.follow(since=0, noop=True, timeout=2)
            assert {row["offset"] for row in session.log().rows} <= {row["offset"] for row in result.rows}
            assert result.exit_code == 3

    def test_the_lines_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "lines").write_text("cd /image\npwd\n")
        with kshell.open(demo=True) as session:
            assert session.source(tmp_path / "lines").to_dict() == [None, "/image"]

    def test_what_is_no_command_and_no_option(self) -> None:
        with kshell.open(demo=True) as session:
            with pytest.raises(AttributeError, match="there is no command topicz"):
                session.topicz()
            with pytest.raises(UsageError, match="there is no option wher") as error:
                session.topics(wher="x")
            assert error.value.hint == "did you mean where?"

    def test_the_session_shows_itself_and_its_methods(self) -> None:
        with kshell.open(demo=True) as session:
            assert repr(session) == "<kshell session on demo: newest state; try .status(), .health()>"
            assert repr(session.at(100)) == "<kshell session on demo: as of offset 100; try .status(), .health()>"
            assert {"topics", "plan_restore", "run", "at"} <= set(dir(session))
            assert not hasattr(session, "_ipython_display_")

    def test_the_package_lists_what_is_public(self) -> None:
        assert {"open", "Session", "Result"} <= set(dir(kshell))
        with kshell.open(demo=True) as session:
            assert isinstance(session, kshell.Session)
            assert isinstance(session.pwd(), kshell.Result)


def test_problems_are_known_before_any_command(tmp_path: Path) -> None:
    damaged_log(tmp_path)
    assert any("CRC" in problem for problem in kshell.open(tmp_path).problems)
    assert not kshell.open(DIRECTORY).problems


def test_a_note_is_given_once() -> None:
    [note] = kshell.open(DIRECTORY).run("log --since 9999").notes
    assert note == "the log ends with offset 206, before --since (offset 9999)"


def test_a_directory_may_be_a_path() -> None:
    with kshell.open(Path(DIRECTORY)) as session:
        assert len(session.topics()) == len(kshell.open(DIRECTORY).topics())
