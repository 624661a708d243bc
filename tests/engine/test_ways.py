"""What people type who know other shells: several commands in a line, a bare path, a query, a time of their zone."""

from __future__ import annotations

import datetime

import pytest

from kshell.engine.completion import complete
from kshell.engine.execution import commands, run_commands
from kshell.engine.language import parts
from kshell.engine.session import Session
from kshell.engine.zones import absolute, in_zone, text_in_zone
from kshell.errors import KshellError, NoSuchPathError, UsageError
from kshell.render import render
from kshell.render.answer import localized
from kshell.sources.choose import demo_directory
from kshell.sources.points import Point, parse_point
from tests.commands.shell import lines, opened, rows, run, value


@pytest.fixture
def sample() -> Session:
    return opened(demo_directory())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pwd", ["pwd"]),
        ("cd /image; ls", ["cd /image", " ls"]),
        ("cd /image && ls", ["cd /image ", " ls"]),
        ("grep 'a;b' /x; pwd", ["grep 'a;b' /x", " pwd"]),
        ('grep "a\\";b" /x; pwd', ['grep "a\\";b" /x', " pwd"]),
        ("grep a\\;b; pwd", ["grep a\\;b", " pwd"]),
        ("dump | head -1; echo done", ["dump | head -1; echo done"]),
        ("pwd # one; two", ["pwd # one; two"]),
        ("pwd;# one; two", ["pwd", "# one; two"]),
        ("a & b", ["a & b"]),
        ("", [""]),
    ],
)
def test_a_line_is_split_outside_quotes_programs_and_comments(line: str, expected: list[str]) -> None:
    assert [part.text for part in parts(line)] == expected
    assert all(line[part.start :].startswith(part.text) for part in parts(line))


@pytest.mark.parametrize(
    ("line", "codes", "ran", "highest"),
    [
        ("a; b; c", {"a": 0, "b": 2, "c": 0}, "abc", 2),
        ("a && b && c", {"a": 0, "b": 2, "c": 0}, "ab", 2),
        ("a && b; c", {"a": 1, "b": 0, "c": 0}, "ac", 1),
        ("a; b && c", {"a": 3, "b": 0, "c": 4}, "abc", 4),
        ("a; b", {"a": 130, "b": 0}, "a", 130),
        (";; a;", {"a": 0}, "a", 0),
        ("", {}, "", 0),
    ],
)
def test_what_runs_after_a_failure(line: str, codes: dict[str, int], ran: str, highest: int) -> None:
    seen: list[str] = []

    def command(text: str) -> int:
        seen.append(text.strip())
        return codes[text.strip()]

    assert run_commands(line, command, lambda error, text: pytest.fail(str(error))) == highest
    assert "".join(seen) == ran


def test_a_line_that_is_no_line_of_commands_runs_nothing() -> None:
    complaints: list[tuple[str, str]] = []

    def complain(error: KshellError, text: str) -> None:
        complaints.append((error.message, text))

    assert run_commands("a; && b", pytest.fail, complain) == 2
    assert complaints == [("a command is missing next to &&", "a; && b")]


def test_completion_continues_behind_a_semicolon(sample: Session) -> None:
    found = complete(sample, "pwd; stat")
    assert found.start == 5
    assert {candidate.text for candidate in found.candidates} >= {"stat", "status"}


def test_a_path_alone_is_shown(sample: Session) -> None:
    assert lines(sample, "/image/topics") == lines(sample, "ls /image/topics")
    assert value(sample, "/image/features/metadataVersion") == "4.3-IV0"
    assert rows(sample, "/image/topics -o json") == rows(sample, "ls /image/topics")
    with pytest.raises(NoSuchPathError):
        run(sample, "/image/nothing")


def test_a_query_alone_runs(sample: Session) -> None:
    query = "SELECT name FROM topics WHERE name > 'o' ORDER BY name; "
    assert rows(sample, query) == rows(sample, "sql \"SELECT name FROM topics WHERE name > 'o' ORDER BY name\"")
    assert [part.text for part in commands("select ';' as a, 2 as b")] == ["select ';' as a, 2 as b"]


def test_why_takes_topic_and_number_apart(sample: Session) -> None:
    whole, apart = (render(run(sample, line), "json") for line in ("why legacy-import-0", "why legacy-import 0"))
    assert "".join(whole) == "".join(apart)


# --- points ---------------------------------------------------------------------------------------------------------


def day(text: str) -> datetime.datetime:
    time_ms = parse_point(text).time_ms
    assert time_ms is not None
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)


