"""The first moments of a command: nothing of the current directory is run, and Ctrl-C is no fault."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kshell.engine.execution import prepare
from kshell.errors import CommandError
from kshell.sources.choose import demo_directory
from tests.commands.shell import opened

ROOT = Path(__file__).parents[1]
SHADOWED = ("typing", "yaml", "json", "gc", "signal", "pygments", "wcwidth", "crc32c")
"""Not what Python itself imports to find a module (``collections``): that is run before any line of kshell's."""


@pytest.mark.parametrize("line", ["version -o yaml", "cat /image/topics/byName/orders/0 --color always", "help log"])
def test_modules_in_the_current_directory_are_not_run(line: str, tmp_path: Path) -> None:
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n")
    ended = subprocess.run(
        [sys.executable, "-m", "kshell", "--demo", *line.split()],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_checkout_still_runs_from_its_own_directory() -> None:
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-m", "kshell", "--demo", "pwd"],
        cwd=ROOT,
        env=env,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (0, b"/\n"), ended.stderr


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_at_any_time_ends_it_without_a_traceback(seed: int, which: signal.Signals) -> None:
    chance = random.Random(seed)
    words = chance.choice(["status", "health", "find / --values", "help"]).split()
    process = subprocess.Popen(
        [sys.executable, "-m", "kshell", "--demo", *words],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for_first_import(process)
    time.sleep(chance.uniform(0, 0.25))
    process.send_signal(which)
    _, said = process.communicate(timeout=30)
    assert b"Traceback" not in said
    assert b"fault of kshell" not in said
    assert process.returncode in (0, 1, 130, -which)


def wait_for_first_import(process: subprocess.Popen[bytes]) -> None:
    """Wait until Python itself is up: before that no line of kshell's runs, and Python prints what it likes."""
    deadline = time.monotonic() + 20
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and time.monotonic() < deadline:
        if maps.exists() and "crc32c" in maps.read_text():
            return
        time.sleep(0.001)


def source(path: Path, mode: int) -> None:
    path.chmod(mode)
    call = prepare(opened(demo_directory()), f"source {path}")
    assert call is not None
    for part in call.run().parts:  # type: ignore[attr-defined]  # Many
        assert part.error is None


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_lines_that_only_the_user_can_write_are_run(mode: int, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("pwd\n")
    source(tmp_path / "lines", mode)


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o646])
def test_lines_that_others_can_write_are_not_run(mode: int, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("pwd\n")
    with pytest.raises(CommandError, match="other users can write to it, so its lines are not run") as error:
        source(tmp_path / "lines", mode)
    assert error.value.hint == f"chmod go-w {tmp_path / 'lines'}"


def test_a_group_that_can_write_counts_as_others_unless_it_is_the_users_own(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("pwd\n")
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another group")
    os.chown(lines, 0, 12345)
    with pytest.raises(CommandError, match="other users can write to it"):
        source(lines, 0o660)
    os.chown(lines, 12345, 12345)
    with pytest.raises(CommandError, match="belongs to another user"):
        source(lines, 0o600)


def test_an_interrupt_that_a_finalizer_swallows_comes_again() -> None:
    """Python drops what a signal raises inside ``__del__`` or a closing generator, and prints it."""
    program = (
        "import signal, sys, time\n"
        "from kshell.__main__ import _interrupt_again\n"
        "sys.unraisablehook = _interrupt_again\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Last:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "        self = None\n"
        "try:\n"
        "    Last()\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("--demo", "info"), 0),
        (("--demo", "health"), 1),
        (("--demo", "nonsense"), 2),
        (("-d", "/nowhere", "health"), 3),
    ],
)
def test_what_cannot_be_said_on_standard_error_changes_no_exit_code(line: tuple[str, ...], code: int) -> None:
    command = [sys.executable, "-P", "-m", "kshell", *line]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert done.returncode == code
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as gone:
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=gone, check=False)
    assert done.returncode == code
