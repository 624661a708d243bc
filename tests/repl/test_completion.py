"""Cursor positions on the sample and what is offered there. No terminal is involved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.engine import levels, registry
from kshell.engine.completion import LIMIT, Completions, complete
from kshell.engine.declaration import Arg, Command, Flag
from kshell.engine.session import Session
from kshell.repl.completion import quietly
from kshell.sources.directory.source import DirectorySource
from kshell.tree.node import Directory, Node, leaf
from tests.repl.conftest import DEMO


def lines(session: Session, before: str) -> list[str]:
    """The lines that the candidates make of ``before``."""
    found = complete(session, before)
    return [before[: found.start] + one.text for one in found.candidates]


TOPICS = "cat /image/topics/byName/"
QUOTAS = "cat /image/clientQuotas/"

ONE_OR_FEW = [
    # commands
    ("tre", ["tree"]),
    ("nosuch", []),
    ("  tre", ["  tree"]),
    ("'tre", ["'tree'"]),
    ("/im", ["/image/"]),
    ("pwd; /image/prov", ["pwd; /image/provenance"]),
    ("nosuch ", []),
    # flags
    ("ls --rec", ["ls --recursive"]),
    ("ls -l", ["ls -l"]),
    ("ls -lR --rec", []),
    ("ls --long --lo", []),
    ("ls --as-of=3 --as", []),
    ("ls -- --rec", []),
    ("ls --nosuch", []),
    # values of flags
    ("ls -o js", ["ls -o json", "ls -o jsonl"]),
    ("ls --output=y", ["ls --output=y"[:-1] + "yaml"]),
    ("ls --color ne", ["ls --color never"]),
    ("ls --as-of ", []),
    ("ls --as-of -1h /quo", ["ls --as-of -1h /quorum/"]),
    ("ls --nosuch=", []),
    # paths
    ("ls /", ["ls /image/", "ls /local/", "ls /log/", "ls /quorum/", "ls /snapshots/"]),
    ("ls im", ["ls image/"]),
    ("ls /image/t", ["ls /image/topics/"]),
    ("ls /image /quo", ["ls /image /quorum/"]),
    ("cat /image/prov", ["cat /image/provenance"]),
    (f"{TOPICS}pay", [f"{TOPICS}payments.v2/"]),
    (f"{TOPICS}orders/n", [f"{TOPICS}orders/name"]),
    (f"{TOPICS}nosuch/", []),
    (f"{TOPICS}orders/0/", []),
    (f"{TOPICS}*/", []),
    ("cat /image/../quo", ["cat /image/../quorum/"]),
    ("cd ..", ["cd ../"]),
    ("cd ~", ["cd ~/"]),
    ("cd ~/top", ["cd ~/topics/"]),
    ("cat //image//prov", ["cat //image//provenance"]),
    # quotes
    ("cat '/image/prov", ["cat '/image/provenance'"]),
    ('cat "/image/prov', ['cat "/image/provenance"']),
    ("cat '/image/top", ["cat '/image/topics/"]),
    ("cat '/image/'prov", ["cat '/image/'provenance"]),
    ("cat '/image/prov'", ["cat /image/provenance"]),
    ("cat /image/'pr'\"ov", ['cat "/image/provenance"']),
    (f"{QUOTAS}ip(<", [f"{QUOTAS}ip(<default\\>)/"]),
    ("cat '/image/clientQuotas/ip(<", ["cat '/image/clientQuotas/ip(<default>)/"]),
    (f"{QUOTAS}clientId(note", [f"{QUOTAS}clientId(notebook%2Falice\\ %28dev%29)_user(alice)/"]),
    (f"{QUOTAS}ip(<default\\", [f"{QUOTAS}ip(<default\\>)/"]),
    # outside of a command's words
    ("ls | j", []),
    ("ls | ", []),
    ("ls # /im", []),
    ("ls > x /im", []),
]


@pytest.mark.parametrize(("before", "expected"), ONE_OR_FEW)
def test_candidates(session: Session, before: str, expected: list[str]) -> None:
    assert lines(session, before) == expected


def test_an_empty_line_offers_every_command_with_its_summary(session: Session) -> None:
    found = {one.text: one.meta for one in complete(session, "").candidates}
    assert {"ls", "cat", "cd"} <= found.keys()
    assert found["ls"] == "list directories of the tree"


def test_flags_come_with_help_and_only_once(session: Session) -> None:
    found = {one.text: one for one in complete(session, "ls -R -").candidates}
    assert found["--long"].display == "-l, --long"
    assert found["--long"].meta.startswith("with type")
    assert "--recursive" not in found
    assert {"--output", "--as-of", "--help", "-1"} <= found.keys()


def test_numbers_are_in_order_and_leaves_tell_their_type(session: Session) -> None:
    found = complete(session, f"{TOPICS}orders/").candidates
    assert [one.display for one in found][-3:] == ["7", "id", "name"]
    assert found[0].meta == "partition"


def test_relative_paths_start_at_the_working_directory(session: Session) -> None:
    session.change_directory(("image", "topics"))
    assert lines(session, "ls by") == ["ls byId/", "ls byName/"]
    assert lines(session, "ls ../feat") == ["ls ../features/"]


def test_aliases_are_offered_and_understood(session: Session) -> None:
    session.aliases |= {"ll": "ls -l", "bad": "'", "loop": "loop"}
    assert lines(session, "ll") == ["ll"]
    assert complete(session, "ll").candidates[0].meta == "alias: ls -l"
    assert lines(session, "ll /quo") == ["ll /quorum/"]
    assert "ll --long" not in lines(session, "ll --")
    assert lines(session, "bad /") == lines(session, "loop /") == []


def test_nothing_is_loaded_for_completion() -> None:
    session = Session(DirectorySource(DEMO))
    assert "ls /image/" in lines(session, "ls /")
    assert lines(session, "ls im") == ["ls image/"]
    for before in ("ls /image/", "ls /quorum/", "cat /log/", "cd ~/"):
        assert complete(session, before).candidates == ()
    assert not session.is_loaded


def test_files_after_a_redirection(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    (tmp_path / "a b.json").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").touch()
    monkeypatch.chdir(tmp_path)
    assert lines(session, "ls > ") == ["ls > a\\ b.json", "ls > sub/"]
    assert lines(session, "ls >> su") == ["ls >> sub/"]
    assert lines(session, "ls > sub/") == ["ls > sub/x"]
    assert lines(session, "ls > ~/s") == ["ls > ~/sub/"]
    assert lines(session, "ls >.h") == ["ls >.hidden"]
    assert lines(session, "ls > 'a") == ["ls > 'a b.json'"]
    assert lines(session, f"ls > {tmp_path}/su") == [f"ls > {tmp_path}/sub/"]
    assert lines(session, "ls > /no/such/") == []


class Names(Directory):
    """A directory of many odd names."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.asked = 0

    def segments(self) -> list[str]:
        self.asked += 1
        return self.names

    def child(self, segment: str) -> Node | None:
        return leaf("config", segment)()


