"""``./dev`` as it installs: where it puts the environment, and what it says meanwhile."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
INSTALLER = ROOT / "requirements/install.py"
LOCK = "".join(f"{name}==1 \\\n    --hash=sha256:{'0' * 64}\n" for name in ("numpy", "pyarrow", "pywin32"))


@pytest.fixture
def installer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", INSTALLER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dev(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    return subprocess.run([ROOT / "dev", *words], env=environment, capture_output=True, text=True, check=False)


def test_a_directory_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/thesis.txt").write_text("all of it")
    done = dev("demo", "ls", "/image", KSHELL_VENV=str(tmp_path / "work"), PYTHON=sys.executable)
    assert done.returncode == 1
    assert "is not empty, and no environment of Python: name another directory with KSHELL_VENV" in done.stderr
    assert (tmp_path / "work/thesis.txt").read_text() == "all of it"


def test_each_package_is_counted_and_named(
    installer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installer, "PAUSE", {True: 600, False: 600})
    lock = tmp_path / "lock.txt"
    lock.write_text(LOCK)
    progress = installer.Progress("installing lock.txt")
    installation = installer.Installation(lock, progress)
    shown = []
    for line in [
        "Ignoring pywin32: markers 'sys_platform == \"win32\"' don't match your environment",
        "Collecting numpy==1 (from -r lock.txt (line 1))",
        "  Downloading numpy-1-cp311-cp311-manylinux_2_28_x86_64.whl (16.6 MB)",
        "Collecting pyarrow==1 (from -r lock.txt (line 3))",
        "  Building wheel for pyarrow (pyproject.toml): started",
        "Installing collected packages: numpy, pyarrow",
    ]:
        installation.read(line)
        shown.append(progress._activity())
    progress.end("installed")
    assert shown[1:] == [
        "fetching package 1 of 2: numpy 1",
        "fetching package 1 of 2: numpy 1 (16.6 MB)",
        "fetching package 2 of 2: pyarrow 1",
        "building pyarrow, which comes as a source archive",
        "installing 2 packages, 0 done",
    ]
    log = [re.fullmatch(r"dev: \d+:\d\d (.*)", line) for line in capsys.readouterr().err.splitlines()]
    assert [line and line[1] for line in log] == [
        "installing lock.txt",
        "building pyarrow, which comes as a source archive",
        "installing 2 packages, 0 done",
        "installed",
    ]


def test_a_log_grows_while_pip_is_silent(
    installer: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installer, "PAUSE", {True: 0.01, False: 0.01})
    progress = installer.Progress("fetching package 1 of 2: pyspark 4.3.0 (455.9 MB)")
    log: list[str] = []
    while len(log) < 2:  # one line a second, because the line of the same second says nothing new
        time.sleep(0.05)
        log += capsys.readouterr().err.splitlines()
    progress.end("installed")
    assert len(set(log)) == len(log)
    assert all(line.endswith("fetching package 1 of 2: pyspark 4.3.0 (455.9 MB)") for line in log)


def test_what_pip_said_is_shown_where_it_fails(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"no-such-package==1 --hash=sha256:{'0' * 64}\n")
    done = subprocess.run(
        [sys.executable, "-I", INSTALLER, lock, "--no-index"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip failed; what it said at last:" in done.stderr
    assert "No matching distribution found for no-such-package==1" in done.stderr


def test_an_environment_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    venv.create(tmp_path / "theirs")
    done = dev("demo", "ls", "/image", KSHELL_VENV=str(tmp_path / "theirs"), PYTHON=sys.executable)
    assert done.returncode == 1
    assert "is an environment that ./dev did not make" in done.stderr
    assert (tmp_path / "theirs/bin/python").exists()


def test_a_command_of_kshell_is_no_verb() -> None:
    done = dev("compare-logs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "compare-logs is a command of kshell: ./dev shell compare-logs …, or on the sample: ./dev demo compare-logs …\n"
    )
    done = dev("compare-lgs")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "compare-lgs: no such verb")


def test_help_with_a_word_is_that_of_a_command(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "those-of-the-tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    shutil.copy(ROOT / "requirements/runtime.txt", environment / ".installed-runtime")
    done = [dev(*words, KSHELL_VENV=str(environment)) for words in (["help"], ["help", "why"])]
    assert [one.returncode for one in done] == [0, 0], done
    assert done[0].stdout.startswith("./dev VERB") and done[1].stdout.startswith("`why [")


def test_where_no_environment_can_be_made_another_directory_is_proposed(tmp_path: Path) -> None:
    """In a checkout that only another user may write, for instance."""
    done = dev("demo", "ls", "/image", KSHELL_VENV=str(tmp_path / "missing/venv"), PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"dev: cannot write {tmp_path}/missing/venv.lock, and so not make the environment beside it:"
        " name another directory with KSHELL_VENV\n"
    )


def test_a_link_to_dev_means_the_checkout_that_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/absolute").symlink_to(ROOT / "dev")
    (tmp_path / "bin/relative").symlink_to("absolute")
    for name in ("absolute", "relative"):
        done = subprocess.run([tmp_path / "bin" / name, "why"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr[:27]) == (2, "why is a command of kshell:"), done
