"""Several sources at once, by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kshell.errors import SourceNotFoundError, UsageError
from kshell.sources.choose import demo_directory
from tests import builders
from tests.magic.shell import Cells


def test_without_a_source_the_error_says_how_to_connect(bare: Cells) -> None:
    error = bare.fails("%kafka ls /image")
    assert isinstance(error, UsageError) and "%kafka connect" in (error.hint or "")
    assert "%kafka connect" in (bare.fails("%kafka connect").hint or "")
    assert bare.run("%kafka features map --limit 1").exit_code == 0


def test_connect_says_what_is_open(bare: Cells) -> None:
    result = bare.run("%kafka connect --demo")
    assert result.to_dict()["offset"] == 206
    assert [row["name"] for row in bare.run("%kafka -l")] == ["demo"]


def test_sessions_have_their_own_place(bare: Cells, tmp_path: Path) -> None:
    copy = tmp_path / "broker-7"
    shutil.copytree(demo_directory(), copy)
    bare.run(f"%kafka connect -d {copy} --as-of 160")
    bare.run("%kafka connect --demo --name now")
    bare.run("%%kafka --context broker-7\ncd /image/topics")
    rows = bare.run("%kafka -l").rows
    assert [(row["name"], row["isCurrent"], row["directory"], row["asOf"]) for row in rows] == [
        ("broker-7", False, "/image/topics", 160),
        ("now", True, "/", None),
    ]
    path = "/image/topics/byName/legacy-import/0"
    assert bare.run(f"%kafka cat {path}").to_dict()["leader"] == -1
    assert bare.run(f"%kafka cat {path} --context broker-7").to_dict()["leader"] == 3
    bare.run("%kafka --close now")
    assert [row["name"] for row in bare.run("%kafka -l") if row["isCurrent"]] == ["broker-7"]
    bare.run("%kafka --close")
    assert bare.run("%kafka -l").rows == []


def test_what_is_not_there(cells: Cells, tmp_path: Path) -> None:
    assert isinstance(cells.fails(f"%kafka connect -d {tmp_path / 'nope'}"), SourceNotFoundError)
    assert [row["name"] for row in cells.run("%kafka -l")] == ["demo"]
    assert isinstance(cells.fails("%kafka --context nope ls"), UsageError)
    assert isinstance(cells.fails("%kafka --close nope"), UsageError)
    assert isinstance(cells.fails("%kafka connect --demo -d x"), UsageError)
    assert isinstance(cells.fails("%kafka connect somewhere"), UsageError)


def test_a_new_source_takes_the_place_of_one_with_its_name(cells: Cells) -> None:
    cells.run("%kafka cd /image")
    cells.run("%kafka connect --demo")
    assert cells.run("%kafka pwd").to_dict() == "/"
    assert len(cells.run("%kafka -l")) == 1


def test_the_environment_is_the_first_session(bare: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSHELL_DIRECTORY", demo_directory())
    assert bare.run("%kafka pwd").to_dict() == "/"
    assert [row["name"] for row in bare.run("%kafka -l")] == ["demo"]


def test_a_context_of_the_configuration_opens_by_its_name(bare: Cells, tmp_path: Path) -> None:
    bare.run(f"%kafka context add prod -d {demo_directory()}")
    assert bare.run("%kafka --context prod pwd").to_dict() == "/"
    bare.run("%kafka connect --context prod --name p2")
    assert [row["name"] for row in bare.run("%kafka -l")] == ["prod", "p2"]


@pytest.mark.parametrize(
    "key",
    [
        "ssl.keystore.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.key",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
    ],
)
def test_credentials_are_refused(bare: Cells, key: str) -> None:
    error = bare.fails(f"%kafka connect -q localhost:1 -X {key}=s3cret-canary")
    assert isinstance(error, UsageError)
    assert "s3cret-canary" not in bare.printed + bare.stderr + str(error)


def test_where_a_token_comes_from_is_no_credential(bare: Cells) -> None:
    error = bare.fails("%kafka connect -q localhost:1 -X sasl.oauthbearer.token.endpoint.url=https://localhost/")
    assert "credential" not in error.message


def test_reload_keeps_the_sessions(cells: Cells) -> None:
    cells.run("%kafka cd /image")
    cells.run("%reload_ext kshell")
    assert cells.run("%kafka pwd").to_dict() == "/image"
    assert cells.complete("%kafka timel|") == ["%kafka timeline"]
    cells.run("%unload_ext kshell")
    assert "kafka" not in cells.ip.magics_manager.magics["line"]
    cells.run("%load_ext kshell")
    assert cells.run("%kafka pwd").to_dict() == "/image"


def test_exit_does_not_end_the_kernel(cells: Cells) -> None:
    assert isinstance(cells.fails("%kafka exit"), UsageError)


def test_what_is_to_be_said_of_rows_stands_below_them(bare: Cells, tmp_path: Path) -> None:
    malformed = builders.control_batch([builders.leader_change()]), builders.batch([b"\x01\x02\x00"], 1)
    builders.write_log(tmp_path / "data", *malformed)
    assert bare.run(f"%kafka connect -d {tmp_path / 'data'}").exit_code == 4
    result = bare.run("%kafka dump")
    assert result.exit_code == 4 and any("TOPIC_RECORD v0: " in note for note in result.notes)
    assert not any("TOPIC_RECORD v0: " in note for note in bare.run("%kafka pwd").notes)


def test_a_note_on_an_answer_is_shown_with_every_such_answer(cells: Cells) -> None:
    for _ in range(2):
        late = cells.run("%kafka log --since 9999")
        assert late.news == ["the log ends with offset 206, before --since (offset 9999)"] == list(late.notes)
        [note] = cells.run("%kafka topics --as-of 99999 --limit 1").news
        assert note.startswith("offset 99999 is not written yet")
    assert not cells.run("%kafka topics --limit 1").notes


def test_a_note_on_the_source_is_shown_once_and_stays_in_the_results(bare: Cells, tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.batch([builders.value("TOPIC", name="t", topicId=builders.uuid(1))]))
    bare.run(f"%kafka connect -d {tmp_path}")
    for _ in range(2):
        again = bare.run("%kafka topics")
        assert [note for note in again.notes if note.startswith("last record ")] and not again.news
        assert "last record" not in repr(again)


def test_two_directories_of_one_name_are_two_sessions(bare: Cells, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        shutil.copytree(demo_directory(), tmp_path / parent / "metadata")
        bare.run(f"%kafka connect -d {tmp_path / parent / 'metadata'}")
    assert [row["name"] for row in bare.run("%kafka -l")] == ["metadata", "metadata-2"]
    bare.run(f"%kafka connect -d {tmp_path / 'a' / 'metadata'}")
    assert [row["name"] for row in bare.run("%kafka -l")] == ["metadata-2", "metadata"]


def test_options_of_the_answer_and_home(bare: Cells, tmp_path: Path) -> None:
    shutil.copytree(demo_directory(), tmp_path / "copy")
    for line in ("-o json connect -d ~/copy", "connect -d ~/copy -o json --timeout 20"):
        bare.run(f"%kafka {line}")
        assert bare.text().startswith("{")


def test_damage_is_said_whenever_it_is_there(bare: Cells, tmp_path: Path) -> None:
    copy = tmp_path / "bad"
    shutil.copytree(demo_directory(), copy)
    log = max((copy / "__cluster_metadata-0").glob("*.log"))
    raw = bytearray(log.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    log.write_bytes(bytes(raw))
    for _ in range(2):
        result = bare.run(f"%kafka connect -d {copy} --name s")
        assert result.exit_code == 4 and any("byte" in note for note in result.notes)
        assert any("byte" in note for note in bare.run("%kafka ls /image").notes)
