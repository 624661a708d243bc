"""as-of and mark: the shell at other points in time, and names for them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kshell.engine.completion import complete
from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, CommandError, DataError, UsageError
from kshell.render import render
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from tests.builders import (
    FIXTURES,
    batch,
    control_batch,
    copy_of,
    leader_change,
    snapshot,
    timed_batch,
    uuid,
    write_log,
    write_snapshot,
)
from tests.builders import value as record
from tests.commands.shell import lines, opened, rows, run, sections, value

LEADER = "cat /image/topics/byName/legacy-import/0 -o json"


def config_of_a(text: str) -> bytes:
    return record("CONFIG", resourceType=2, resourceName="a", name="retention.ms", value=text)


def leader(session: Session) -> int:
    found: int = value(session, LEADER)["leader"]
    return found


@pytest.fixture(params=["one image", "all images"])
def shell(request: pytest.FixtureRequest, sample: Session) -> Session:
    """The sample as a one-shot has it, and as a shell has it."""
    if request.param == "all images":
        sample.travels()
    return sample


def test_every_later_command_sees_it(shell: Session) -> None:
    assert leader(shell) == -1
    run(shell, "as-of 160")
    assert (leader(shell), shell.image.provenance.offset, shell.until) == (3, 160, 160)
    assert rows(shell, "dump")[-1]["offset"] == 160
    assert leader(shell.reshape(show_secrets=True)) == 3
    run(shell, "as-of 161")
    assert shell.image.provenance.offset == 161
    run(shell, "as-of now")
    assert (leader(shell), shell.until) == (-1, None)


def test_one_command_at_a_point_leaves_the_shell_where_it_is(shell: Session) -> None:
    assert value(shell, f"{LEADER} --as-of 160")["leader"] == 3
    assert leader(shell) == -1
    run(shell, "as-of 160")
    assert value(shell, f"{LEADER} --as-of now")["leader"] == -1
    assert leader(shell) == 3


def test_options_do_not_take_the_journey_from_the_shell(shell: Session) -> None:
    run(shell, "as-of 160 --show-secrets")
    assert shell.until == 160 and not shell.redaction.show_secrets


def test_what_cannot_be_shown_leaves_the_shell_where_it_is(shell: Session) -> None:
    run(shell, "as-of 160")
    for point, error in (("the other day", UsageError), ("@nosuch", UsageError), ("2001-01-01", DataError)):
        with pytest.raises(error):
            run(shell, f"as-of {point}")
        assert leader(shell) == 3


def test_without_a_point_it_says_where_the_shell_is(shell: Session) -> None:
    assert sections(shell, "as-of")[""]["asOf"] == "now"
    run(shell, "as-of 160")
    told = sections(shell, "as-of")[""]
    assert (told["asOf"], told["offset"], told["epoch"]) == (160, 160, 1)
    assert "160" in lines(shell, "as-of")[0]


def test_points(shell: Session) -> None:
    moment = sections(shell.reshape(point="160"), "as-of")[""]["time"]
    run(shell, f"as-of {moment}")
    assert shell.image.provenance.timestamp == sections(shell.reshape(point="160"), "as-of")[""]["timeMs"]
    run(shell, "as-of -1ms")
    assert leader(shell) == -1
    run(shell, "mark there 160")
    run(shell, "as-of @there")
    assert leader(shell) == 3


def test_past_the_end_is_told(shell: Session) -> None:
    run(shell, "as-of 99999")
    assert shell.image.provenance.offset == 206
    assert any("not written yet" in note for note in shell.notes())


@pytest.mark.parametrize("point", ["12", "2001-01-01T00:00:00Z", "-9999d"])
def test_the_error_names_what_can_be_shown(point: str) -> None:
    session = opened(FIXTURES / "4.2.1-rolled" / "controller-3000")
    for travels in (False, True):
        if travels:
            session.travels()
        with pytest.raises(DataError) as raised:
            run(session, f"as-of {point}")
        assert "offsets 468 (2026-11-21T13:15:50" in str(raised.value.hint)
        assert "to 955 (2026-11-21T13:16:10" in str(raised.value.hint)


def test_inside_a_gap_of_the_log(tmp_path: Path) -> None:
    node = FIXTURES / "4.2.1-rolled" / "controller-3001" / METADATA_DIRECTORY
    target = tmp_path / METADATA_DIRECTORY
    target.mkdir()
    for file in node.iterdir():
        if file.suffix == ".checkpoint" or file.name == "00000000000000000699.log":
            (target / file.name).write_bytes(file.read_bytes())
    session = opened(target)
    assert session.reshape(point="438").image.provenance.offset == 438  # a snapshot's own end
    with pytest.raises(DataError) as raised:
        _ = session.reshape(point="440").image
    assert "offsets 297 (" in str(raised.value.hint) and "946 (" in str(raised.value.hint)


@pytest.fixture(params=["one image", "all images"])
def gap(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """A directory that lost the segment from offset 305 to 415; it has snapshots up to 297, 449 and later ones."""
    node = FIXTURES / "4.2.1-rolled" / "controller-3002"
    target = copy_of(node, tmp_path)
    (target / "00000000000000000305.log").unlink()
    session = opened(target)
    if request.param == "all images":
        session.travels()
    return session


@pytest.mark.parametrize("offset", [305, 350, 415, 416, 448])
def test_where_the_log_has_a_gap_nothing_is_shown(gap: Session, offset: int) -> None:
    with pytest.raises(DataError, match="offsets 305 to 415 are missing") as raised:
        run(gap, f"as-of {offset}")
    assert "offsets 0 (2026-" in str(raised.value.hint) and " to 304 (2026-" in str(raised.value.hint)
    assert " and 449 (2026-" in str(raised.value.hint)


def test_around_a_gap_all_is_shown(gap: Session) -> None:
    for offset in (304, 449, 450, 700):
        run(gap, f"as-of {offset}")
        assert gap.image.provenance.offset == offset


def test_times_around_a_gap(gap: Session) -> None:
    whole = opened(FIXTURES / "4.2.1-rolled" / "controller-3002")
    times = {row["offset"]: row["timestampMs"] for row in rows(whole, "dump")}
    before, inside, after = (datetime.fromtimestamp(times[at] / 1000, UTC).isoformat() for at in (304, 380, 600))
    assert times[304] < times[380] < times[416]
    assert gap.offset_of(before) == 304  # that very moment: later records of the same millisecond are not known
    with pytest.raises(DataError, match="offsets 305 to 415 are missing"):
        gap.offset_of(inside)
    assert times[gap.offset_of(after) or 0] == times[600]
    assert gap.offset_of("2099-01-01") == whole.offset_of("2099-01-01")


def test_snapshots_alone_are_single_points(tmp_path: Path) -> None:
    for end in (100, 200):
        write_snapshot(tmp_path, snapshot([], timestamp=1_700_000_000_000 + end), end)
    for travels in (False, True):
        session = opened(tmp_path)
        if travels:
            session.travels()
        for offset in (99, 199):
            run(session, f"as-of {offset}")
            assert session.image.provenance.offset == offset
        run(session, "as-of 200")
        assert session.image.provenance.offset == 199
        assert "offset 200 is after the end of the snapshot: answers are the state at offset 199" in session.notes()
        for point, told in (("98", "before everything"), ("150", "100 to 199"), ("2023-11-14T22:13:20.150Z", "100 to")):
            with pytest.raises(DataError, match=told) as raised:
                run(session, f"as-of {point}")
            assert str(raised.value.hint) == (
                "offsets 99 (2023-11-14T22:13:20.100Z) and 199 (2023-11-14T22:13:20.200Z) can be shown"
            )


def test_before_a_lone_segment() -> None:
    node = FIXTURES / "4.2.1-rolled" / "controller-3002" / METADATA_DIRECTORY
    session = opened(node / "00000000000000000305.log")
    for travels in (False, True):
        if travels:
            session.travels()
        assert session.reshape(point="400").image.provenance.offset == 400
        with pytest.raises(DataError, match="offsets 0 to 304 are missing") as raised:
            run(session, "as-of 304")
        assert str(raised.value.hint).startswith("offsets 305 (") and " to 415 (" in str(raised.value.hint)


def test_a_damaged_snapshot_is_damage_and_no_gap(tmp_path: Path) -> None:
    write_snapshot(tmp_path, snapshot([]), 100)
    file = write_snapshot(tmp_path, snapshot([]), 200)
    file.write_bytes(file.read_bytes()[:-9] + bytes(9))
    then = opened(tmp_path).reshape(point="300")
    assert then.image.provenance.offset == 99 and then.exit_code() == EXIT_DATA


def test_the_largest_offset_is_a_point(shell: Session) -> None:
    run(shell, f"as-of {2**63 - 1}")
    assert shell.image.provenance.offset == 206
    with pytest.raises(UsageError):
        run(shell, f"as-of {2**63}")


def test_what_is_appended_is_seen_by_a_later_journey(tmp_path: Path) -> None:
    def level(number: int) -> bytes:
        return record("FEATURE_LEVEL", name="metadata.version", featureLevel=number)

    parts = [control_batch([leader_change()]), batch([level(20)], 1)]
    write_log(tmp_path, *parts)
    session = opened(tmp_path)
    session.travels()
    assert session.reshape(point="1").image.provenance.offset == 1
    write_log(tmp_path, *parts, batch([level(21)], 2))
    assert session.reshape(point="2").image.provenance.offset == 2
    run(session, "reload")
    assert session.image.provenance.offset == 2


def test_completion_knows_marks(sample: Session) -> None:
    assert sample.image
    run(sample, "mark before 158")
    assert "@before" in [one.text.strip() for one in complete(sample, "as-of @").candidates]
    assert "@before" in [one.text.strip() for one in complete(sample, "diff 1 @").candidates]


class TestALogThatGrows:
    """A session on the directory of a running server."""

    @staticmethod
    def grown(folder: Path, travels: bool) -> Session:
        """A session that read offsets 0 to 2; the log has gone on to 4 since."""
        earlier = [record("TOPIC", name="a", topicId=uuid(1)), config_of_a("1"), config_of_a("1")]
        write_log(folder, batch(earlier))
        session = opened(folder)
        if travels:
            session.travels()
        assert value(session, "cat /image/configs/TOPIC:a/retention.ms -o json") == "1"
        write_log(folder, batch(earlier), batch([record("TOPIC", name="b", topicId=uuid(2)), config_of_a("2")], 3))
        return session

    @pytest.mark.parametrize("travels", [False, True])
    @pytest.mark.parametrize("line", ["diff -5m now", "diff 4 now", "diff now 4"])
    def test_no_point_is_later_than_now(self, tmp_path: Path, travels: bool, line: str) -> None:
        session = self.grown(tmp_path, travels)
        assert rows(session, line) == []
        assert [row["name"] for row in rows(session, "topics")] == ["a", "b"]

    @pytest.mark.parametrize("travels", [False, True])
    def test_what_was_read_is_shown_until_a_point_is_named(self, tmp_path: Path, travels: bool) -> None:
        session = self.grown(tmp_path, travels)
        blamed = "blame /image/configs/TOPIC:a/retention.ms"
        assert [row["name"] for row in rows(session, "topics")] == ["a"]
        assert [row["offset"] for row in rows(session, blamed)] == [1]
        history = rows(session, 'sql "SELECT name FROM history_topics WHERE isCurrent"')
        assert [row["name"] for row in history] == ["a"]
        assert rows(session, "when topics --where \"name == 'b'\"") == []
        assert [row["name"] for row in rows(session.reshape(point="1"), "topics")] == ["a"]
        assert rows(session, "log --stat")
        assert rows(session, "diff 0 1")[0]["path"] == "/image/configs/TOPIC:a/retention.ms"
        assert [row["name"] for row in rows(session, "topics")] == ["a"]
        run(session, "as-of 3")
        assert [row["name"] for row in rows(session, "topics")] == ["a", "b"]
        run(session, "as-of now")
        assert [row["offset"] for row in rows(session, blamed)] == [4]


class TestMarks:
    def test_are_listed_and_removed(self, sample: Session) -> None:
        run(sample, "mark b 158")
        assert rows(sample, "mark a") == [
            {"name": "a", "offset": 206, "time": "2026-11-21T15:11:24.494Z", "timeMs": 1795273884494}
        ]
        assert [(row["name"], row["offset"]) for row in rows(sample, "mark")] == [("a", 206), ("b", 158)]
        run(sample, "mark b 20")
        run(sample, "mark --remove @a")
        assert [(row["name"], row["offset"]) for row in rows(sample, "mark")] == [("b", 20)]

    def test_a_mark_has_the_time_of_its_own_record(self, tmp_path: Path) -> None:
        """Also where control records or an open transaction follow the last one that took effect."""
        write_log(
            tmp_path,
            timed_batch(
                [record("TOPIC", name="t", topicId=uuid(1)), *[record("BEGIN_TRANSACTION")] * 2], [1000, 1500, 2000]
            ),
        )
        assert [(row["offset"], row["timeMs"]) for row in rows(opened(tmp_path), "mark a")] == [(2, 2000)]
        assert [(row["offset"], row["timeMs"]) for row in rows(opened(tmp_path), "mark a 1")] == [(1, 1500)]
        assert [(row["offset"], row["timeMs"]) for row in rows(opened(tmp_path), "mark a 0")] == [(0, 1000)]

    def test_an_empty_log_has_no_record_to_mark(self, tmp_path: Path) -> None:
        write_log(tmp_path)
        with pytest.raises(CommandError, match="there is no record yet that could be marked"):
            run(opened(tmp_path), "mark a")
        with pytest.raises(CommandError, match="offset 5 is not written yet"):
            run(opened(tmp_path), "mark a 5")

    def test_what_is_not_there_is_not_marked(self, tmp_path: Path) -> None:
        topic = record("TOPIC", name="t", topicId=uuid(1))
        write_log(tmp_path / "log", batch([topic] * 3))
        write_snapshot(tmp_path / "lone", snapshot([topic]), 50)
        for name, last in (("log", 2), ("lone", 49)):
            with pytest.raises(CommandError, match="offset 60 is not written yet") as raised:
                run(opened(tmp_path / name), "mark a 60")
            assert raised.value.hint == f"the last one here is {last}"
            assert [row["offset"] for row in rows(opened(tmp_path / name), "mark a")] == [last]

    def test_a_log_that_ends_before_its_snapshot_begins(self, tmp_path: Path) -> None:
        """The newest state is the snapshot's, and so is its last offset."""
        topic = record("TOPIC", name="t", topicId=uuid(1))
        write_log(tmp_path, batch([topic] * 3))
        write_snapshot(tmp_path, snapshot([topic]), 50)
        assert [row["offset"] for row in rows(opened(tmp_path), "mark a")] == [49]

    def test_what_damage_hides_is_not_marked(self, tmp_path: Path) -> None:
        topics = [record("TOPIC", name=f"t{number}", topicId=uuid(number)) for number in range(1, 4)]
        raw = bytearray(batch(topics[:2]) + batch(topics[2:], 2) + batch(topics[2:], 3))
        raw[len(batch(topics[:2])) + 70] ^= 1
        write_log(tmp_path, bytes(raw))
        with pytest.raises(CommandError, match="offset 3 cannot be read") as raised:
            run(opened(tmp_path), "mark a 3")
        assert raised.value.hint == "the last one here is 1"

    def test_mark_where_the_shell_is(self, sample: Session) -> None:
        run(sample, "as-of 160")
        assert rows(sample, "mark here")[0]["offset"] == 160

    def test_are_kept_in_a_private_file(self, sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        run(sample, "mark kept 158")
        file = tmp_path / "kshell" / "marks.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [path.name for path in file.parent.iterdir()] == ["marks.json"]
        again = opened(sample.source.path)
        assert again.reshape(point="@kept").image.provenance.offset == 158

    def test_belong_to_the_cluster(self, sample: Session) -> None:
        run(sample, "mark kept 158")
        other = opened(FIXTURES / "4.3.1" / "broker-0")
        assert rows(other, "mark") == []
        run(other, "mark own 100")
        same_cluster = opened(FIXTURES / "4.3.1" / "controller-3001")
        assert [row["name"] for row in rows(same_cluster, "mark")] == ["own"]

    def test_without_a_home_they_last_as_long_as_the_shell(
        self, sample: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("HOME")
        run(sample, "mark kept 158")
        assert sample.remarks == ["no home directory to keep the mark in: it is forgotten when kshell ends"]
        assert [row["name"] for row in rows(sample, "mark")] == ["kept"]
        assert sample.remarks == []
        assert sample.reshape(show_secrets=True).reshape(point="@kept").until == 158

    @pytest.mark.parametrize(
        "text", ["{", "[]", '{"version": 2, "sources": {}}', '{"version": 1, "sources": {"a": 1}}']
    )
    def test_a_file_that_is_none_of_ours_is_left_alone(
        self, sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        file = tmp_path / "kshell" / "marks.json"
        file.parent.mkdir()
        file.write_text(text)
        for line in ("mark", "mark x 1", "mark --remove x"):
            with pytest.raises(UsageError, match="not a file of marks"):
                run(sample, line)
        assert file.read_text() == text

    @pytest.mark.parametrize("name", ["-x", "a b", "", "x/y", "\x1b"])
    def test_names(self, sample: Session, name: str) -> None:
        with pytest.raises(UsageError):
            run(sample, f"mark -- '{name}' 158")

    def test_a_place_that_cannot_be_written(self, sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", "/proc/nosuch")
        with pytest.raises(CommandError, match="/proc/nosuch"):
            run(sample, "mark x 158")

    def test_a_wrong_name_proposes_right_ones(self, sample: Session) -> None:
        run(sample, "mark before-import 158")
        with pytest.raises(UsageError) as raised:
            run(sample, "as-of @before-inport")
        assert raised.value.hint == "did you mean @before-import?"


def test_lines_of_a_script_travel(tmp_path: Path) -> None:
    script = "as-of 160\ncat /image/provenance/ -o json\nas-of now\ncat /image/provenance/ -o jsonl\n"
    done = subprocess.run(
        [sys.executable, "-m", "kshell", "--demo"],
        input=script.replace("provenance/", "provenance"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"offset": 160' in done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["offset"] == 206


def test_the_past_is_read_once(monkeypatch: pytest.MonkeyPatch, sample: Session) -> None:
    sample.travels()
    assert sample.reshape(point="160").image  # out of a snapshot and the log after it
    assert sample.reshape(point="161").image
    calls: list[str] = []
    monkeypatch.setattr(DirectorySource, "load", lambda *args, **options: calls.append("load"))
    monkeypatch.setattr("kshell.sources.past.LogReader", lambda *args, **options: calls.append("read"))
    for offset in (3, 50, 120, 205):
        assert sample.reshape(point=str(offset)).image.provenance.offset <= offset
    assert calls == []


@pytest.mark.parametrize("line", ["as-of", "cat /image/provenance"])
def test_a_time_that_nobody_knows_is_null_in_every_form(tmp_path: Path, line: str) -> None:
    write_log(tmp_path, control_batch([leader_change()]))
    answer = json.loads("".join(render(run(opened(tmp_path), line), "json")))
    assert (answer["time"], answer["timeMs"]) == (None, None)
