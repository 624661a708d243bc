"""Sentences are broken between words, and a command that somebody may paste is not broken at all."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kshell.engine.result import Column, Report, Result, Row, Rows, Section
from kshell.render import render
from kshell.render.cells import cells
from kshell.render.wrapping import NARROWEST, wrapped
from tests.commands.shell import opened, run


@given(st.lists(st.text("abc日", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(NARROWEST, 60))
def test_no_word_is_broken_and_no_line_is_too_long(words: list[str], room: int) -> None:
    assume(all(cells("  " + word) <= room for word in words))  # a longer one cannot but be a line that is too long
    lines = list(wrapped(" ".join(words), room, hanging="  "))
    assert " ".join(line.strip() for line in lines) == " ".join(words)
    assert all(cells(line) <= room for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])


@pytest.mark.parametrize(
    "command",
    [
        'kafka-leader-election.sh --bootstrap-server "$SERVER" --election-type unclean --topic t --partition 0',
        "kafka-metadata-quorum.sh remove-controller --controller-id 3001",
        "kafka-configs.sh --alter --user bob --add-config SCRAM-SHA-256='[iterations=10000,password=…]'",
        "kafka-cluster.sh unregister --id 3",
        "`a command of anybody else in backticks`",
    ],
)
def test_a_command_stays_on_one_line(command: str) -> None:
    lines = list(wrapped(f"if the broker is gone for good: {command} makes the other one lead", 40))
    assert any(command in line for line in lines)
    assert len(lines) > 1


def test_a_word_behind_an_option_without_value_is_not_part_of_the_command() -> None:
    lines = list(wrapped("kafka-reassign-partitions.sh --execute with a broker that runs", 45))
    assert lines == ["kafka-reassign-partitions.sh --execute with a", "broker that runs"]


def printed(result: Result, fmt: str, width: int | None) -> list[str]:
    return "".join(render(result, fmt, width=width)).splitlines()


PROSE = Rows(
    (Column("name"), Column("reason", prose=True), Column("n")),
    [{"name": "a", "reason": "one two three four five six seven eight", "n": 1}, {"name": "b", "reason": None, "n": 2}],
)


def test_a_sentence_for_which_there_is_no_room_stands_below_its_row() -> None:
    assert printed(PROSE, "text", 36) == [
        "name  n",
        "a     1",
        "  reason  one two three four five",
        "          six seven eight",
        "b     2",
    ]


def test_with_room_it_is_a_column_as_any_other() -> None:
    assert printed(PROSE, "text", 60)[1] == "a     one two three four five six seven eight  1"


def test_a_record_has_every_column_on_a_line_of_its_own() -> None:
    rows: list[Row] = [{"name": "a", "n": 1, "more": "x y " * 20}, {"name": "b", "n": 22, "more": None}]
    shown = printed(Rows((Column("name"), Column("n"), Column("more", wide=True)), rows), "record", 40)
    assert shown[:4] == ["-[ 1 ]--------------------", "name  a", "n     1", "more  x y x y x y x y x y x y x y x y x"]
    assert shown[-3:] == ["name  b", "n     22", "more  -"]
    assert all(len(line) <= 40 for line in shown)


def test_values_and_titles_of_a_report_are_broken_between_words() -> None:
    report = Report([Section("a", "a title " * 8, {"key": "some words " * 8})])
    lines = printed(report, "text", 30)
    assert all(len(line) <= 30 for line in lines)
    assert " ".join(line.strip() for line in lines) == f"{('a title ' * 8).strip()} key  {('some words ' * 8).strip()}"


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("line", ["health", "why legacy-import-0", "registrations", "status", "configs", "acls"])
def test_no_line_of_an_answer_is_longer_than_the_terminal_but_for_commands(line: str, width: int) -> None:
    from kshell.sources.choose import demo_directory

    result = run(opened(demo_directory()), line)
    for shown in printed(getattr(result, "readable", None) or result, "text", width):
        assert len(shown) <= width or ".sh" in shown or shown.lstrip().startswith("health --where "), shown


@pytest.mark.parametrize(
    "change", ["leader 3 -> -1,", "isr [1,2,3] -> [1,2],", "604800000 -> 1209600000", "set to 86400000"]
)
def test_what_a_value_was_and_is_stays_on_one_line(change: str) -> None:
    for room in range(NARROWEST + len(change), 60):
        lines = list(wrapped(f"/image/topics/byName/orders/0: {change} elr [] -> [3]", room, data=True))
        assert any(change in line for line in lines), (room, lines)
