"""``report``: one page for a ticket, without scripts, secrets, or anything that data could run."""

from __future__ import annotations

import os
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kshell import extras
from kshell.commands.report import CHAPTERS
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.sources.choose import demo_directory
from tests import builders
from tests.commands.shell import opened, rows, run
from tests.full_disk import file_size_limit


@pytest.fixture
def sample() -> Session:
    return opened(demo_directory())


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def ids(self) -> set[str | None]:
        return {attributes.get("id") for tag, attributes in self.tags if tag == "section"}


def written(session: Session, path: Path, options: str = "") -> _Page:
    rows(session, f"report --to {path} {options}")
    return _Page(path.read_text())


def test_it_has_every_section_and_the_stories_of_partitions_in_trouble(sample: Session, tmp_path: Path) -> None:
    page = written(sample, tmp_path / "incident.html")
    assert page.ids() == {chapter.name for chapter in CHAPTERS} | {"story-0"}
    assert "The story of legacy-import-0" in page.text
    assert "offlinePartition" in page.text and "sha256:" in page.text
    anchors = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert anchors == {f"#{name}" for name in page.ids()}


def test_the_timeline_is_a_picture_or_drawn_in_characters(
    sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [each for tag, each in written(sample, tmp_path / "a.html").tags if tag == "img"]
    assert pictures and all((each["src"] or "").startswith("data:image/png;base64,") for each in pictures)
    assert "legacy-import-0 has no leader" in (pictures[0]["alt"] or "")

    def absent(purpose: str, extra: str, *_: str) -> None:
        raise extras.missing(purpose, extra, "matplotlib")

    monkeypatch.setattr("kshell.plots.require", absent)
    page = written(sample, tmp_path / "b.html")
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert [tag for tag, _ in page.tags if tag == "pre"]


def test_it_begins_where_it_is_told_to(sample: Session, tmp_path: Path) -> None:
    rows(sample, f"report --to {tmp_path / 'a.html'} --since 200")
    text = _Page((tmp_path / "a.html").read_text()).text
    assert "from offset 200 to 206" in text and "log --since SINCE" not in text
    with pytest.raises(UsageError, match="not a point in the log"):
        rows(sample, f"report --to {tmp_path / 'b.html'} --since recently")
    assert not (tmp_path / "b.html").exists()


def test_nothing_in_it_is_run_or_fetched(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\u202e'\"><img src=x onerror=y>"
    topic = builders.value("TOPIC", name=hostile, topicId=builders.uuid(1))
    partition = builders.value(
        "PARTITION", topicId=builders.uuid(1), partitionId=0, replicas=[1], isr=[], leader=-1, leaderEpoch=1
    )
    batches = [builders.control_batch([builders.leader_change()]), builders.batch([topic, partition], 1)]
    builders.write_log(tmp_path / "d", *batches)
    page = written(opened(tmp_path / "d"), tmp_path / "a.html")
    assert not {"script", "iframe", "object", "link", "base", "form"} & {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert all(
        (attributes[name] or "").startswith(("#", "data:"))
        for _, attributes in page.tags
        for name in ("href", "src")
        if name in attributes
    )
    assert "\u202e" not in (tmp_path / "a.html").read_text()
    assert "<script>alert(1)" in page.text  # as words
    policy = next(each["content"] for tag, each in page.tags if tag == "meta" and "http-equiv" in each)
    assert (policy or "").startswith("default-src 'none'")


def test_long_answers_are_cut_and_say_so(tmp_path: Path) -> None:
    topics = [builders.value("TOPIC", name=f"t-{number}", topicId=builders.uuid(number + 1)) for number in range(500)]
    builders.write_log(tmp_path / "d", builders.control_batch([builders.leader_change()]), builders.batch(topics, 1))
    page = written(opened(tmp_path / "d"), tmp_path / "a.html")
    assert "more rows are left out" in page.text


def test_what_cannot_be_answered_is_said(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    made = builders.snapshot([builders.value("TOPIC", name="t", topicId=builders.uuid(1))])
    builders.write_snapshot(directory, made, end_offset=3)
    listed = {row["section"]: row["error"] for row in rows(opened(directory), f"report --to {tmp_path / 'a.html'}")}
    assert listed["health"] is None and listed["changes"]
    assert "No answer: " in _Page((tmp_path / "a.html").read_text()).text


def test_only_its_owner_reads_it_and_nothing_is_replaced_unasked(sample: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    rows(sample, f"report --to {path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("mine")
    with pytest.raises(CommandError, match=r"a\.html: exists"):
        rows(sample, f"report --to {path}")
    assert path.read_text() == "mine"
    rows(sample, f"report --to {path} --force")
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_a_full_disk_leaves_nothing(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"a\.html: File too large"), file_size_limit(4096):
        rows(sample, f"report --to {tmp_path / 'a.html'}")
    assert os.listdir(tmp_path) == []


def test_secrets_and_no_place_are_refused(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="never holds secrets"):
        rows(sample, f"report --to {tmp_path / 'a.html'} --show-secrets")
    with pytest.raises(UsageError, match="report: --to FILE is missing"):
        rows(sample, "report")


def test_a_device_is_not_replaced_by_a_file(sample: Session, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for force in ("", " --force"):
        with pytest.raises(CommandError, match="pipe: is not a regular file, so it cannot be replaced"):
            rows(sample, f"report --to {tmp_path}/pipe{force}")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_an_empty_point_is_none(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'': not a point in the log"):
        rows(sample, f"report --to {tmp_path}/x.html --since ''")
    with pytest.raises(UsageError, match="'': not a point in the log"):
        rows(sample, "topics --as-of ''")


def test_what_changed_begins_with_the_first_record_of_the_report(sample: Session, tmp_path: Path) -> None:
    """Record 182 took the leader of legacy-import-0."""
    rows(sample, f"report --to {tmp_path / 'a.html'} --since 182")
    text = _Page((tmp_path / "a.html").read_text()).text
    assert "diff 181 now" in text and "log --since 182 --newest-first" in text


@pytest.mark.parametrize("offset", [60, 100, 150])
def test_a_report_on_the_past_is_that_of_a_log_that_ends_there(sample: Session, tmp_path: Path, offset: int) -> None:
    run(sample, f"save {tmp_path / 'saved'} --as-of {offset}")
    of_past = rows(sample, f"report --to {tmp_path / 'past.html'} --as-of {offset}")
    of_saved = rows(opened(tmp_path / "saved"), f"report --to {tmp_path / 'saved.html'}")
    assert of_past == of_saved


def test_an_hour_ends_at_the_point_that_is_shown(tmp_path: Path) -> None:
    hour = 3_600_000
    change = builders.value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value="1")
    batches = [builders.timed_batch([change], [builders.TIME + number * hour], number) for number in range(9)]
    builders.write_log(tmp_path / "log", *batches)
    listed = rows(opened(tmp_path / "log"), f"report --to {tmp_path / 'a.html'} --as-of 4")
    assert {row["section"]: row["rows"] for row in listed}["records"] == 2
    with pytest.raises(UsageError, match="--since 7 is after the point in time that is shown, offset 4"):
        rows(opened(tmp_path / "log"), f"report --to {tmp_path / 'b.html'} --as-of 4 --since 7")


def test_a_log_that_was_cleaned_has_changes_from_the_oldest_state_that_is_known(tmp_path: Path) -> None:
    node = builders.FIXTURES / "4.2.1-rolled" / "controller-3001"
    listed = {row["section"]: row["error"] for row in rows(opened(node), f"report --to {tmp_path / 'a.html'}")}
    assert listed["changes"] is None and listed["records"] is None
