"""``support-bundle``: one file for somebody who was not there."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kshell.commands.support_bundle import CONTENTS
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.sources.choose import demo_directory
from tests import builders
from tests.commands.shell import opened, rows
from tests.full_disk import file_size_limit

UNKNOWN = bytes((1, 200, 1, 0))
"""The begin of a record of a type that no release has: frame version 1, type 200, version 0."""


@pytest.fixture
def sample() -> Session:
    return opened(demo_directory())


def files(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def answer(bundle: Path, name: str) -> Any:
    return json.loads(files(bundle)[name])["answer"]


def test_it_holds_the_answers_of_the_commands(sample: Session, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    rows(sample, f"support-bundle {bundle}")
    assert sample.remarks == [f"{bundle} has names of topics and hosts, no secrets: read it before you send it"]
    for content in CONTENTS:
        assert content.file in files(bundle) or content.file.replace(".json", ".error.json") in files(bundle)
    assert [topic["name"] for topic in answer(bundle, "topics.json")] == [row["name"] for row in rows(sample, "topics")]
    assert len(answer(bundle, "log.json")) == min(1000, len(rows(sample, "log")))
    assert b"what is wrong, and what to do next" in files(bundle)["README.txt"]


def test_the_manifest_and_the_rows_name_every_file_with_its_hash(sample: Session, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    listed = rows(sample, f"support-bundle {bundle}")
    contents = files(bundle)
    manifest = json.loads(contents.pop("manifest.json"))
    hashes = {name: hashlib.sha256(body).hexdigest() for name, body in contents.items()}
    assert {file["name"]: file["sha256"] for file in manifest["files"]} == hashes
    assert {row["file"]: row["sha256"] for row in listed} == hashes


def test_damage_is_in_the_answers_that_are_read_first(tmp_path: Path) -> None:
    directory = builders.copy_of(builders.FIXTURES / "4.3.1/controller-3000", tmp_path)
    log = sorted(directory.glob("*.log"))[-1]
    builders.flip(log, log.stat().st_size - 3)
    session = opened(directory)
    rows(session, f"support-bundle {tmp_path / 'b.zip'}")
    held = files(tmp_path / "b.zip")
    for name in ("status.json", "health.json", "topics.json"):
        found = json.loads(held[name])
        assert found["exitCode"] == 4
        assert any(log.name in note and "CRC" in note for note in found["notes"])
    verified = json.loads(held["verify.json"])
    assert "damaged" in {row["verdict"] for row in verified["answer"]}


def test_bytes_of_records_that_cannot_be_decoded_stay_out(tmp_path: Path) -> None:
    """They may be of a type that a later release has, and hold what is secret there; ``dump`` shows them."""
    hidden = b"hidden-text".hex()
    builders.write_log(tmp_path / "log", builders.batch([UNKNOWN + b"hidden-text"], 0))
    session = opened(tmp_path / "log")
    rows(session, f"support-bundle {tmp_path / 'b.zip'}")
    assert not any(hidden.encode() in body for body in files(tmp_path / "b.zip").values())
    assert hidden in str(rows(session, "dump"))


def test_it_can_be_of_an_earlier_moment(sample: Session, tmp_path: Path) -> None:
    rows(sample, f"support-bundle {tmp_path / 'then.zip'} --as-of 100")
    assert answer(tmp_path / "then.zip", "status.json")["cluster"]["offset"] == 100


def test_what_cannot_be_answered_is_said_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    builders.write_snapshot(
        directory, builders.snapshot([builders.value("TOPIC", name="t", topicId=builders.uuid(1))]), end_offset=3
    )
    snapshot = next(directory.glob("*.checkpoint"))
    snapshot.write_bytes(b"\xff" * 100 + snapshot.read_bytes()[100:])
    listed = rows(opened(directory), f"support-bundle {tmp_path / 'bundle.zip'}")
    errors = {row["file"]: row["error"] for row in listed if row["error"]}
    assert "byte 0" in errors["status.error.json"]
    contents = files(tmp_path / "bundle.zip")
    assert json.loads(contents["status.error.json"])["exitCode"] == 4
    assert json.loads(contents["info.json"])["exitCode"] == 4
    assert json.loads(contents["info.json"])["answer"]["problems"]


def test_only_its_owner_can_read_it(sample: Session, tmp_path: Path) -> None:
    rows(sample, f"support-bundle {tmp_path / 'bundle.zip'}")
    assert stat.S_IMODE((tmp_path / "bundle.zip").stat().st_mode) == 0o600


def test_a_file_that_exists_stays_unless_forced(sample: Session, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    bundle.write_text("mine")
    with pytest.raises(CommandError, match=r"bundle\.zip: exists"):
        rows(sample, f"support-bundle {bundle}")
    assert bundle.read_text() == "mine"
    rows(sample, f"support-bundle {bundle} --force")
    assert "status.json" in files(bundle)


def test_nothing_is_left_of_one_that_cannot_be_written(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"bundle\.zip: File too large"), file_size_limit(4096):
        rows(sample, f"support-bundle {tmp_path / 'bundle.zip'}")
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_not_there_is_named(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file or directory"):
        rows(sample, f"support-bundle {tmp_path / 'missing' / 'bundle.zip'}")


def test_nothing_is_written_into_the_source(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    builders.write_log(directory, builders.control_batch([builders.leader_change()]))
    with pytest.raises(CommandError, match="the source's own directory"):
        rows(opened(directory), f"support-bundle {directory / 'bundle.zip'}")


def test_secrets_cannot_be_asked_for(sample: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="never holds secrets"):
        rows(sample, f"support-bundle {tmp_path / 'bundle.zip'} --show-secrets")
