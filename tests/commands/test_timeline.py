"""timeline: stretches of leadership as rows, and their drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.result import Drawing, StyledText
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.history.plot import LeadershipSpan, PartitionLane, draw
from kshell.render import render
from tests import builders
from tests.builders import FIXTURES, node_name, recorded
from tests.commands.shell import lines, opened, rows, run

LOST = FIXTURES / "4.3.1-lost" / "controller-3000"


@pytest.fixture
def lost() -> Session:
    return opened(LOST)


def stretches(session: Session, line: str) -> list[tuple[Any, ...]]:
    return [(row["fromOffset"], row["toOffset"], row["leader"], row["isrSize"]) for row in rows(session, line)]


def test_the_lost_leader(lost: Session) -> None:
    assert stretches(lost, "timeline orders-eu-0") == [(31, 51, 2, 2), (51, 70, 2, 1), (70, None, -1, 0)]
    assert stretches(lost, "timeline retries-0")[-2:] == [(69, 102, -1, 0), (102, None, 1, 1)]


def test_what_is_chosen(lost: Session) -> None:
    assert {(row["topic"], row["partition"]) for row in rows(lost, "timeline orders-eu")} == {
        ("orders-eu", 0), ("orders-eu", 1), ("orders-eu", 2),
    }  # fmt: skip
    assert {row["topic"] for row in rows(lost, "timeline orders-eu-1")} == {"orders-eu-1"}  # the longest name
    assert {row["topic"] for row in rows(lost, "timeline orders-eu/1")} == {"orders-eu"}
    assert {row["topic"] for row in rows(lost, "timeline")} == {"orders-eu", "orders-eu-1", "retries"}
    assert {row["topic"] for row in rows(lost, "timeline --all")} == {"again", "orders-eu", "orders-eu-1", "retries"}
    with pytest.raises(UsageError):
        run(lost, "timeline orders-eu --all")
    with pytest.raises(CommandError):
        run(lost, "timeline nothing-like-it")


def test_points(lost: Session) -> None:
    assert stretches(lost, "timeline orders-eu-0 --since 60") == [(51, 70, 2, 1), (70, None, -1, 0)]
    assert stretches(lost, "timeline orders-eu-0 --until 60") == [(31, 51, 2, 2), (51, None, 2, 1)]
    assert stretches(lost, "timeline again --until 41") == [(40, 41, 2, 1)]


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_is_the_image_at_every_offset(node: Path) -> None:
    session = opened(node)
    session.travels()
    told = rows(session, "timeline --all")
    last = session.image.provenance.offset
    for offset in range(0, last + 1, max(1, last // 25)):
        then = session.reshape(point=str(offset))
        if then.loaded.open_transaction is not None:
            continue
        there = {(row["topic"], row["partition"]): row for row in rows(then, "partitions")}
        shown = {
            (row["topic"], row["partition"]): row
            for row in told
            if row["fromOffset"] <= offset and (row["toOffset"] is None or offset < row["toOffset"])
        }
        for key, row in shown.items():
            assert (row["leader"], sorted(row["isr"])) == (there[key]["leader"], sorted(there[key]["isr"])), offset


class TestDrawing:
    def test_a_gap_is_marked(self, lost: Session) -> None:
        leader, isr, *_ = lines(lost, "timeline retries-0", width=80)
        assert leader.split()[:2] == ["retries-0", "leader"]
        marks = leader.split()[2]
        assert "".join(dict.fromkeys(marks)) == "2✗1"
        assert isr.split()[1].startswith("█")
        assert len(isr.split()[1]) == len(marks)

    @pytest.mark.parametrize("width", [40, 60, 80, 133, 250])
    @pytest.mark.parametrize("flag", ["", " --ascii"])
    def test_fits(self, lost: Session, width: int, flag: str) -> None:
        shown = lines(lost, f"timeline{flag}", width=width)
        assert max(map(len, shown)) <= width
        assert not flag or all(line.isascii() for line in shown)

    def test_ascii_where_the_terminal_is_dumb(self, lost: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "dumb")
        assert all(line.isascii() for line in lines(lost, "timeline", width=80))

    def test_colours_are_one_a_broker(self, lost: Session) -> None:
        shown = "".join(render(run(lost, "timeline retries-0"), "text", width=80, color=True))
        first = shown.splitlines()[0]
        assert first.count("\x1b[0m") == 3
        assert len({part.split("m")[0] for part in first.split("\x1b[")[1::2]}) == 3

    def test_nothing_changed(self, lost: Session) -> None:
        assert lines(lost, "timeline --since now --until 20") == ["no leader or ISR changed in that time"]

    def test_the_worst_of_a_column(self) -> None:
        spans = [
            LeadershipSpan(0, 500, 1, 3, 3),
            LeadershipSpan(500, 501, -1, 0, 3),
            LeadershipSpan(501, 1000, 2, 2, 3),
        ]
        first, isr, *_ = ["".join(parts) for parts in draw([PartitionLane("t-0", spans)], 0, 1000, 60, plain=True)]
        assert first.count("!") == 1
        assert isr.count("0") == 1

    @pytest.mark.parametrize("plain", [True, False])
    def test_partitions_of_a_long_name_can_be_told_apart(self, plain: bool) -> None:
        lanes = [PartitionLane(f"{'t' * 200}-{number}", [LeadershipSpan(0, 10, 1, 1, 1)]) for number in (0, 1)]
        labels = [parts[0].split()[0] for parts in draw(lanes, 0, 10, 80, plain=plain)[:3:2]]
        assert [label[-2:] for label in labels] == ["-0", "-1"]
        assert {label[:10] for label in labels} == {"t" * 10}

    def test_large_ids_are_letters(self) -> None:
        spans = [LeadershipSpan(0, 500, 101, 1, 1), LeadershipSpan(500, 1000, 102, 1, 1)]
        text = "\n".join("".join(parts) for parts in draw([PartitionLane("t-0", spans)], 0, 1000, 60, plain=False))
        assert "aaa" in text and "a = 101" in text and "b = 102" in text

    @given(
        st.lists(st.tuples(st.integers(0, 10**13), st.integers(-1, 80), st.integers(0, 12)), min_size=1, max_size=30),
        st.integers(1, 200),
        st.booleans(),
    )
    def test_any_history_fits(self, changes: list[tuple[int, int, int]], width: int, plain: bool) -> None:
        changes.sort()
        ends = [change[0] for change in changes[1:]] + [changes[-1][0] + 1]
        spans = [
            LeadershipSpan(at, end, leader, size, 12) for (at, leader, size), end in zip(changes, ends, strict=True)
        ]
        shown = draw([PartitionLane("topic-0", spans)], changes[0][0], ends[-1], width, plain=plain)
        assert all(isinstance(part, str) for parts in shown for part in parts)
        assert all(sum(map(len, parts)) <= max(width, 40) for parts in shown)
        if any(leader < 0 for _, leader, _ in changes):
            marked = [
                part for parts in shown[:1] for part in parts if isinstance(part, StyledText) and part.tone == "error"
            ]
            assert marked


def test_the_topics_that_had_the_name_before_are_there_too(tmp_path: Path) -> None:
    """An outage of a topic that was deleted and created again is no less an outage."""

    def partition(number: int, topic: int) -> bytes:
        return builders.value(
            "PARTITION", partitionId=number, topicId=builders.uuid(topic), replicas=[1], isr=[1], leader=1
        )

    first, second = builders.uuid(200), builders.uuid(201)
    records = (
        builders.value("TOPIC", name="a", topicId=first), partition(0, 200), partition(1, 200),
        builders.value("PARTITION_CHANGE", partitionId=0, topicId=first, leader=-1, isr=[]),
        builders.value("REMOVE_TOPIC", topicId=first),
        builders.value("TOPIC", name="a", topicId=second), partition(0, 201),
    )  # fmt: skip
    builders.write_log(tmp_path, *(builders.batch([record], offset) for offset, record in enumerate(records)))
    session = opened(tmp_path)
    columns = "partition,fromOffset,toOffset,leader"
    for line in ("timeline --all", "timeline a"):
        assert [tuple(row[name] for name in columns.split(",")) for row in rows(session, line)] == [
            (0, 1, 3, 1), (0, 3, 4, -1), (0, 6, None, 1), (1, 2, 4, 1)
        ], line  # fmt: skip
    for line in ("timeline a-1", "why a-1"):
        with pytest.raises(CommandError, match="only a topic of that name that was deleted had it") as caught:
            run(session, line)
        assert "`log /image/topics/byName/a/1`" in (caught.value.hint or "")


def test_other_formats_have_rows_text_has_a_plot(lost: Session) -> None:
    result = run(lost, "timeline retries-0")
    assert isinstance(result.readable, Drawing)
    csv = "".join(render(result, "csv"))
    assert csv.startswith("topic,partition,fromOffset,fromTime,fromTimeMs,toOffset,toTime,toTimeMs,leader,isrSize,isr")
    assert "".join(result.readable.draw(80)[0]).startswith("retries-0")


def test_a_log_that_begins_later(cut_sample: Session) -> None:
    assert stretches(cut_sample, "timeline legacy-import-0") == [(158, 182, 3, 1), (182, None, -1, 0)]
    lines(cut_sample, "timeline legacy-import-0", width=80)
    assert any("the log starts at offset 159" in remark for remark in cut_sample.remarks)
