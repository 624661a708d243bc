"""Whole screens of what people ask for most, at four sizes of a terminal: as they were when somebody looked at them.

A file under ``screens/`` has one answer at every size: as many lines as the terminal shows at once, then how many
follow, and the last one. ``KSHELL_UPDATE_GOLDEN=1`` writes the files anew: look at the difference before it is kept.
Beside that, every line of every screen is held against what must be true of it whatever it says.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from kshell.engine.execution import prepare
from kshell.engine.result import Column, Report, Result, Row, Rows
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render import render
from kshell.render.answer import answer
from kshell.render.cells import cell, cells
from kshell.render.output import describe_error
from tests import goldens
from tests.docs_reference import place_for_examples, sample_session
from tests.render import wide_cluster
from tests.render.samples import invisible

GOLDENS = Path(__file__).parent / "screens"
SIZES = ((60, 20), (80, 24), (120, 40), (200, 50))
LINES = {
    "acls": "acls",
    "blame": "blame /image/topics/byName/legacy-import/0",
    "blame-directory": "blame /image/configs",
    "brokers": "brokers",
    "can": "can User:alice READ TOPIC:orders",
    "cat": "cat /image/topics/byName/orders/0 /image/cluster/brokers/1",
    "compare-logs": "compare-logs node-1 node-2 node-3 node-4",
    "configs": "configs --limit 14",
    "diff": "diff 150 200",
    "drain-check": "drain-check 1",
    "dump": "dump --from 195",
    "error-condition": 'partitions --where \'any(replicas, it == 3) and (topic ~ "^orders" or state == underMinISR) and'
    " leader != null and partition > 3'",
    "error-path": "cat /image/topcis/byName",
    "error-point": "diff nowhere 12",
    "explain": "explain 8 --record",
    "features": "features",
    "health": "health",
    "health-where": "health --where 'finding in [offlinePartition, fewScramIterations]'",
    "help": "help",
    "help-command": "help health",
    "help-points": "help points",
    "help-where": "help where",
    "info": "info",
    "log": "log --since 181",
    "ls": "ls /image/topics/byName",
    "ls-long": "ls -l /image/topics/byName",
    "man": "man timeline",
    "partitions": "partitions --limit 14",
    "plan-restore": "plan-restore --limit 9",
    "quorum": "quorum",
    "quotas": "quotas",
    "record": "partitions -o record --limit 2",
    "recover": "recover node-1 node-2 node-3 node-4",
    "registrations": "registrations",
    "set": "set",
    "stat": "stat /image/topics/byName/orders/0",
    "status": "status",
    "strays": "strays --log-dirs log-dirs.json",
    "timeline": "timeline",
    "timeline-partition": "timeline legacy-import-0",
    "topics": "topics",
    "tree": "tree /image/topics/byName/orders",
    "verify": "verify",
    "what-if": "what-if --kill 2",
    "when": "when partitions --where 'state == offline'",
    "why": "why legacy-import-0",
    "why-broker": "why broker-3",
    "why-topic": "why orders",
}
WIDE = {
    "wide-acls": "acls",
    "wide-brokers": "brokers",
    "wide-cat": "cat /image/cluster/brokers/1",
    "wide-configs": "configs",
    "wide-health": "health",
    "wide-log": "log",
    "wide-ls": "ls /image/topics/byName",
    "wide-partitions": "partitions",
    "wide-quotas": "quotas",
    "wide-timeline": f"timeline {wide_cluster.LONGEST}-0",
    "wide-topics": "topics",
    "wide-users": "users",
    "wide-why": f"why {wide_cluster.LONGEST}-0",
}
"""On a cluster with the longest names that Kafka takes, wide characters, and thirty replicas to a partition."""
PROSE = frozenset(("error-path", "error-point", "health", "help", "help-command", "help-points", "help-where", "man"))
DATA = frozenset(("blame-directory", "diff", "dump", "log", "wide-log"))


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    """The sample, and the cluster with wide names; in a directory with the files that lines name."""
    with place_for_examples():
        yield sample_session(), wide_cluster.session(tmp_path_factory.mktemp("wide"))


def shown(session: Session, line: str, width: int | None) -> list[str]:
    """What a terminal of that width shows, errors too; ``None``: no terminal."""
    out = io.StringIO()

    def complain(error: KshellError) -> None:
        print(describe_error(error, line=line, width=width, name="kshell: "), file=out)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        if width is not None:
            patch.setenv("COLUMNS", str(width))
        try:
            call = prepare(session, line)
            assert call is not None
            answer(call, complain, stdout=out)
        except KshellError as error:
            complain(error)
    return out.getvalue().removesuffix("\n").split("\n")


def screen(lines: list[str], height: int) -> list[str]:
    """The lines that fit, and what a pager would have to scroll to."""
    if len(lines) <= height:
        return lines
    return [*lines[: height - 2], f"⋮ {len(lines) - height + 1} lines", lines[-1]]


def pick(name: str, sessions: tuple[Session, Session]) -> tuple[Session, str]:
    return (sessions[0], LINES[name]) if name in LINES else (sessions[1], WIDE[name])


@pytest.mark.parametrize("name", [*LINES, *WIDE])
def test_screens(name: str, sessions: tuple[Session, Session]) -> None:
    session, line = pick(name, sessions)
    parts = []
    for width, height in SIZES:
        lines = shown(session, line, width)
        check_lines(name, lines, width)
        parts += [f"=== {width}x{height}", *screen(lines, height)]
    text = "\n".join(parts) + "\n"
    path = GOLDENS / f"{name}.txt"
    if goldens.are_written():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), goldens.differs(path)


def check_lines(name: str, lines: list[str], width: int) -> None:
    """No line is wider than the terminal, unless nothing of it may be broken; and no line hides or acts."""
    for line in lines:
        assert not invisible(line), (name, line)
        assert line == line.rstrip() or name.startswith(("timeline", "wide-timeline")), (name, line)
        if cells(line) > width:
            assert stays_whole(name, line), (name, width, line)


def stays_whole(name: str, line: str) -> bool:
    """Whether nobody may break the line: it ends with one word behind a sign or a key, or is something to paste."""
    is_word = re.fullmatch(r"\s*([-+~] )?\S+|.*\s{2}\S+", line) is not None
    is_command = re.match(r"\W*(echo '|kafka-[\w-]+\.sh\b|kshell\b|health --where\b)", line.strip()) is not None
    is_code = name.startswith(("help", "man")) and line.startswith("    ")
    return is_word or is_command or is_code or name == "plan-restore"


@pytest.mark.parametrize("name", sorted(PROSE | DATA))
def test_no_word_is_broken(name: str, sessions: tuple[Session, Session]) -> None:
    session, line = pick(name, sessions)
    whole = spelled(name, shown(session, line, None))
    for width, _ in SIZES:
        assert spelled(name, shown(session, line, width)) == whole, (name, width)


def spelled(name: str, lines: list[str]) -> list[str]:
    """The words, whatever the lines; of data the pieces between commas, too, which may stand on lines of their own."""
    words = " ".join(line.strip().removeprefix("# ") for line in lines)
    return re.sub(r",\s+", ",", words).split() if name in DATA else words.replace("# ", "").split()


@pytest.mark.parametrize(
    "name", ["health", "health-where", "recover", "why", "registrations", "wide-health", "wide-why"]
)
def test_a_command_to_paste_is_not_broken(name: str, sessions: tuple[Session, Session]) -> None:
    session, line = pick(name, sessions)
    for width, _ in SIZES:
        before = ""
        for text in shown(session, line, width):
            assert not text.strip().startswith("--") or before.endswith(":"), (name, width, text)
            assert text.count("`") % 2 == 0, (name, width, text)
            assert len(re.findall(r"(?<!\w)'|'(?!\w)", text)) % 2 == 0, (name, width, text)
            before = text


@pytest.mark.parametrize("height", [20, 24])
def test_the_status_of_the_cluster_is_on_one_screen(height: int, sessions: tuple[Session, Session]) -> None:
    width = next(width for width, lines in SIZES if lines == height)
    lines = shown(sessions[0], "status", width)
    assert len(lines) < max(height, 24)
    assert lines[0].startswith("Problems") and "offlinePartition" in lines[2]


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("why legacy-import-0", "  now          No leader since"),
        ("why orders", "  now  8 of 8 partitions are under-replicated"),
        ("what-if --kill 2", "then  without broker 2"),
        ("info", "Problems: none"),
        ("health", "Findings: 1 critical, 2 error"),
        ("help", "Start with status, then health."),
        ("compare-logs node-1 node-4", "  advice     keep node-1"),
    ],
)
def test_the_answer_is_on_the_first_screen(line: str, start: str, sessions: tuple[Session, Session]) -> None:
    for width, height in SIZES:
        assert any(text.startswith(start) for text in shown(sessions[0], line, width)[: height - 6]), (line, width)


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(result: Result) -> Iterator[tuple[Rows, int]]:
    """The tables of an answer as people see it, and by how much each is indented."""
    result = result.readable or result
    if isinstance(result, Rows) and result.style == "table":
        yield result, 0
    elif isinstance(result, Report):
        for section in result.sections:
            if isinstance(section.body, Rows) and section.body.style == "table":
                yield section.body, 2 if section.title else 0


TABLES = ("acls", "brokers", "configs", "drain-check", "features", "partitions", "quotas", "recover", "registrations",
          "status", "strays", "topics", "verify", "what-if", "why", "why-topic", "wide-acls", "wide-configs",
          "wide-partitions", "wide-quotas", "wide-topics", "wide-users")  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_what_is_left_out_is_marked_and_counted(name: str, sessions: tuple[Session, Session]) -> None:
    session, line = pick(name, sessions)
    call = prepare(session, line)
    assert call is not None
    found = list(tables(call.run()))
    assert found
    for rows, indent in found:
        listed = [dict(row) for row in rows]
        for width, _ in SIZES:
            again = Rows(rows.columns, listed)
            lines = "".join(render(again, "text", width=width - indent)).splitlines()
            check_table(lines, rows.columns, listed)


def check_table(lines: list[str], columns: tuple[Column, ...], rows: Sequence[Row]) -> None:
    """Every value is there as it is, or has a mark; and the last line counts rows, columns and cut values."""
    header = lines[0].split()
    footer = re.fullmatch(r"([\d,]+) rows?(?:, (\d+) of (\d+) columns)?(, values cut)?: -o wide shows all", lines[-1])
    body = lines[1:-1] if footer else lines[1:]
    named = {column.name for column in columns}
    prose = {column.name for column in columns if column.prose and not column.wide} - set(header)
    hidden = {column.name: column.usual for column in columns if column.usual is not None and column.name not in header}
    values = {cell(row.get(name)) for row in rows for name in named}
    unusual = [f"{name}  {row[name]}" for row in rows for name, usual in hidden.items() if row[name] != usual]
    assert sorted(text.strip() for text in body if _is_sentence(text, {*hidden}, values)) == sorted(unusual)
    is_cut = False
    for text in body:
        if text.startswith("  ") and _is_sentence(text, {*prose, *hidden}, values):
            continue
        for piece in re.split(r"\s{2,}", text.strip()):
            if piece not in values:
                assert "…" in piece or _is_part(piece, values), (piece, text)
                is_cut = is_cut or "…" in piece
    visible = set(header) | {name for name in prose if any(row.get(name) for row in rows)}
    missing = {column.name for column in columns if not column.wide} - visible - prose
    assert bool(footer) == (bool(missing) or is_cut), (missing, is_cut, lines[-1])
    if footer:
        assert int(footer[1].replace(",", "")) == len(rows)
        assert bool(footer[4]) == is_cut
        if footer[2]:
            assert (int(footer[2]), int(footer[3])) == (len(header) + len(prose), len(columns))


def _is_sentence(text: str, prose: set[str], values: set[str]) -> bool:
    """Whether a line below a row belongs to a sentence."""
    words = text.split()
    return bool(prose) and (words[0] in prose or _is_part(" ".join(words), values))


def _is_part(piece: str, values: set[str]) -> bool:
    """Whether the text stands in a value, as a part of a sentence that is broken between words does."""
    return any(f" {piece} " in f" {value} " for value in values if " " in value)


@cache
def two_hundred_columns() -> Rows:
    names = [f"column{number}" for number in range(200)]
    return Rows(tuple(map(Column, names)), [dict.fromkeys(names, "value"), dict.fromkeys(names)])


@pytest.mark.parametrize("width", [1, 20, *(width for width, _ in SIZES), 5000])
def test_two_hundred_columns(width: int) -> None:
    rows = two_hundred_columns()
    lines = "".join(render(rows, "text", width=width)).splitlines()
    assert all(len(line) <= max(width, len("2 rows, 1 of 200 columns: -o wide shows all")) for line in lines)
    check_table(lines, rows.columns, [dict(row) for row in rows])
