"""The screen, driven by textual's pilot: its keys, and what is to be seen after them."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Report
from kshell.engine.session import Session
from kshell.errors import KshellError, SourceError
from kshell.render import render
from kshell.sources import past
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.source import Loaded
from kshell.tree.image import iso
from tests import builders
from tests.commands.shell import opened, rows, run
from tests.docs_reference import sample_session
from tests.needed import is_required

if importlib.util.find_spec("textual") is None and not is_required():
    pytest.skip("textual is not installed (extra tui)", allow_module_level=True)

from textual.events import Paste
from textual.pilot import Pilot

from kshell.top.panels import PanelColumn, PanelRows
from kshell.top.rows_view import RowsView
from kshell.top.screen import TopApp
from kshell.top.viewer import Viewer

LAST = "00000000000000000158.log"


class Screen:
    """A running app, and what is to be seen of it."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, each when what the one before asked for is to be seen."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    async def type_ahead(self, *keys: str) -> None:
        """Press keys all at once, as a slow connection or a paste brings them."""
        for key in keys:
            self.app.simulate_key(key)
        await self.settle()

    async def settle(self) -> None:
        """Until nothing is read any more."""
        await self._pilot.pause()
        while not all(worker.is_finished for worker in self.app.workers):
            await self._pilot.pause(0.005)
        await self._pilot.pause()
        assert self.app.fault is None

    async def until(self, text: str) -> None:
        """Until a text is to be seen."""
        for _ in range(100):
            await asyncio.sleep(0.05)
            await self.settle()
            if text in self.text:
                return
        raise AssertionError(self.text)

    async def resize(self, columns: int, lines: int) -> None:
        """Another size of the terminal."""
        await self._pilot.resize_terminal(columns, lines)
        await self.settle()

    @property
    def lines(self) -> list[str]:
        """The screen's lines, without blanks at their ends."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines)

    def column(self, number: int = 0) -> list[str]:
        """The words of the rows at a place."""
        return [line.split()[number] for line in self.lines[3:-2] if line.strip()]


def drive(
    session: Session,
    steps: Callable[[Screen], Awaitable[None]],
    *,
    colored: bool = True,
    size: tuple[int, int] = (80, 24),
) -> TopApp:
    """Run the app on a session through steps."""
    viewer = Viewer(session)
    app = TopApp(viewer, colored=colored)

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            screen = Screen(app, pilot)
            await screen.settle()
            await steps(screen)

    try:
        asyncio.run(main())
    finally:
        viewer.close()
    return app


def test_panels_say_what_the_commands_say_at_every_moment() -> None:
    async def steps(screen: Screen) -> None:
        assert screen.lines[3].split()[:3] == ["critical", "offlinePartition", "legacy-import/0"]
        await screen.press("2")
        for keys, offset in (([], None), (["left"], 205), (["<"] * 20, 165), (["right"], 166), (["home"], 0)):
            await screen.press(*["less_than_sign" if key == "<" else key for key in keys])
            point = "" if offset is None else f" --as-of {offset}"
            expected = rows(sample_session(), f"topics{point}")
            seen = [line.split() for line in screen.lines[3:-2] if line]
            names = ("name", "partitions", "replicationFactor", "underReplicated", "offline", "underMinIsr")
            assert seen == [[str(row[name]) for name in names] for row in expected]
            if offset is not None:
                (record,) = rows(sample_session(), f"dump --from {offset} --to {offset}")
                assert screen.lines[-2].endswith(f"offset {offset}  {iso(record['timestampMs'])}")
        await screen.press("end", "5")
        assert screen.lines[-2].split()[1:4] == ["now", "offset", "206"]
        newest = [str(row["offset"]) for row in rows(sample_session(), "log --newest-first --count 19")]
        assert screen.column() == newest
        await screen.press("3")
        assert screen.column(1) == ["false", "false", "true"]
        await screen.press("tab")
        assert screen.column(1) == ["3000", "3001", "3002"]

    drive(sample_session(), steps)


def test_a_row_opens_down_to_the_story_of_a_partition_and_escape_comes_back() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2", *["down"] * 7, "enter")
        assert screen.lines[1] == "Topics > orders"
        assert screen.column() == [str(number) for number in range(8)]
        await screen.press("down", "enter")
        assert screen.lines[1] == "Topics > orders > orders/1"
        assert "orders-1" in screen.text
        assert "created; broker" in screen.text
        # The story is the one up to the moment, too.
        await screen.press("home")
        assert "created; broker" not in screen.text
        await screen.press("end", "escape")
        assert screen.app.query_one(RowsView).cursor == 1
        await screen.press("escape")
        assert screen.app.query_one(RowsView).cursor == 7
        await screen.press("escape", "question_mark")
        assert "Home, End" in screen.text

    drive(sample_session(), steps)


def test_the_filter_narrows_while_it_is_typed() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2", "slash", *"SQ")  # q is a letter here
        assert screen.column() == []
        await screen.press("backspace", "backspace", *"nts")
        assert screen.column() == ["payments.v2", "shipments"]
        await screen.press("enter")
        assert screen.lines[-1].startswith("2 of 12 with nts")
        await screen.press("down", "enter")
        assert screen.lines[1] == "Topics > shipments"
        await screen.press("escape", "escape")
        assert len(screen.column()) == 12
        await screen.press("q")

    assert not drive(sample_session(), steps).interrupted


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        (["2", "slash", *"leg", "enter", "enter"], "Topics > legacy-import"),
        (["2", "slash", *"nts", "enter", "down", "enter", "down", "enter"], "Topics > shipments > shipments/1"),
        (["2", "slash", *"legx", "backspace", "enter", "enter"], "Topics > legacy-import"),
        (["2", "slash", *"nts", "escape", "down", "enter"], "Topics > audit-log"),
        (["2", "slash", *"leg", "enter", "slash", "ctrl+u", *"ship", "enter", "enter"], "Topics > shipments"),
        (["slash", *"leg", "tab", "down", "enter"], "Topics > audit-log"),
        (["2", "tab", "enter"], "Brokers > /image/cluster/brokers/1"),
        (["2", "G", "k", "enter", "enter"], "Topics > search_index.updates > search_index.updates/0"),
    ],
)
def test_keys_that_are_typed_ahead_do_what_they_do_with_pauses(keys: list[str], title: str) -> None:
    async def paused(screen: Screen) -> None:
        await screen.press(*keys)
        assert screen.lines[1] == title

    async def ahead(screen: Screen) -> None:
        await screen.type_ahead(*keys)
        assert screen.lines[1] == title

    drive(sample_session(), paused)
    drive(sample_session(), ahead)


def test_enter_waits_for_the_moment_that_was_asked_for() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2")
        await screen.type_ahead("left", "home", "enter")  # there is no topic yet
        assert "1 Problems" in screen.lines[1]
        await screen.type_ahead("end", "G", "enter")
        assert screen.lines[1] == "Topics > shipments"

    drive(sample_session(), steps)


def test_a_step_that_waits_for_the_log_does_not_come_after_end() -> None:
    async def steps(screen: Screen) -> None:
        await screen.type_ahead("left", "end")
        assert " now " in screen.lines[-2]
        await screen.type_ahead("end", "left")
        assert " now " not in screen.lines[-2]

    drive(sample_session(), steps)


def test_keys_that_wait_for_rows_of_one_time_do_not_act_on_those_of_another() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2")
        await screen.type_ahead("home", "down", "enter", "end")
        assert "1 Problems" in screen.lines[1] and " now " in screen.lines[-2]
        await screen.type_ahead("left", "G", "enter", "home")
        assert screen.lines[1] == "Topics > shipments" and " offset 0 " in screen.lines[-2]

    drive(sample_session(), steps)


def test_a_row_is_not_opened_for_who_has_gone_elsewhere_meanwhile() -> None:
    async def steps(screen: Screen) -> None:
        await screen.type_ahead("2", "down", "enter", "3")
        assert "1 Problems" in screen.lines[1]
        assert screen.column(1) == ["false", "false", "true"]
        await screen.type_ahead("2", "down", "enter", "escape", "down", "enter")
        assert screen.lines[1] == "Topics > audit-log"

    drive(sample_session(), steps)


def test_the_filter_can_be_pasted_and_its_end_stays_in_sight() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2")
        screen.app.post_message(Paste("q"))  # not a key, and no filter is typed
        await screen.press("slash")
        screen.app.post_message(Paste("leg\x1b\nsecond line"))
        await screen.settle()
        assert screen.column() == ["legacy-import"]
        await screen.press(*"abcdefghij" * 9)
        assert screen.lines[-1].endswith("ghij")
        await screen.press("escape")
        assert len(screen.column()) == 12

    drive(sample_session(), steps)


@pytest.mark.parametrize("width", [60, 80, 110])
def test_commands_of_a_story_are_there_to_their_ends(width: int) -> None:
    session = sample_session()
    story = run(session, "why legacy-import 0")
    assert isinstance(story, Report)
    commands = re.findall(r"kafka-\S+\.sh --[^\n]+", "".join(render(story, "text", width=10_000)))
    assert max(map(len, commands)) > width

    async def steps(screen: Screen) -> None:
        await screen.press("enter")
        assert "legacy-import/0" in screen.lines[1]
        shown = "".join(screen.lines).replace(" ", "")
        assert [command for command in commands if command.replace(" ", "") not in shown] == []

    drive(session, steps, size=(width, 60))


def test_the_filter_of_a_story_keeps_a_command_whole() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("enter", "slash", *"import --partition")
        command = "".join(screen.lines[3:-2])
        assert command.lstrip().startswith("kafka-leader-election.sh ")
        assert command.endswith("--topic legacy-import --partition 0")

    drive(sample_session(), steps, size=(60, 24))


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_the_help_is_there_to_its_ends(width: int) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("question_mark")
        shown = " ".join(screen.text.split())
        for words in ("move; g and G go to the first and the last row", "a hundredth of the log (also Shift-Left,"):
            assert words in shown
        assert "The first step back reads the whole log once." in shown

    drive(sample_session(), steps, size=(width, 60))


def test_escape_leaves_the_filter_while_it_is_typed() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("2", "slash", *"aud", "escape")
        assert len(screen.column()) == 12
        await screen.press("3")  # a panel, not a letter of the filter
        assert screen.lines[1] != "Topics"
        await screen.press("q")

    assert not drive(sample_session(), steps).interrupted


def test_a_terminal_may_have_any_size_and_another_one_at_any_time() -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("enter")
        for columns, lines in ((40, 8), (200, 50), (20, 5), (80, 24)):
            await screen.resize(columns, lines)
            assert len(screen.lines) == lines
            assert all(len(line) <= columns for line in screen.lines)
        assert screen.lines[3] == "legacy-import-0"
        await screen.press("escape", "ctrl+c")

    assert drive(sample_session(), steps).interrupted


def test_the_head_stands_above_its_columns_at_every_width() -> None:
    async def steps(screen: Screen) -> None:
        for columns in (120, 90, 200, 80):
            await screen.resize(columns, 24)
            assert screen.lines[2].index("evidence") == screen.lines[3].index("leader none")

    drive(sample_session(), steps)


def test_a_reading_that_another_takes_the_place_of_before_it_began_leaves_no_warning() -> None:
    async def steps(screen: Screen) -> None:
        screen.app.action_reload()
        screen.app.action_reload()
        await screen.settle()
        assert screen.lines[3].startswith("critical")

    drive(sample_session(), steps)
    gc.collect()  # what was never awaited warns then, and warnings are errors


def test_names_are_shown_and_not_obeyed_and_secrets_are_not_shown(tmp_path: Path) -> None:
    name = "[bold red]x[/] \x1b[31m\u202e$secret"
    directory = tmp_path / METADATA_DIRECTORY
    values = [
        builders.value("TOPIC", name=name, topicId=builders.uuid(7)),
        builders.value("PARTITION", partitionId=0, topicId=builders.uuid(7), replicas=[1], isr=[1], leader=1),
        builders.value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value="hunter2"),
    ]
    builders.write_log(directory, builders.batch(values))

    async def steps(screen: Screen) -> None:
        escaped = "[bold red]x[/] \\x1b[31m\\u202e$secret"
        await screen.press("2")
        await screen.resize(300, 24)
        assert screen.lines[3].startswith(escaped)
        await screen.press("enter")
        assert screen.lines[1] == f"Topics > {escaped}"
        await screen.press("enter")
        assert screen.lines[1].startswith(f"Topics > {escaped} > ")
        await screen.press("5")
        assert "ssl.key.password" in screen.lines[3]
        await screen.press("enter")
        assert "hunter2" not in screen.text
        assert "ssl.key.password" in screen.text

    drive(opened(directory), steps)


def test_a_million_rows_scroll_and_only_those_to_be_seen_are_made() -> None:
    made: list[int] = []

    def cells(number: int) -> tuple[str, ...]:
        made.append(number)
        return (f"row-{number}",)

    async def steps(screen: Screen) -> None:
        view = screen.app.query_one(RowsView)
        view.show(PanelRows((PanelColumn("name", fills=True),), range(1_000_000), cells), None, 0)
        await screen.press("G")
        assert screen.lines[-3] == "row-999999"
        await screen.press("pageup", "pageup", "g", "pagedown")
        assert screen.lines[3] in ("row-0", "row-1")

    drive(sample_session(), steps)
    assert len(made) < 2_000


class Growing(DirectorySource):
    """A directory that counts as live: news are what was appended, or an error."""

    is_live = True
    news: bool | KshellError = False

    def refresh(self) -> bool:
        if isinstance(self.news, KshellError):
            raise self.news
        return self.news


def test_a_live_source_is_asked_again_and_its_errors_do_not_end_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kshell.top.screen._EVERY", 0.05)
    directory = Path(shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), tmp_path / METADATA_DIRECTORY))
    whole = (directory / LAST).read_bytes()
    (directory / LAST).write_bytes(b"")
    source = Growing(str(directory))

    async def steps(screen: Screen) -> None:
        await screen.press("5")
        assert screen.column()[:1] != ["205"]
        source.news = SourceError("the [b]cluster[/] is away")
        await screen.until("the [b]cluster[/] is away")
        (directory / LAST).write_bytes(whole)
        source.news = True
        await screen.until("   205  2026-")
        # A moment of the past stays as it is.
        await screen.press("home")
        shown = screen.text
        await asyncio.sleep(0.2)
        await screen.settle()
        assert screen.text == shown

    drive(Session(source), steps)


def test_the_directory_of_a_running_server_is_looked_at_again_and_read_when_it_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kshell.top.screen._EVERY", 0.05)
    monkeypatch.setattr("kshell.top.screen._PAUSES", 0)
    directory = Path(shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), tmp_path / METADATA_DIRECTORY))
    whole = (directory / LAST).read_bytes()
    (directory / LAST).write_bytes(b"")
    session = Session(DirectorySource(str(directory)))
    reads: list[int] = []
    replays: list[int] = []
    renew, begin = Session.renew, past._Recorded.__init__

    def counted(session: Session) -> None:
        reads.append(1)
        renew(session)

    def replayed(recorded: past._Recorded, *args: Any) -> None:
        replays.append(1)
        begin(recorded, *args)

    monkeypatch.setattr(Session, "renew", counted)
    monkeypatch.setattr(past._Recorded, "__init__", replayed)

    async def steps(screen: Screen) -> None:
        await screen.press("5")
        assert screen.column()[:1] != ["205"]
        (directory / LAST).write_bytes(whole[: len(whole) // 2])
        await screen.until("now offset 165")
        (directory / LAST).write_bytes(whole)
        await screen.press("home", "end")
        await screen.until("now offset 206")
        assert replays == [1], "what was read once is not read again"
        await screen.press("home", "end")  # the log was read as a whole now, for every point in time
        grown = len(reads)
        assert grown >= 2
        await asyncio.sleep(0.3)
        await screen.settle()
        assert len(reads) == grown, "nothing has changed"
        (directory / LAST).write_bytes(whole[:-1])  # as a follower that truncates its log
        await screen.until("now offset 205")
        await screen.press("home", "end")
        assert "now offset 205" in screen.text

    drive(session, steps)


def test_an_error_goes_away_when_the_directory_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.top.screen._EVERY", 0.05)
    monkeypatch.setattr("kshell.top.screen._PAUSES", 0)
    directory = tmp_path / METADATA_DIRECTORY
    directory.mkdir()

    async def steps(screen: Screen) -> None:
        assert "holds no metadata log" in screen.text
        shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), directory, dirs_exist_ok=True)
        await screen.until("legacy-import/0")

    drive(Session(DirectorySource(str(directory))), steps, size=(250, 24))


def test_an_error_of_a_live_source_goes_away_when_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the source has nothing new to say when it is asked: only the reading failed."""
    monkeypatch.setattr("kshell.top.screen._EVERY", 0.05)
    monkeypatch.setattr("kshell.top.screen._PAUSES", 0)
    directory = Path(shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), tmp_path / METADATA_DIRECTORY))
    source = Growing(str(directory))
    load, away = source.load, [SourceError("the cluster is away")]

    def failing(**more: Any) -> Loaded:
        if away:
            raise away[0]
        return load(**more)

    monkeypatch.setattr(source, "load", failing)

    async def steps(screen: Screen) -> None:
        assert "the cluster is away" in screen.text
        away.clear()
        await screen.until("legacy-import/0")

    drive(Session(source), steps)


