"""The contents of ``top``: the five panels, and the pages that open from their rows. Independent of the screen.

A page is an :class:`Opening`, whose function makes :class:`PanelRows` out of a session, mostly by running a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kshell.engine import registry
from kshell.engine.arguments import parse
from kshell.engine.result import Report, Result, Row, Rows, Section
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.history.records import summary, when
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.names import encode_name
from kshell.metadata.partition_state import OFFLINE, ONLINE, UNDECODED, MinIsr, problems, state
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.records import Undecoded
from kshell.render import render
from kshell.render.cells import cell, cells, fitting
from kshell.tree.paths import TOPICS_BY_NAME, join

EVENTS: Final = 500
"""The number of offsets up to the shown moment that the panel of events covers."""
_BY_NAME: Final = "/image/topics/byName/"


class PanelColumn(NamedTuple):
    """A column of a panel. ``right``: aligned to the right; ``fills``: it takes the width that the others leave."""

    name: str
    right: bool = False
    fills: bool = False


class Opening(NamedTuple):
    """A page: its title, and the function that makes its rows out of the session at the shown moment."""

    title: str
    make: Callable[[Session, int], PanelRows]
    """(session, columns of the screen) -> the rows or text to show."""


class PanelRows:
    """The rows of a page, whose cells are made when they are needed; without ``columns``, lines of text.

    ``cells``, ``tone`` and ``opens`` get one of the ``rows`` and make its escaped cells, its tone, and the page behind
    it; ``searched`` gives the texts in which a filter looks, if these are not the cells.
    """

    def __init__(
        self,
        columns: tuple[PanelColumn, ...],
        rows: Sequence[object],
        cells: Callable[[Any], tuple[str, ...]],
        *,
        tone: Callable[[Any], str] = lambda row: "",
        opens: Callable[[Any], Opening | None] = lambda row: None,
        searched: Callable[[Any], tuple[str, ...]] | None = None,
        note: str = "",
    ) -> None:
        self.columns = columns
        self.is_failure = False
        """Whether this is an error instead of what was asked for."""
        self.note = note
        self._rows = rows
        self._cells = cells
        self._tone = tone
        self._opens = opens
        self._searched = searched or cells

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the cells of a row, escaped."""
        return self._cells(self._rows[index])

    def tone(self, index: int) -> str:
        """Return the tone of a row: ``critical``, ``error``, ``warning`` or another text for none."""
        return self._tone(self._rows[index])

    def opens(self, index: int) -> Opening | None:
        """Return the page that opens from a row; ``None`` if there is none."""
        return self._opens(self._rows[index])

    def matching(self, text: str) -> list[int]:
        """Return the indexes of the rows with a cell that holds the text, in upper or lower case."""
        wanted = text.casefold()
        return [
            index
            for index, row in enumerate(self._rows)
            if any(wanted in each.casefold() for each in self._searched(row))
        ]


def lines(text: Iterable[str], tone: str = "") -> PanelRows:
    """Make a text page of lines, which must be escaped already."""
    return PanelRows((), list(text), lambda line: (line,), tone=lambda line: tone)


def failure(error: KshellError) -> PanelRows:
    """Make a text page of an error: its message and its hint."""
    page = lines([cell(error.message), *([cell(error.hint)] if error.hint else [])], "error")
    page.is_failure = True
    return page


def _answer(session: Session, *tokens: str) -> Result:
    command = registry.get(tokens[0])
    return command.run(session, parse(command, list(tokens[1:])))


def _rows(session: Session, *tokens: str) -> list[Row]:
    answer = _answer(session, *tokens)
    assert isinstance(answer, Rows)
    return list(answer)


def _cells_of(*names: str) -> Callable[[Row], tuple[str, ...]]:
    return lambda row: tuple(cell(row.get(name)) for name in names)


def _text(result: Result, width: int) -> PanelRows:
    text = "".join(render(result, "text", width=width))
    parts = [(part, line) for line in text.removesuffix("\n").split("\n") for part in _folded(line, width)]
    return PanelRows((), parts, lambda row: row[:1], searched=lambda row: row[1:])


def _folded(line: str, width: int) -> Iterator[str]:
    """Break a line where the screen ends: commands to paste have one line each, and there is no scrolling sideways."""
    while cells(line) > width:
        end = max(1, fitting(line, width))
        yield line[:end]
        line = line[end:]
    yield line


def _path(path: str) -> Opening:
    return Opening(path, lambda session, width: _text(_answer(session, "cat", path), width))


# --- the panels ------------------------------------------------------------------------------------------------------


def problems_panel(session: Session, width: int) -> PanelRows:
    """Show the findings of ``health``, the worst first."""

    def cells(row: Row) -> tuple[str, ...]:
        return (*(cell(row[name]) for name in ("level", "finding")), cell(_short(row["path"])), cell(row["evidence"]))

    columns = PanelColumn("level"), PanelColumn("finding"), PanelColumn("about"), PanelColumn("evidence", fills=True)
    rows = _rows(session, "health")
    return PanelRows(
        columns,
        rows,
        cells,
        tone=lambda row: str(row["level"]),
        opens=_finding,
        note="" if rows else "nothing is wrong",
    )


def _short(path: str) -> str:
    return path.removeprefix(_BY_NAME).removeprefix("/image/")


def _finding(row: Row) -> Opening:
    path = str(row["path"])
    if path.startswith(_BY_NAME) and path.removeprefix(_BY_NAME).partition("/")[2].isdigit():
        return _story(path)
    report = Report([Section("", str(row["finding"]), {name: row[name] for name in ("path", "evidence", "nextStep")})])
    return Opening(_short(path), lambda session, width: _text(report, width))


