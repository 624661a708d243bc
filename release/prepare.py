"""A release as users get it: ``python -m release.prepare DIR --sign KEY``, which ``./dev release`` calls.

Beside what :mod:`release.build` makes: a bill of materials, the checksums of all files, the signature of these
(``ssh-keygen -Y``: OpenSSH 8.1 or later checks it, offline), and the page that says how, with the changes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from kshell.version import __version__
from release import build
from tests.tools.audit import bill

ROOT = Path(__file__).parents[1]
SIGNERS = ROOT / "release" / "allowed_signers"
"""Whose signature counts: ``kshell ssh-ed25519 AAAA…``, a line for each key (ssh-keygen(1), ALLOWED SIGNERS)."""
SIGNER = "kshell"
BILL = "kshell.cdx.json"
PAGE = "RELEASE.md"
_KINDS = {
    ".whl": "the package, for pip and uv",
    ".gz": "the sources that the package is made of",
    ".pyz": "kshell in one file, for a host that has Python and nothing else",
    ".json": "the bill of materials (CycloneDX 1.6)",
}


class ReleaseError(Exception):
    """Why this cannot be released, in a sentence that says what to do."""


def changes(version: str, changelog: str) -> str:
    """What CHANGELOG.md says of a version (``Unreleased``: of the next one).

    Raises ReleaseError where that is nothing.
    """
    heading = r"Unreleased\]" if version == "Unreleased" else rf"{re.escape(version)}\] - \d{{4}}-\d\d-\d\d"
    found = re.search(rf"^## \[{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        if version == "Unreleased":
            raise ReleaseError("CHANGELOG.md has nothing under Unreleased: there is nothing to release")
        raise ReleaseError(
            f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD` with lines in it: "
            "give what is under Unreleased the version of kshell/version.py and the date, or make a draft (--draft)"
        )
    return found[1].strip() + "\n"


def complete(
    folder: Path, files: Iterable[Path], text: str, *, key: Path | None = None, signers: Path = SIGNERS
) -> list[Path]:
    """Put what belongs to a release beside its files, and return all of it. Raises ReleaseError.

    ``text`` is what changed. Without a ``key`` (the private half, or a public one whose agent is at hand) nothing is
    signed, and the page says so.
    """
    (folder / BILL).write_text(bill())
    listed = [*files, folder / BILL]
    sums = build.write_sums(listed, folder)
    signature = [] if key is None else [_sign(sums, key, signers)]
    page = folder / PAGE
    page.write_text(_page(listed, text, is_signed=key is not None))
    return [*listed, sums, *signature, page]


def _sign(sums: Path, key: Path, signers: Path) -> Path:
    """The signature, which users can check: by a key that they know."""
    signature = sums.with_name(f"{sums.name}.sig")
    # What it says on standard error is for whoever holds the key: a passphrase, a token that wants to be touched.
    signing = subprocess.run(["ssh-keygen", "-Y", "sign", "-f", key, "-n", "file", sums], check=False)
    if signing.returncode:
        raise ReleaseError(f"{key}: ssh-keygen did not sign")
    check = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", SIGNER, "-n", "file", "-s", str(signature)]
    with sums.open("rb") as file:
        checking = subprocess.run(check, stdin=file, capture_output=True, text=True, check=False)
    if checking.returncode:
        signature.unlink()
        raise ReleaseError(
            f"{key}: nobody could check this signature against {signers}, which needs a line `{SIGNER} ` with the"
            f" public half of that key: {(checking.stderr or checking.stdout).strip()}"
        )
    return signature


def _page(files: Iterable[Path], text: str, *, is_signed: bool) -> str:
    rows = [f"| {path.name} | {_KINDS[path.suffix]} | {path.stat().st_size // 1000:,} kB |" for path in files]
    return "\n".join(
        [
            f"# kshell {__version__}" + ("" if is_signed else ": a draft, and no release"),
            "",
            "| file | what it is | size |",
            "| --- | --- | --- |",
            *rows,
            "",
            "docs/installation.md says how to install each.",
            "",
            "## Verify it",
            "",
            _SIGNED if is_signed else _UNSIGNED,
            "",
            "## What changed",
            "",
            text,
        ]
    )


_SIGNED = f"""\
`release/allowed_signers` of the repository names the keys that sign releases: take it from there, not from beside these
files. Then, where the files are:

```sh
ssh-keygen -Y verify -f allowed_signers -I {SIGNER} -n file -s SHA256SUMS.sig < SHA256SUMS
sha256sum --check --ignore-missing SHA256SUMS
```"""
_UNSIGNED = """\
These files are not signed. Their checksums say that they are whole:

```sh
sha256sum --check SHA256SUMS
```"""


def _check_tag() -> None:
    """Raises ReleaseError unless what is checked out is the commit of the version's tag, unchanged."""
    tag = f"v{__version__}"
    # Files that only this checkout is told to overlook are built into the wheel all the same.
    untracked = _git("ls-files", "--others", "--exclude-per-directory=.gitignore")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    if untracked or changed or tag not in _git("tag", "--points-at").split():
        raise ReleaseError(f"this is not the commit of the tag {tag}, unchanged: `git checkout {tag}`, or --draft")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def _make(folder: Path, text: str, key: Path | None) -> None:
    """Make a directory with all of it, or none."""
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReleaseError(f"{folder}: is no empty directory, and what is there would look like a part of this release")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary, "made")
        files = complete(made, build.make(made), text, key=key)
        made.replace(folder)
    for path in files:
        print(f"{(folder / path.name).stat().st_size // 1000:6,} kB  {folder / path.name}")


def main(arguments: Sequence[str]) -> int:
    """Exit code 1, and nothing but complaints, where something keeps this from being released."""
    parser = argparse.ArgumentParser(prog="./dev release", description="All files of a release, and its page.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where they go: an empty directory, or a new one")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign with this SSH key")
    parser.add_argument("--draft", action="store_true", help="of any commit, with what is under Unreleased")
    options = parser.parse_args(arguments)
    try:
        if options.draft and options.sign:
            raise ReleaseError("a draft is not signed: nobody could tell it from the release")
        if not options.draft:
            _check_tag()
        changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
        text = changes("Unreleased" if options.draft else __version__, changelog)
        if options.sign is None and not options.draft:
            raise ReleaseError("a release is signed: --sign KEY, or --draft")
        _make(options.folder, text, options.sign)
    except (ReleaseError, OSError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
