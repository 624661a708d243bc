"""What is handed out: the wheel and the source archive as users install them, and ``kshell.pyz`` on a bare Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from release import build, zipapp
from tests.needed import missing

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "kshell" / "demo"
COMMANDS = (
    ("status",),
    ("health", "-o", "yaml"),
    ("why", "legacy-import-0"),
    ("cat", "/image/topics/byName/legacy-import/0"),
    ("diff", "160", "now", "--color", "always"),
    ("dump", "--type", "REMOVE_TOPIC_RECORD", "-o", "json", "--color", "always"),
    ("help", "why"),
    ("verify", "--deep"),
    ("completion", "bash"),
)
"""Together they need every package that kshell depends on, but the interactive shell's."""

pytestmark = pytest.mark.slow
Answer = tuple[int, str, str]


def answer(command: Sequence[str | Path], **variables: str) -> Answer:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/proc/nonexistent", "COLUMNS": "80"} | variables
    words = list(map(str, command))
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd="/")
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def of_the_checkout() -> list[Answer]:
    checkout = (sys.executable, "-P", "-m", "kshell", "--demo")
    return [answer((*checkout, *command), PYTHONPATH=str(ROOT)) for command in COMMANDS]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build.build(tmp_path_factory.mktemp("dist"))


def run(*command: str | Path) -> None:
    """A step that must work; what it said is shown where it does not."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned wheels for this Python: from here on nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-I", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input")
    pins = ("--no-deps", "--only-binary=:all:", "--require-hashes", "-r", ROOT / "requirements" / "runtime.txt")
    done = subprocess.run([*pip, *pins, "-d", folder], capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"pip cannot fetch requirements/runtime.txt: {done.stderr[-300:]}")
    return folder


# --- the wheel and the source archive --------------------------------------------------------------------------------


def test_the_source_archive_holds_what_the_wheel_is_made_of_and_no_tests(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, archive = built
    run("tar", "-xzf", archive, "-C", tmp_path)
    (unpacked,) = tmp_path.iterdir()
    assert {path.name for path in unpacked.iterdir() if path.is_dir()} == {"docs", "kshell"}
    hatchling = (sys.executable, "-I", "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again"))
    subprocess.run(hatchling, cwd=unpacked, check=True, capture_output=True)
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()


def install_with_pip(environment: Path, wheel: Path, wheelhouse: Path) -> None:
    run(sys.executable, "-I", "-m", "venv", environment)
    pip = (environment / "bin/python", "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-index", "--no-compile", "--find-links", wheelhouse, f"{wheel}[live]")


def install_with_uv(environment: Path, wheel: Path, wheelhouse: Path) -> None:
    uv = (sys.executable, "-I", "-m", "uv", "--quiet", "--offline", "--no-config", "--no-cache")
    run(*uv, "venv", "--python", sys.executable, environment)
    where = ("--python", environment / "bin/python", "--no-index", "--find-links", wheelhouse)
    run(*uv, "pip", "install", *where, f"{wheel}[live]")


@pytest.mark.parametrize("install", [install_with_pip, install_with_uv])
def test_an_installed_kshell_answers_as_the_checkout_does_and_has_its_manual_page(
    install: Callable[[Path, Path, Path], None],
    built: tuple[Path, Path],
    wheelhouse: Path,
    tmp_path: Path,
    of_the_checkout: list[Answer],
) -> None:
    environment = tmp_path / "environment"
    install(environment, built[0], wheelhouse)
    kshell = environment / "bin" / "kshell"
    assert [answer((kshell, "--demo", *command)) for command in COMMANDS] == of_the_checkout
    page = environment / "share/man/man1/kshell.1"
    assert page.read_bytes() == (ROOT / "docs/reference/kshell.1").read_bytes()
    code, out, _ = answer((environment / "bin" / "kshell-pipeline", "--help"))
    assert code == 0 and "kshell-pipeline" in out


# --- kshell.pyz ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_file(built: tuple[Path, Path], wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with extensions for this Python only; a whole one differs by more of them."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    targets = [(python, platform) for platform in zipapp.PLATFORMS if platform[0].endswith(os.uname().machine)]
    return zipapp.make(built[0], tmp_path_factory.mktemp("one") / "kshell.pyz", targets)


def bare(one_file: Path, *arguments: str | Path, **variables: str) -> Answer:
    """On a Python without a single installed package, which takes nothing from its environment."""
    return answer((sys.executable, "-I", "-S", one_file, *arguments), **variables)


def test_one_file_answers_as_the_checkout_does_and_writes_only_in_its_private_directory(
    one_file: Path, tmp_path: Path, of_the_checkout: list[Answer]
) -> None:
    (tmp_path / "home").mkdir()
    one_file.parent.chmod(0o555)
    home = str(tmp_path / "home")
    for _ in range(2):  # what the first one unpacks the second one uses
        assert [bare(one_file, "--demo", *command, HOME=home) for command in COMMANDS] == of_the_checkout
    assert list(one_file.parent.iterdir()) == [one_file]
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "home").parts[:2] for path in written} == {(".cache", "kshell")}
    assert len([path for path in written if path.suffix == ".so"]) == (1 if sys.platform == "linux" else 0)
    sample = {path.name: path.read_bytes() for path in SAMPLE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {path.name: path.read_bytes() for path in written if path.suffix != ".so"} == sample


def test_without_a_compiled_module_all_is_checked_and_a_note_says_once_that_it_is_slow(
    built: tuple[Path, Path], wheelhouse: Path, tmp_path: Path
) -> None:
    one_file = zipapp.make(built[0], tmp_path / "kshell.pyz", [])
    compiled = answer(
        (sys.executable, "-P", "-m", "kshell", "-d", SAMPLE, "verify", "--deep", "-o", "json"), PYTHONPATH=str(ROOT)
    )
    code, out, notes = bare(one_file, "-d", SAMPLE, "-c", "verify --deep -o json", "-c", "version")
    assert (code, out.startswith(compiled[1])) == (compiled[0], True)
    assert notes.count("checksums are computed in plain Python here") == 1
    log = bytearray((SAMPLE / "__cluster_metadata-0" / "00000000000000000158.log").read_bytes())
    log[-1] ^= 1
    (tmp_path / "damaged.log").write_bytes(log)
    assert bare(one_file, "-d", tmp_path / "damaged.log", "status")[0] == 4


def test_what_one_file_lacks_is_said(one_file: Path, tmp_path: Path) -> None:
    code, _, error = bare(one_file, "--demo", "sql", "select 1", HOME=str(tmp_path))
    assert code == 2 and "kshell.pyz comes without extras: install kshell from its wheel, with [sql]" in error


def test_one_file_has_the_licences_of_what_is_in_it(one_file: Path) -> None:
    with zipfile.ZipFile(one_file) as archive:
        names = archive.namelist()
    licences = [name for name in names if re.search(r"\.dist-info/.*(licen|copying)", name, re.IGNORECASE)]
    licensed = {name.partition("-")[0].replace("_", "-").lower() for name in licences}
    assert zipapp.pins(zipapp.RUNTIME.read_text()).keys() - zipapp.LEFT_OUT - licensed == set()
    assert any(re.fullmatch(r"crc32c/.*\.c", name) for name in names)  # the LGPL wants the sources to come along
