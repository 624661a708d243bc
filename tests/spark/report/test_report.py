"""Reports out of made-up answers: what they say, that they stand alone, and that names stay text."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kshell.errors import CommandError, UsageError
from kshell.spark.report import compose
from kshell.spark.report.compose import Document
from kshell.spark.report.markdown import markdown
from kshell.spark.report.page import page
from kshell.spark.report.section import LEVELS, Scope
from kshell.spark.report.sections import sections
from kshell.spark.report.write import target_of, write
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.verbs.report import scope_of
from tests.plots.answers import HOSTILE
from tests.spark.report.answers import CLUSTER, made, nothing
from tests.spark.warehouses import committed

FLEET, ONE = Scope(), Scope(CLUSTER)
EVERY = pytest.mark.parametrize("scope", [FLEET, ONE], ids=["fleet", "cluster"])
_VOID = ("meta", "img", "br")


class Outline(HTMLParser):
    """What a page is made of. Tags that do not close raise AssertionError."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@cache
def document(scope: Scope, topic: str = "orders", of: int = 3) -> Document:
    clusters = [CLUSTER, "QwJ3bX9xTV6n0pXv7a1b2c"] if scope.is_fleet else [CLUSTER]
    return compose.compose(scope, made(scope, topic, clusters, of), ("tables of /data", "step 12"))


def told(found: Document) -> list[tuple[str, str, str]]:
    return [(one.level, one.figure, one.message) for one, _ in found.attention]


@EVERY
def test_nothing_is_said_in_a_line(scope: Scope) -> None:
    found = compose.compose(scope, nothing(scope), ())
    assert found.attention == ()
    for part in found.parts:
        assert part.content.lead.endswith(".") and "\n" not in part.content.lead
        assert not part.pictures
        assert [table for table in part.content.tables if table.rows] == []
    assert "Nothing: no section has anything to point out." in Outline(page(found)).words


def test_what_needs_attention_comes_first_and_the_worst_of_it_before_the_rest() -> None:
    found = told(document(ONE))
    assert found[0] == ("critical", "1", "partition has no leader now")
    assert {("error", "2", "partitions are under min ISR now"), ("error", "2", "copies diverge from the others"),
            ("error", "3", "unclean elections: acknowledged records may be lost"),
            ("warning", "3", "ACLs are wide open: everybody may"),
            ("error", "1", "broker is fenced now"), ("warning", "98.765 %", "of partition time had a leader"),
            ("warning", "3.0", "times the mean is led by the busiest broker"),
            ("warning", "1", "reassignment has lasted for more than a day"),
            ("warning", "4", "things could not be read or decoded"),
            ("info", "3", "hours were unlike the same hour of other weeks")} <= set(found)  # fmt: skip
    levels = [LEVELS.index(level) for level, _, _ in found]
    assert levels == sorted(levels)
    for scope, named in ((FLEET, f"orders of {CLUSTER} ("), (ONE, "orders (")):
        where = [one.where for one, _ in document(scope).attention if one.where.startswith("most in")]
        assert where and all(f"most in {named}" in one for one in where)
    assert page(document(ONE)).index("Needs attention</h2>") < page(document(ONE)).index("Overview</h2>")


def test_a_fleet_adds_its_clusters_up() -> None:
    found = document(FLEET)
    assert found.title == "Fleet report"
    assert found.facts == ("tables of /data", "step 12", "records up to 2026-03-01 00:00:00 UTC")
    assert ("critical", "2", "partitions have no leader now") in told(found)
    assert found.parts[0].content.lead == "2 clusters, 6 brokers, 4 topics, 12 partitions."
    for part in found.parts:
        for table in part.content.tables:
            assert all(column.name in row for row in table.rows for column in table.columns), table.caption


def test_the_only_copy_of_a_log_is_damaged_and_what_no_copy_has() -> None:
    found = [(one.level, one.figure, one.message, one.where) for one, _ in document(FLEET).attention]
    assert ("error", "1", "copy is damaged", "/a") in found
    assert ("error", "1", "gap in a log", f"{CLUSTER}: offsets 65 to 66 are missing in every copy") in found
    assert ("warning", "4", "things could not be read or decoded", "batch: orders") in found


def test_a_state_that_is_older_than_its_log_is_said() -> None:
    answers = made(ONE, "orders", [CLUSTER], 3)
    answers["overview"]["clusters"][0]["stateOffset"] = 246  # type: ignore[index]
    lead = compose.compose(ONE, answers, ()).parts[0].content.lead
    assert lead.endswith(f"What is counted of {CLUSTER} is the state before damage in the log, which goes on after it.")


@EVERY
def test_every_section_with_a_picture_draws_it(scope: Scope) -> None:
    without = {"drift", "anomalies", "copies"} | ({"reassignments"} if scope.is_fleet else {"overview"})
    drawn = {part.section.name for part in document(scope).parts if part.pictures}
    assert drawn == {section.name for section in sections()} - without