def topics_panel(session: Session, width: int) -> PanelRows:
    """Show one row per topic, with the counts of the command ``topics``."""
    counts = ("partitions", "replicationFactor", "underReplicated", "offline", "underMinIsr")
    heads = ("partitions", "factor", "under-repl", "offline", "under-min-isr")
    return PanelRows(
        (PanelColumn("topic", fills=True), *(PanelColumn(name, right=True) for name in heads)),
        _rows(session, "topics", "--columns", ",".join(("name", *counts))),
        _cells_of("name", *counts),
        tone=lambda row: "error" if row["offline"] else "warning" if row["underReplicated"] else "",
        opens=lambda row: _topic(str(row["name"])),
    )


def _topic(name: str) -> Opening:
    return Opening(name, lambda session, width: _partitions(session, name))


def _partitions(session: Session, name: str) -> PanelRows:
    """Show the partitions of a topic. Cells are made for visible ones only, because a topic may have very many."""
    image = session.image
    topic_id = image[NAMES].get(name)
    if topic_id is None:
        return lines([f"{cell(name)}: there is no such topic at this moment"])
    topic: Topic = image[TOPICS][topic_id]
    least = MinIsr(image)

    def state_of(entry: tuple[int, Partition | Undecoded]) -> str:
        value = entry[1]
        return state(problems(value, least.of(name, value.leader))) if isinstance(value, Partition) else UNDECODED

    def cells(entry: tuple[int, Partition | Undecoded]) -> tuple[str, ...]:
        number, value = entry
        if not isinstance(value, Partition):
            return (cell(number), "-", "-", "-", UNDECODED)
        leader = "none" if value.leader == -1 else cell(value.leader)
        return cell(number), leader, cell(value.replicas), cell(value.isr), state_of(entry)

    def tone(entry: tuple[int, Partition | Undecoded]) -> str:
        return {ONLINE: "", OFFLINE: "error", UNDECODED: "error"}.get(state_of(entry), "warning")

    columns = (
        PanelColumn("partition", right=True),
        PanelColumn("leader", right=True),
        PanelColumn("replicas", fills=True),
        PanelColumn("isr"),
        PanelColumn("state"),
    )
    path = join((*TOPICS_BY_NAME, encode_name(name)))
    return PanelRows(columns, topic.scan(), cells, tone=tone, opens=lambda entry: _story(f"{path}/{entry[0]}"))


def _story(path: str) -> Opening:
    return Opening(_short(path), lambda session, width: _text(_answer(session, "why", path), width))


def brokers_panel(session: Session, width: int) -> PanelRows:
    """Show one row per broker, with its numbers of leaders and replicas."""
    names = ("id", "fenced", "inControlledShutdown", "rack", "leaders", "replicas", "outOfSync")
    heads = ("id", "fenced", "shutting down", "rack", "leaders", "replicas", "out of sync")
    numbers = ("id", "leaders", "replicas", "outOfSync")
    columns = (
        PanelColumn(head, right=name in numbers, fills=name == "rack") for name, head in zip(names, heads, strict=True)
    )
    return PanelRows(
        tuple(columns),
        _rows(session, "brokers", "--load"),
        _cells_of(*names),
        tone=_broker_tone,
        opens=lambda row: _path(f"/image/cluster/brokers/{row['id']}"),
    )


def _broker_tone(row: Row) -> str:
    return "error" if row["fenced"] is True else "warning" if row["inControlledShutdown"] is True else ""


def quorum_panel(session: Session, width: int) -> PanelRows:
    """Show the replicas of the metadata quorum."""
    answer = _answer(session, "quorum").readable
    assert isinstance(answer, Report)
    head, replicas = (section.body for section in answer.sections)
    assert isinstance(head, Mapping)
    assert isinstance(replicas, Rows)
    names = tuple(column.name for column in replicas.columns if not column.wide)
    columns = (PanelColumn(name, right=name in ("id", "lag"), fills=name == names[-1]) for name in names)
    note = ", ".join(f"{name} {cell(head[name])}" for name in ("leaderId", "leaderEpoch", "highWatermark"))
    return PanelRows(tuple(columns), list(replicas), _cells_of(*names), note=note)


def events_panel(session: Session, width: int) -> PanelRows:
    """Show the last records up to the shown moment, the newest first."""
    loaded = session.loaded
    last = loaded.image.provenance.offset if loaded.log_end_offset is None else loaded.log_end_offset - 1
    # By a range of offsets, because counting from the newest record would read the whole log.
    tokens = ("--since", str(max(last - EVENTS + 1, 0)), "--until", str(max(last, 0)))
    return PanelRows(
        (PanelColumn("offset", right=True), PanelColumn("time"), PanelColumn("record", fills=True)),
        _rows(session, "log", *tokens)[::-1],
        lambda row: (cell(row["offset"]), cell(when(row)), cell(summary(row))),
        opens=_record,
        note=f"the last {EVENTS} offsets up to this moment",
    )


def _record(row: Row) -> Opening:
    report = Report([Section("", f"{row['type']} at offset {row['offset']}", row)])
    return Opening(f"offset {row['offset']}", lambda session, width: _text(report, width))


PANELS: Final = (
    Opening("Problems", problems_panel),
    Opening("Topics", topics_panel),
    Opening("Brokers", brokers_panel),
    Opening("Quorum", quorum_panel),
    Opening("Events", events_panel),
)
"""The panels, in the order of their keys 1 to 5."""
