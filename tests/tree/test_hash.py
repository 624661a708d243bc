"""The hash of an image: the same wherever the same metadata is, and another wherever any leaf differs."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.engine.session import Session
from kshell.errors import CommandError, DataError, OutOfReachError
from kshell.sources.choose import demo_directory
from kshell.tree.hash import image_hash
from tests import builders
from tests.commands.shell import opened, run, value
from tests.leaves import values
from tests.test_fixtures import DIRECTORIES, ident


def by_the_definition(session: Session, below: str = "/image") -> str:
    """What the documentation says, without any of the product's order or streaming."""
    lines = [
        f"{path}\t{json.dumps(leaf, ensure_ascii=False, sort_keys=True, separators=(',', ':'))}\n".encode()
        for path, leaf in values(session).items()
        if path != "/image/provenance" and (path == below or path.startswith(f"{below}/"))
    ]
    return "sha256:" + hashlib.sha256(b"".join(sorted(lines))).hexdigest()


@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_it_is_what_the_documentation_says(directory: Path) -> None:
    session = opened(directory, show_secrets=True)
    assert image_hash(session.image) == by_the_definition(session)


def answer(session: Session, line: str = "hash") -> dict[str, object]:
    from kshell.engine import plain

    return plain.value(run(session, line))  # type: ignore[no-any-return]


def reached(nodes: list[Session], offset: int) -> list[dict[str, object]]:
    """The answers of the nodes that have that offset: one that was away ends before, one that was new begins behind."""
    answers = []
    for node in nodes:
        with contextlib.suppress(OutOfReachError):
            answers.append(answer(node, f"hash --as-of {offset}"))
    return [each for each in answers if each["offset"] == offset]


CLUSTERS = sorted({path.parent for path in DIRECTORIES if len([d for d in DIRECTORIES if d.parent == path.parent]) > 1})


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_all_nodes_of_a_cluster_have_the_same_at_the_same_offset(cluster: Path) -> None:
    nodes = [opened(directory) for directory in DIRECTORIES if directory.parent == cluster]
    groups = [reached(nodes, node.image.provenance.offset) for node in nodes]
    assert max(map(len, groups)) > 1
    assert all(each == group[0] for group in groups for each in group)


def test_a_part_of_the_image_has_a_hash_of_its_own() -> None:
    session = opened(demo_directory(), show_secrets=True)
    assert answer(session, "hash /image/acls")["hash"] == by_the_definition(session, "/image/acls")
    leaf = "/image/topics/byName/legacy-import/0"
    assert answer(session, f"hash {leaf}")["hash"] == by_the_definition(session, leaf)


def test_a_secret_counts_and_is_not_shown() -> None:
    hidden, shown = opened(demo_directory()), opened(demo_directory(), show_secrets=True)
    assert value(hidden, "cat /image/scram/SCRAM-SHA-256/alice") != value(shown, "cat /image/scram/SCRAM-SHA-256/alice")
    assert answer(hidden) == answer(shown)


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), min_size=1, max_size=8, unique=True))
def test_names_of_any_kind_keep_the_order_of_bytes(names: list[str]) -> None:
    import tempfile

    topics = [builders.value("TOPIC", name=name, topicId=builders.uuid(i + 1)) for i, name in enumerate(names)]
    with tempfile.TemporaryDirectory() as folder:
        builders.write_log(Path(folder), builders.control_batch([builders.leader_change()]), builders.batch(topics, 1))
        session = opened(folder, show_secrets=True)
        assert image_hash(session.image) == by_the_definition(session)


def test_each_offset_that_changes_a_leaf_changes_the_hash() -> None:
    seen: dict[str, str] = {}
    session = opened(demo_directory(), show_secrets=True)
    session.travels()
    for offset in range(0, 207, 9):
        then = session.reshape(point=str(offset))
        leaves = {path: leaf for path, leaf in values(then).items() if path != "/image/provenance"}
        text = json.dumps(leaves, sort_keys=True)
        assert seen.setdefault(image_hash(then.image), text) == text
    assert len(seen) == len(set(seen.values()))
    assert len(seen) > 10


def test_a_point_that_is_not_written_yet_is_no_other_hash() -> None:
    """A copy that only lags would be taken for one that differs."""
    then = opened(builders.FIXTURES / "4.3.1" / "controller-3000").reshape(point="99999")
    with pytest.raises(CommandError, match="there is no hash of offset 99999 to compare with"):
        run(then, f"hash --expect {'a' * 64}")
    assert run(then, "hash").exit_code == 0


def test_what_is_expected_decides_the_exit_code() -> None:
    session = opened(demo_directory())
    digest = answer(session)["hash"]
    assert run(session, f"hash --expect {digest}").exit_code == 0
    assert run(session, f"hash --expect {str(digest).removeprefix('sha256:').upper()}").exit_code == 0
    assert run(session, f"hash --as-of 100 --expect {digest}").exit_code == 1


def test_another_hash_says_nothing_where_the_image_lacks_newer_records(tmp_path: Path) -> None:
    newer = b"\x01\x63\x00"  # a record type that no release has yet
    builders.write_log(tmp_path, builders.batch([builders.value("TOPIC", name="t", topicId=builders.uuid(1)), newer]))
    session = opened(tmp_path)
    with pytest.raises(DataError, match="lacks records that are newer than this kshell"):
        run(session, f"hash --expect {'a' * 64}")
    assert run(session, f"hash --expect {answer(session)['hash']}").exit_code == 0