@EVERY
def test_the_page_stands_alone_and_can_be_read_aloud(scope: Scope) -> None:
    text = page(document(scope))
    found = Outline(text)
    assert not found.all("script") and not found.all("link")
    assert "://" not in re.sub(r'src="data:[^"]*"', "", text)
    assert all(str(one["src"]).startswith("data:image/png;base64,") and one["alt"] for one in found.all("img"))
    assert found.all("html") == [{"lang": "en"}]
    assert text.count("<caption>") == text.count("<table>") > 10
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {f"#{name}" for name in ids} >= {one["href"] for one in found.all("a")}
    headings = [tag for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert Counter(headings) == {"h1": 1, "h2": 1 + len(sections())} and headings[0] == "h1"
    assert "prefers-color-scheme: dark" in text and 'name="viewport"' in text


@EVERY
def test_names_are_text_and_nothing_else(scope: Scope) -> None:
    found = document(scope, HOSTILE)
    text, plain = page(found), markdown(found, "report-pictures")
    outline = Outline(text)  # every image is one of ours
    assert len(outline.all("img")) == sum(len(part.pictures) for part in found.parts)
    assert all("onerror" not in attributes for _, attributes in outline.tags)
    for written in (text, plain):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", written)
        assert "<img src=x" not in written
    assert "\\u202e&lt;img src=x onerror=alert(1)&gt;" in text
    assert re.search(r"(?<!\\)\\u202e|\\\\u202e&lt;img src=x", plain)
    for line in plain.split("\n"):
        if line.startswith("| "):
            assert line.endswith(" |")


def test_what_is_left_out_is_said() -> None:
    found = document(ONE, of=1234)
    assert "1 of 1,234." in Outline(page(found)).words
    assert "1 of 1,234." in markdown(found, "x")


def test_the_size_does_not_grow_with_the_clusters() -> None:
    many = [f"cluster-{number:04}" for number in range(1000)]
    found = compose.compose(FLEET, made(FLEET, clusters=many), ())
    overview = found.parts[0].content.tables[0]
    assert (len(overview.rows), overview.of) == (40, 1000)
    assert len(page(found)) < 2_500_000
    assert found.parts[0].content.lead.startswith("1,000 clusters, 3,000 brokers")


def test_markdown_has_its_pictures_beside_it(tmp_path: Path) -> None:
    target = target_of(str(tmp_path / "out"))
    files = write(document(ONE), target)
    assert [Path(path).name for path, _ in files[:2]] == ["report.html", "report.md"]
    assert all(Path(path).stat().st_size == size for path, size in files)
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    shown = re.findall(r"!\[[^\n]+\]\(([^)]+)\)", text)
    assert shown and sorted(shown) == sorted(f"report-pictures/{Path(path).name}" for path, _ in files[2:])
    assert all((tmp_path / "out" / place).read_bytes().startswith(b"\x89PNG") for place in shown)


@pytest.mark.parametrize(
    ("place", "formats", "files"),
    [
        ("out", (), ["out/report.html", "out/report.md"]),
        ("out", ("markdown",), ["out/report.md"]),
        ("a.html", (), ["a.html"]),
        ("a.MD", ("markdown",), ["a.MD"]),
    ],
)
def test_where_files_go(place: str, formats: tuple[str, ...], files: list[str]) -> None:
    assert list(target_of(place, formats).values()) == files


def test_an_ending_that_says_another_format() -> None:
    with pytest.raises(UsageError, match="its ending says html"):
        target_of("a.html", ("markdown",))


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="file"):
        write(document(ONE), target_of(str(tmp_path / "file" / "a.html")))


def test_without_matplotlib_there_are_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = compose.compose(ONE, made(ONE), ())
    assert found.notes == (compose.NO_PICTURES,)
    assert not any(part.pictures for part in found.parts)
    assert "Without pictures" in Outline(page(found)).words


def warehouse(place: Path, *clusters: str) -> Warehouse:
    return committed(place, dict.fromkeys(clusters, ClusterState({}))) if clusters else Warehouse(None, str(place))


def test_one_cluster_is_told_by_itself(tmp_path: Path) -> None:
    assert scope_of(warehouse(tmp_path / "one", CLUSTER), None) == ONE
    several = warehouse(tmp_path / "several", CLUSTER, "other")
    assert scope_of(several, None) == FLEET
    assert scope_of(several, CLUSTER) == ONE
    with pytest.raises(UsageError, match="4L6g3nShT: no such cluster") as caught:
        scope_of(several, "4L6g3nShT")
    assert CLUSTER in (caught.value.hint or "")


def test_no_tables(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there are no tables"):
        scope_of(warehouse(tmp_path), None)
