"""The files of a release: that users can check them as its page says, and that one they could not check is not made."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kshell.version import __version__
from release import build, prepare
from tests.needed import missing

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-27

### Added

- A thing.

## [1.1.0] - 2026-10-01

- Another.
"""


def test_the_changes_are_those_of_the_version() -> None:
    assert prepare.changes("1.2.0", CHANGELOG) == "### Added\n\n- A thing.\n"
    assert prepare.changes("1.1.0", CHANGELOG) == "- Another.\n"


def test_there_is_nothing_to_draft_where_nothing_changed() -> None:
    with pytest.raises(prepare.ReleaseError, match="nothing under Unreleased"):
        prepare.changes("Unreleased", CHANGELOG)


@pytest.mark.parametrize("version", ["1.2", "1.3.0"])
def test_a_version_of_which_the_changelog_says_nothing_is_not_released(version: str) -> None:
    with pytest.raises(prepare.ReleaseError, match=re.escape(f"no section `## [{version}] - YYYY-MM-DD`")):
        prepare.changes(version, CHANGELOG)


def test_a_release_that_is_neither_tagged_nor_a_draft_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare, "ROOT", tmp_path)  # no repository, and so no tag
    assert prepare.main([str(tmp_path / "dist")]) == 1
    assert f"this is not the commit of the tag v{__version__}" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()


def tagged(folder: Path) -> Path:
    """A repository whose only commit has the tag of this version."""
    made = folder / "repository"
    made.mkdir()
    dated = CHANGELOG.replace("[1.2.0]", f"[{__version__}]").replace("[Unreleased]\n", "[Unreleased]\n\n- To come.\n")
    (made / "CHANGELOG.md").write_text(dated)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--no-gpg-sign", "-m", "x"]
    for words in (["init", "-q"], ["add", "."], commit, ["tag", f"v{__version__}"]):
        subprocess.run(["git", *words], cwd=made, check=True)
    return made


def test_only_the_tagged_commit_unchanged_and_signed_is_released(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = tagged(tmp_path)
    monkeypatch.setattr(prepare, "ROOT", repository)
    made: list[tuple[str, Path | None]] = []
    monkeypatch.setattr(prepare, "_make", lambda folder, text, key: made.append((text, key)))
    assert prepare.main([str(tmp_path / "dist")]) == 1
    assert "a release is signed" in capsys.readouterr().err
    assert prepare.main([str(tmp_path / "dist"), "--sign", str(keys.key)]) == 0
    assert made == [("### Added\n\n- A thing.\n", keys.key)]
    (repository / ".git" / "info" / "exclude").write_text("left-over.py\n")
    (repository / "left-over.py").touch()
    assert prepare.main([str(tmp_path / "dist"), "--sign", str(keys.key)]) == 1
    assert "this is not the commit of the tag" in capsys.readouterr().err


def test_a_directory_gets_all_of_a_release_or_nothing(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(folder: Path) -> list[Path]:
        folder.mkdir()
        (folder / "kshell.pyz").write_text("kshell")
        return [folder / "kshell.pyz"]

    monkeypatch.setattr(build, "make", make)
    target = tmp_path / "below" / "dist"
    monkeypatch.setattr(prepare, "ROOT", tagged(tmp_path))
    assert prepare.main([str(target), "--sign", str(keys.key)]) == 1
    assert "nobody could check this signature" in capsys.readouterr().err
    assert list(target.parent.iterdir()) == []
    assert prepare.main([str(target), "--draft", "--sign", str(keys.key)]) == 1
    assert "a draft is not signed" in capsys.readouterr().err
    assert prepare.main([str(target), "--draft"]) == 0
    made = sorted(path.name for path in target.iterdir())
    assert made == ["RELEASE.md", "SHA256SUMS", "kshell.cdx.json", "kshell.pyz"]
    assert f" kB  {target}/kshell.pyz\n" in capsys.readouterr().out
    assert prepare.main([str(target), "--draft"]) == 1
    assert f"{target}: is no empty directory" in capsys.readouterr().err


class Keys:
    """A key of a maintainer, and whose signatures count."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("ssh-keygen") is None:
            missing("ssh-keygen is not installed")
        self.key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.key], check=True)
        self.signers = folder / "allowed_signers"
        self.signers.write_text(f"# a comment\nkshell {self.key.with_suffix('.pub').read_text()}")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "dist"
    made.mkdir()
    for name in ("a.whl", "a.tar.gz", "kshell.pyz"):
        (made / name).write_text(name)
    return made


def complete(folder: Path, key: Path | None, signers: Path) -> list[str]:
    files = [folder / name for name in ("a.whl", "a.tar.gz", "kshell.pyz")]
    return [path.name for path in prepare.complete(folder, files, "- A thing.\n", key=key, signers=signers)]


def checked(folder: Path) -> int:
    """What the steps of the page end with, in the directory of the files."""
    (steps,) = re.findall(r"^```sh\n(.*?)^```$", (folder / "RELEASE.md").read_text(), re.MULTILINE | re.DOTALL)
    return subprocess.run(["sh", "-ec", steps], cwd=folder, capture_output=True, check=False).returncode


def test_the_steps_of_the_page_pass_and_fail_for_any_byte_that_is_another(folder: Path, keys: Keys) -> None:
    made = complete(folder, keys.key, keys.signers)
    assert made == ["a.whl", "a.tar.gz", "kshell.pyz", "kshell.cdx.json", "SHA256SUMS", "SHA256SUMS.sig", "RELEASE.md"]
    assert sorted(made) == sorted(path.name for path in folder.iterdir())
    shutil.copy(keys.signers, folder)
    assert checked(folder) == 0
    for name in made[:-1]:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:] if len(whole) > 9 else b"other")
        assert checked(folder) != 0, name
        (folder / name).write_bytes(whole)
    assert checked(folder) == 0


def test_the_page_lists_the_files_and_the_changes(folder: Path, keys: Keys) -> None:
    complete(folder, keys.key, keys.signers)
    page = (folder / "RELEASE.md").read_text()
    assert page.startswith(f"# kshell {__version__}\n")
    assert re.findall(r"^\| (\S+\.\S+) \|", page, re.MULTILINE) == [
        "a.whl",
        "a.tar.gz",
        "kshell.pyz",
        "kshell.cdx.json",
    ]
    assert page.endswith("## What changed\n\n- A thing.\n")
    bill = json.loads((folder / "kshell.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == __version__


def test_a_signature_that_nobody_could_check_is_not_left(folder: Path, keys: Keys, tmp_path: Path) -> None:
    keys.signers.write_text("# nobody\n")
    with pytest.raises(prepare.ReleaseError, match="which needs a line `kshell ` with the public half"):
        complete(folder, keys.key, keys.signers)
    assert not (folder / "SHA256SUMS.sig").exists() and not (folder / "RELEASE.md").exists()
    with pytest.raises(prepare.ReleaseError, match="ssh-keygen did not sign"):
        complete(folder, tmp_path / "no-key", keys.signers)


def test_what_is_not_signed_says_so(folder: Path, tmp_path: Path) -> None:
    assert "SHA256SUMS.sig" not in complete(folder, None, tmp_path / "none")
    page = (folder / "RELEASE.md").read_text()
    assert page.startswith(f"# kshell {__version__}: a draft, and no release\n")
    assert "These files are not signed." in page
    assert checked(folder) == 0
    (folder / "kshell.pyz").write_text("another")
    assert checked(folder) != 0