def test_times_of_today_and_yesterday() -> None:
    now = datetime.datetime.now(datetime.UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    assert day("today") == midnight
    assert day("yesterday") == midnight - datetime.timedelta(days=1)
    assert day("15:11:20") == midnight.replace(hour=15, minute=11, second=20)
    assert day("15:11") == midnight.replace(hour=15, minute=11)
    assert day("2026-11-21 15:11") == datetime.datetime(2026, 11, 21, 15, 11, tzinfo=datetime.UTC)


def test_a_point_before_the_end_is_counted_from_the_last_record(sample: Session) -> None:
    log = rows(sample, "log --noop")
    last = max(row["timestampMs"] for row in log)
    by_then = [row["offset"] for row in log if row["timestampMs"] <= last - 5000]
    assert sample.offset_of("end-5s") == max(by_then)
    assert sample.offset_of("end") is None
    sample.travels()
    run(sample, "log")
    assert sample.offset_of("end-5s") == max(by_then)


def test_only_one_log_has_an_end() -> None:
    with pytest.raises(UsageError, match="counted from its end"):
        parse_point("end-5s")
    assert parse_point("end-5s", from_end=True) == Point(before_end_ms=5000)


@pytest.mark.parametrize("text", ["end-", "end-5", "15:1", "25:00", "yesterdays", "12", "-", "end-5s "])
def test_what_looks_like_a_point_and_is_none(text: str) -> None:
    if text == "12":
        assert parse_point(text) == Point(offset=12)
        return
    with pytest.raises(UsageError):
        parse_point(text, from_end=True)


def test_a_time_as_the_last_words_of_a_line_needs_no_quotes(sample: Session) -> None:
    assert run(sample, "as-of 2026-11-21 15:11:10").exit_code == 0
    assert sample.image.provenance.offset == 133
    assert rows(sample, "mark here 2026-11-21 15:11:05")[0]["offset"] == sample.offset_of("2026-11-21T15:11:05Z")


# --- time zones -----------------------------------------------------------------------------------------------------


def test_a_time_without_a_zone_is_of_the_users(sample: Session) -> None:
    assert absolute("2026-11-21 16:11:10", "Europe/Berlin") == "2026-11-21T15:11:10.000+00:00"
    assert absolute("2026-07-01 17:00", "Europe/Berlin") == "2026-07-01T15:00:00.000+00:00"
    assert absolute("2026-11-21T16:11:10Z", "Europe/Berlin") == "2026-11-21T16:11:10.000+00:00"
    assert absolute("133", "Europe/Berlin") == "133"
    for line in ("status --as-of '2026-11-21 16:11:10' --tz Europe/Berlin", "status --as-of 133"):
        assert "133" in "".join(render(run(sample, line), "text"))
    run(sample, "as-of 2026-11-21 16:11:10 --tz Europe/Berlin")
    assert sample.image.provenance.offset == 133


def shown(session: Session, line: str, zone: str = "Asia/Kolkata") -> str:
    return "".join(render(in_zone(run(session, line), zone), "text", width=None))


@pytest.mark.parametrize("line", ["why legacy-import-0", "status", "log --count 30", "stat /image/topics/*/*", "info"])
def test_text_shows_times_of_the_zone_and_nothing_else_changes(sample: Session, line: str) -> None:
    utc = "".join(render(run(sample, line), "text", width=None))
    local = shown(sample, line)
    assert "Z" in utc and "+05:30" in local
    assert not [word for word in local.split() if word.startswith("2026-") and word.endswith("Z")]
    assert shown(sample, line, "UTC").replace("+00:00", "Z").split() == utc.split()


@pytest.mark.parametrize(
    "text",
    [
        "/backups/2026-01-01T00:00:00.000Z/c1",
        "b-2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z/c1",
        "User:2026-01-01T00:00:00.000Z",
        "x2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z.log",
        "2026-01-01T00:00:00Z",
    ],
)
def test_a_time_inside_a_name_stays(sample: Session, text: str) -> None:
    assert text_in_zone(text, "Asia/Kolkata") == text
    assert text_in_zone(f"(2026-01-01T00:00:00.000Z: {text}).", "Asia/Kolkata").endswith(f": {text}).")
    assert text_in_zone("since 2026-01-01T00:00:00.000Z.", "Asia/Kolkata") == "since 2026-01-01T05:30:00.000+05:30."


def test_microseconds_of_sql_stay(sample: Session) -> None:
    query = "SELECT TIMESTAMP '2026-01-02 03:04:05.678901' AS t, TIMESTAMP '2026-01-02 03:04:05' AS s"
    assert shown(sample, f'sql "{query}"').split()[2:] == [
        "2026-01-02T08:34:05.678901+05:30",
        "2026-01-02T08:34:05.000+05:30",
    ]


def test_one_time_is_right() -> None:
    assert shown(opened(demo_directory()), "stat /image/topics/byName/orders/0").count("2026-11-21T20:41:") > 0


def test_formats_for_programs_stay_utc(sample: Session) -> None:
    result = run(sample, "status")
    assert localized(result, "json", "Asia/Kolkata") is result
    assert localized(result, "text", None) is result
    assert localized(result, "record", "Asia/Kolkata") is not result


@pytest.mark.parametrize("width", [40, 75, 80, 100])
def test_a_plots_axis_has_times_of_the_zone_at_its_ends(sample: Session, width: int) -> None:
    def drawn(zone: str | None) -> list[str]:
        answer = run(sample, "timeline orders")
        return "".join(render(answer if zone is None else in_zone(answer, zone), "text", width=width)).splitlines()

    utc, here = drawn(None), drawn("Asia/Kolkata")
    assert max(map(len, here)) <= width
    assert not any(line.endswith("Z") for line in here)
    words = [word for line in here for word in line.split() if word.endswith("+05:30")]
    assert [datetime.datetime.fromisoformat(word) for word in words] == [
        datetime.datetime.fromisoformat(word) for line in utc for word in line.split() if word.endswith("Z")
    ]
    axis = next(line for line in utc if "└" in line)
    if width > 40:
        assert any(line.startswith(" " * axis.index("└") + "2026-") for line in here)
        assert any(line.endswith("+05:30") and len(line) == len(axis) for line in here)


def test_a_zone_that_is_none_is_refused(sample: Session) -> None:
    for line in ("set timezone Mars/Olympus", "status --tz ../../etc/passwd", "status --tz ''"):
        with pytest.raises(UsageError, match="is not a time zone such as"):
            run(sample, line)


def test_local_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert absolute("2026-11-21 16:11:10", "local") == "2026-11-21T07:11:10.000+00:00"