def test_a_key_does_not_shorten_the_pause_after_a_long_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(screen: Screen) -> None:
        viewer = screen.app._viewer
        assert viewer.reading_took > 0
        viewer.reading_took = 1e6
        await screen.press("2", "3", "1")
        assert viewer.reading_took == 1e6

    drive(sample_session(), steps)


def test_a_large_log_is_looked_at_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.top.screen._EVERY", 0.01)
    looks: list[int] = []

    def look(viewer: Viewer) -> bool:
        looks.append(1)
        return False

    monkeypatch.setattr(Viewer, "refresh", look)

    async def steps(screen: Screen) -> None:
        screen.app._viewer.reading_took = 1e6
        seen = len(looks)
        await asyncio.sleep(0.2)
        await screen.settle()
        assert len(looks) <= seen + 1
        screen.app._viewer.reading_took = 0
        await asyncio.sleep(0.2)
        await screen.settle()
        assert len(looks) > seen + 1

    drive(sample_session(), steps)


@pytest.mark.parametrize("colored", [True, False])
def test_only_the_terminals_own_colours_are_used_and_none_where_there_are_to_be_none(colored: bool) -> None:
    async def steps(screen: Screen) -> None:
        styles = [segment.style for strip in screen.app.screen._compositor.render_strips() for segment in strip]
        colors = {style.color.name for style in styles if style is not None and style.color is not None}
        assert colors - {"default"} == ({"red", "yellow"} if colored else set())
        assert {style.bgcolor.name for style in styles if style is not None and style.bgcolor is not None} <= {
            "default"
        }

    drive(sample_session(), steps, colored=colored)