def rooted(names: list[str]) -> tuple[Session, Names]:
    session = Session(DirectorySource(DEMO))
    _ = session.loaded
    session.__dict__["root"] = directory = Names(names)
    return session, directory


def test_relative_names_that_would_read_as_something_else() -> None:
    session, _ = rooted(["-x", "~", "a"])
    assert lines(session, "cat ") == ["cat ./-x", "cat a", "cat ./~"]


def test_a_million_names_are_sorted_once_and_cut() -> None:
    session, directory = rooted([f"topic-{number}" for number in range(1_000_000)])
    first = complete(session, "cat /topic-9")
    assert (first.total, len(first.candidates)) == (111_111, LIMIT)
    begin = time.perf_counter()
    again = complete(session, "cat /topic-12345")
    took = time.perf_counter() - begin
    assert again.candidates[0].display == "topic-12345"
    assert again.total == 11
    assert took < 0.05
    assert directory.asked == 1


def test_a_new_image_is_seen(session: Session) -> None:
    assert lines(session, f"{TOPICS}pay")
    session.reload()
    assert lines(session, f"{TOPICS}pay") == []
    _ = session.loaded
    assert lines(session, f"{TOPICS}pay")


def test_levels_are_forgotten_in_time(session: Session) -> None:
    held = [level for level in range(40) if levels.level_at(session, ("image", "configs", "TOPIC:orders")) and level]
    assert held
    for name in complete(session, TOPICS).candidates:
        complete(session, TOPICS + name.text)
    assert len(levels._remembered[session].levels) <= levels._MOST_LEVELS


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    def offered(session: Session, typed: str) -> list[str]:
        return ["red", "a green one", "blue"]

    def run(session: Session, args: Any) -> Any:
        raise NotImplementedError

    command = Command(
        name="probe",
        summary="for tests",
        run=run,
        args=(Arg("about", "a command", kind="command"), Arg("color", "a color", complete=offered, arity="*")),
        flags=(
            Flag(("-t", "--type"), "a type", metavar="TYPE", complete=offered, repeat=True),
            Flag(("-q",), "quiet"),
            Flag(("-o", "--output"), "its own", metavar="FILE"),
        ),
    )
    monkeypatch.setattr(registry, "names", lambda: ("probe", "ls"))
    monkeypatch.setattr(registry, "get", lambda name: command)
    yield command


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("probe l", ["probe ls"]),
        ("probe ls ", ["probe ls red", "probe ls a\\ green\\ one", "probe ls blue"]),
        ("probe ls red 'a g", ["probe ls red 'a green one'"]),
        ("probe -t b", ["probe -t blue"]),
        ("probe -tb -qt re", ["probe -tb -qt red"]),
        ("probe --type=b", ["probe --type=blue"]),
        ("probe --type=red --ty", ["probe --type=red --type"]),
        ("probe -q -q", []),
        ("probe -o ", []),
        ("probe -o x --out", []),
    ],
)
def test_what_commands_declare(probe: Command, session: Session, before: str, expected: list[str]) -> None:
    assert lines(session, before) == expected


