"""Globs over the sample's tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine import plain
from kshell.engine.execution import prepare_words
from kshell.engine.session import Session
from kshell.errors import NoSuchPathError, UsageError
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.tree.globs import component, escape, expand, expand_braces, is_glob, unescape
from kshell.tree.paths import join
from tests.builders import batch, value, write_log
from tests.commands.shell import opened, rows


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(DirectorySource(demo_directory()))


def paths(session: Session, pattern: str, cwd: tuple[str, ...] = ()) -> list[str]:
    return [join(segments) for segments, _ in expand(session.root, cwd, pattern)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/image/topics/byName/or*", ["/image/topics/byName/orders"]),
        ("/image/topics/byName/order?", ["/image/topics/byName/orders"]),
        ("/image/topics/byName/[op]*", ["/image/topics/byName/orders", "/image/topics/byName/payments.v2"]),
        ("/image/topics/byName/s[!h]*", ["/image/topics/byName/search_index.updates"]),
        ("/image/cluster/brokers/{1,3}", ["/image/cluster/brokers/1", "/image/cluster/brokers/3"]),
        ("/image/{features,scram}/**/alice", ["/image/scram/SCRAM-SHA-256/alice", "/image/scram/SCRAM-SHA-512/alice"]),
        ("/image/cluster/brokers/[1-2]", ["/image/cluster/brokers/1", "/image/cluster/brokers/2"]),
        ("/image/topics/byName/\\*", []),
        ("/image/topics/byName/nothing*", []),
        ("/image/features/metadataVersion/*", []),
    ],
)
def test_expand(session: Session, pattern: str, found: list[str]) -> None:
    assert paths(session, pattern) == found


def test_relative_to_the_working_directory(session: Session) -> None:
    assert paths(session, "../features/meta*", ("image", "scram")) == ["/image/features/metadataVersion"]
    assert paths(session, "~/feat*") == ["/image/features"]


def test_two_stars_take_every_level(session: Session) -> None:
    found = paths(session, "/image/cluster/**")
    assert "/image/cluster" in found and "/image/cluster/brokers" in found and "/image/cluster/brokers/1" in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a{b,c}d", ["abd", "acd"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("a{b,{c,d}}", ["ab", "ac", "ad"]),
        ("a{b}", ["a{b}"]),
        ("a{b,c", ["a{b,c"]),
        ("a\\{b,c}", ["a\\{b,c}"]),
        ("{,x}y", ["y", "xy"]),
        ("{a}{b,c}", ["{a}b", "{a}c"]),
    ],
)
def test_braces(pattern: str, words: list[str]) -> None:
    assert expand_braces(pattern) == words


def test_braces_are_bounded() -> None:
    with pytest.raises(UsageError, match="more than"):
        expand_braces("{a,b}" * 20)


@given(st.text())
def test_an_escaped_text_matches_itself_only(text: str) -> None:
    pattern = escape(text)
    assert not is_glob(pattern)
    assert unescape(pattern) == text
    assert component(pattern).fullmatch(text)
    assert not component(pattern).fullmatch(text + "x")


@given(st.text(alphabet="ab*?[]!^\\{},-"), st.text(alphabet="ab[]-"))
def test_no_pattern_is_an_error(pattern: str, name: str) -> None:
    component(pattern).fullmatch(name)


def matches(pattern: str, name: str) -> bool:
    """What ``*`` and ``?`` mean, tried in every way that there is."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return matches(pattern[1:], name) or (bool(name) and matches(pattern, name[1:]))
    return bool(name) and pattern[0] in ("?", name[0]) and matches(pattern[1:], name[1:])


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab", max_size=8))
def test_stars_and_question_marks_mean_what_they_do_in_a_shell(pattern: str, name: str) -> None:
    assert bool(component(pattern).fullmatch(name)) == matches(pattern, name)


def test_a_name_is_refused_in_one_pass_however_many_stars_there_are() -> None:
    """Tried in every way, the first of these would not end before the sun does."""
    assert not component("*a" * 40 + "*x").fullmatch("a" * 200)
    assert not component("*" * 60 + "x").fullmatch("a" * 200)
    assert component("*a" * 40 + "*").fullmatch("a" * 200)


def test_many_levels_of_two_stars_come_to_each_directory_once(session: Session) -> None:
    every = paths(session, "/**/1")
    assert len(every) > 10
    assert paths(session, "/" + "**/" * 40 + "1") == every
    assert paths(session, "/**/byName/**/**/1") == [path for path in every if "byName" in path]


def test_a_name_is_found_as_it_is_printed(tmp_path: Path) -> None:
    names = ["a\\b", "ab", "a[b", "a[b]", "[", "c\\"]
    quotas = [
        value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": name}], key="k", value=1.0, remove=False)
        for name in names
    ]
    write_log(tmp_path, batch([value("NO_OP")]), batch(quotas, 1))
    session = opened(tmp_path)
    printed = [row["path"] for row in rows(session, "find /image/clientQuotas -type directory")][1:]
    assert len(printed) == len(names)
    for path in printed:
        assert [join(segments) for segments, _ in session.find(path)] == [path]
        for command in ("blame", "log"):
            call = prepare_words(session, [command, path])
            assert len(list(call.run())) == 1, (command, path)  # type: ignore[call-overload]
        changes = prepare_words(session, ["diff", "0", "now", path]).run()
        assert {row["path"] for row in plain.objects(changes)} == {f"{path}/k"}  # type: ignore[arg-type]
    assert session.place("/image/clientQuotas/user(gone\\[1])") == ("image", "clientQuotas", "user(gone[1])")
    assert session.place("/image/clientQuotas/user(gone\\b)") == ("image", "clientQuotas", "user(gone\\b)")
    with pytest.raises(NoSuchPathError, match="nothing matches"):
        session.find("/image/clientQuotas/nosuch[a")
