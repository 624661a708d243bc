"""Where ``kshell.pyz`` unpacks: only what nobody else can write to is used, and only with the archive's own bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kshell import unpacking
from kshell.unpacking import unpack

FILES = {"module.so": b"\x7fELF", "log/0.log": b"records"}


@pytest.fixture(autouse=True)
def no_place_but_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(unpacking, "_TEMPORARY", str(tmp_path / "file" / "tmp"))


def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}


def contents(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_the_files_are_private_and_stay_for_the_next_time(tmp_path: Path) -> None:
    folder = unpack(FILES, environment(tmp_path))
    assert folder is not None and Path(folder).parent == tmp_path / "home" / ".cache" / "kshell"
    assert contents(folder) == FILES
    assert {path.stat().st_mode & 0o077 for path in [Path(folder), *Path(folder).rglob("*")]} == {0}
    before = {path: path.stat().st_ino for path in Path(folder).rglob("*")}
    assert unpack(FILES, environment(tmp_path)) == folder
    assert {path: path.stat().st_ino for path in Path(folder).rglob("*")} == before
    assert unpack({"module.so": b"\x7fELF 2"}, environment(tmp_path)) != folder


def plant_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda path: path.write_bytes(b"\x7fEVI"),
        lambda path: path.write_bytes(b"\x7fELF and more"),
        lambda path: path.chmod(0o666),
        lambda path: path.rename(path.with_name("elsewhere")) and path.symlink_to("elsewhere"),
        plant_pipe,
    ],
    ids=["other bytes", "more bytes", "others may write", "a link", "a pipe"],
)
def test_what_is_not_the_archives_own_file_is_replaced(tmp_path: Path, tamper: Callable[[Path], object]) -> None:
    folder = unpack(FILES, environment(tmp_path))
    assert folder is not None
    path = Path(folder, "module.so")
    tamper(path)
    assert unpack(FILES, environment(tmp_path)) == folder
    assert path.read_bytes() == FILES["module.so"] and not path.is_symlink() and path.stat().st_mode & 0o077 == 0


def plant_open(place: Path) -> None:
    place.mkdir(parents=True)
    place.chmod(0o777)


def plant_link(place: Path) -> None:
    (place.parent / "theirs").mkdir(parents=True)
    place.symlink_to("theirs")


def plant_file(place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("")


def plant_open_parent(place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.parent.chmod(0o770)


@pytest.mark.parametrize("plant", [plant_open, plant_link, plant_file, plant_open_parent])
def test_a_directory_that_is_not_private_is_passed_over(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    plant(tmp_path / "home" / ".cache" / "kshell")
    folder = unpack(FILES, environment(tmp_path))
    assert folder is not None and Path(folder).parent == tmp_path / "tmp" / f"kshell-{os.geteuid()}"
    assert contents(folder) == FILES


def test_a_directory_of_another_user_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unpack(FILES, environment(tmp_path)) is not None
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert unpack(FILES, environment(tmp_path)) is None  # and what is made now belongs to the first one, too


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_unpacks_nothing_in_the_home_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "home" / ".cache").mkdir(parents=True)
    os.chown(tmp_path / "home", 4711, 4711)
    folder = unpack(FILES, environment(tmp_path))
    assert folder is not None and Path(folder).parent == tmp_path / "tmp" / "kshell-0"
    assert list((tmp_path / "home" / ".cache").iterdir()) == []


def test_without_a_home_and_a_place_for_temporary_files_there_is_none(tmp_path: Path) -> None:
    assert unpack(FILES, {}) is None
    assert unpack(FILES, {"HOME": "", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}) is None
    assert unpack(FILES, {"XDG_CACHE_HOME": str(tmp_path / "cache")}) is not None