def test_commands_are_not_asked_before_the_image_is_there(probe: Command) -> None:
    assert complete(Session(DirectorySource(DEMO)), "probe ls ") == Completions(9)


def test_total_counts_what_is_cut(session: Session, tmp_path: Path) -> None:
    for number in range(LIMIT + 7):
        (tmp_path / f"f{number:04}").touch()
    found = complete(session, f"ls > {tmp_path}/f")
    assert (found.total, len(found.candidates)) == (LIMIT + 7, LIMIT)


def test_a_settings_values_are_its_own(session: Session) -> None:
    assert [one.text.strip() for one in complete(session, "set pager ").candidates] == ["on", "off"]
    assert "json" in [one.text.strip() for one in complete(session, "set output j").candidates]
    assert not complete(session, "set nothing ").candidates


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("SELECT name FROM topi", ["SELECT name FROM topics", "SELECT name FROM topics_at("]),
        ("  select * from brok", ["  select * from brokers", "  select * from brokers_at("]),
        ("SELECT * FROM topics WHERE offl", ["SELECT * FROM topics WHERE offline"]),
        ("WITH x AS (SELECT 1) SELECT * FROM conf", [
            "WITH x AS (SELECT 1) SELECT * FROM config_changes",
            "WITH x AS (SELECT 1) SELECT * FROM configs",
            "WITH x AS (SELECT 1) SELECT * FROM configs_at(",
        ]),
        ("SELECT 'a b' FROM nosu", []),
    ],
)  # fmt: skip
def test_a_query_alone_is_completed_as_the_argument_of_sql(session: Session, before: str, expected: list[str]) -> None:
    _ = session.image
    found = quietly(session, before)
    assert sorted(before[: found.start] + one.text for one in found.candidates) == expected
