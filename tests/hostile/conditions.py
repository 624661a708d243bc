"""Command lines of every kind under bad conditions: ``python -m tests.hostile.conditions FIRST COUNT``.

A case is a command with random options, and a condition: a pipe that closes, a full disk, no HOME, a tiny terminal, a
signal, little memory, few files. What breaks a promise is printed: a traceback, an exit code that none is, a hang.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kshell.engine import registry
from kshell.engine.arguments import flags_of
from kshell.engine.declaration import Command
from kshell.engine.formats import FORMATS
from kshell.sources.choose import demo_directory
from tests.hostile.measured import ROOT
from tests.test_startup import wait_for_first_import

SECONDS = 60
CODES: Final = frozenset({0, 1, 2, 3, 4, 130})
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDLESS = {"follow", "watch"}
_LEFT_OUT = {"mcp", "top"}
"""These talk to a program or take the whole screen: they have tests of their own."""
_VALUES: Final = (
    "0", "1", "5", "-1", "now", "-1h", "end-10m", "yesterday", "a", "orders", "legacy-import-0", "broker-1", "3000", "",
    "name == orders", "offline", "isr contains 1", "name,state", "-name", "json", "csv", "/image/topics/*", "/image",
    "User:alice", "TOPIC:orders", "READ", "99999999999999999999", "ä\u202e\n", "*", "'", "x=1", "/dev/full", "=", "..",
)  # fmt: skip
_FORMATS = tuple(FORMATS)


class Ended(NamedTuple):
    """How a process ended, and everything that it said."""

    code: int
    said: str


def line_of(rng: random.Random) -> list[str]:
    """A command with some of its options, mostly with values that mean something."""
    name = rng.choice([name for name in registry.names() if name not in _LEFT_OUT])
    command = registry.get(name)
    words = [name]
    examples = [example.line for example in command.examples if example.line.startswith(name)]
    if examples and rng.random() < 0.75:
        with contextlib.suppress(ValueError):
            words = shlex.split(rng.choice(examples).partition(" | ")[0])
    for flag in rng.sample(flags_of(command), min(len(flags_of(command)), rng.choice((0, 0, 0, 1, 1, 2)))):
        words.append(rng.choice(flag.names))
        if flag.metavar is not None:
            words.append(rng.choice((*flag.choices, *_VALUES) if flag.choices else _VALUES))
    words += _arguments(rng, command) if len(words) == 1 or rng.random() < 0.2 else []
    if rng.random() < 0.4:
        words += ["-o", rng.choice(_FORMATS)]
    if name in _ENDLESS or "--watch" in words:
        words += ["--timeout", "1"]
    return words


def _arguments(rng: random.Random, command: Command) -> Iterator[str]:
    for arg in command.args:
        if arg.arity in "1+" or rng.random() < 0.5:
            yield rng.choice(_VALUES)


# --- conditions -------------------------------------------------------------------------------------------------------

Condition = Callable[[random.Random, list[str], dict[str, str]], Ended]


def _start(words: list[str], environment: dict[str, str], **more: object) -> subprocess.Popen[bytes]:
    options: dict[str, object] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    made: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-P", "-m", "kshell", "--demo", *words],
        env=environment,
        **(options | more),  # type: ignore[call-overload]
    )
    return made


def _end(process: subprocess.Popen[bytes]) -> Ended:
    try:
        out, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, said = process.communicate()
        return Ended(-999, f"hangs: {said!r}")
    return Ended(process.returncode, ((out or b"") + (said or b"")).decode("utf-8", "backslashreplace"))


def plain(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """Nothing is wrong but the words."""
    return _end(_start(words, environment))


def closed_pipe(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """Whoever reads goes away, at once or after some bytes."""
    process = _start(words, environment)
    assert process.stdout
    if rng.random() < 0.5:
        process.stdout.read(rng.choice((1, 100, 5000)))
    process.stdout.close()
    process.stdout = None
    return _end(process)


def no_streams(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """Started with streams that are closed."""
    gone = rng.choice((0, 1, 2))
    return _end(_start(words, environment, preexec_fn=lambda: os.close(gone)))


def full_disk(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """What is printed goes to a disk without room."""
    with open("/dev/full", "wb") as full:
        return _end(_start(words, environment, stdout=full))


def c_locale(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """ASCII, or an encoding that nobody knows."""
    language = rng.choice(("C", "POSIX", "en_US.ISO-8859-1", "nonsense"))
    more = {"LANG": language, "LC_ALL": language, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    return _end(_start(words, environment | more))


def no_home(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """No HOME, one that cannot be written, one that is a file, one that cannot be made."""
    place = rng.choice(("", "/proc", "/dev/null", "/proc/nonexistent/home"))
    changed = {name: text for name, text in environment.items() if not name.startswith(("XDG", "HOME"))}
    return _end(_start(words, changed | ({"HOME": place} if place else {})))


def little_memory(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """``ulimit -v``: enough for Python, perhaps not for more."""
    room = rng.choice((120, 160, 200, 300, 500)) << 20
    return _end(_start(words, environment, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room))))


def few_files(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """``ulimit -n``."""
    files = rng.choice((8, 10, 16, 24))
    return _end(
        _start(words, environment, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    )


def interrupted(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """A signal at any time after Python itself is up."""
    process = _start(words, environment)
    wait_for_first_import(process)
    time.sleep(rng.uniform(0, 0.5))
    process.send_signal(rng.choice(_SIGNALS))
    return _end(process)


def tiny_terminal(rng: random.Random, words: list[str], environment: dict[str, str]) -> Ended:
    """A terminal of a few characters."""
    ours, theirs = pty.openpty()
    rows, columns = rng.choice(((3, 10), (1, 1), (24, 20), (3, 300), (0, 0)))
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = _start(words, environment | {"PAGER": "cat"}, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = bytearray()
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65536):
            said += part
    os.close(ours)
    return Ended(_end(process).code, said.decode("utf-8", "backslashreplace"))


CONDITIONS: tuple[Condition, ...] = (
    plain, closed_pipe, no_streams, full_disk, c_locale, no_home, little_memory, few_files, interrupted, tiny_terminal,
)  # fmt: skip


def case(number: int) -> str | None:
    """Run one case; what is wrong with it, if anything is."""
    rng = random.Random(f"conditions-{number}")
    condition, words = rng.choice(CONDITIONS), line_of(rng)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("KSHELL_", "XDG_", "COLUMNS"))}
        environment = clean | {"PYTHONPATH": str(ROOT), "HOME": scratch, "TMPDIR": scratch}
        ended = condition(rng, words, environment)
        os.chdir(ROOT)
    return _judged(f"{number} {condition.__name__}: {words}", condition, ended)


def _judged(name: str, condition: Condition, ended: Ended) -> str | None:
    codes = set(CODES)
    if condition is interrupted:
        codes |= {-one for one in _SIGNALS} | {143}
    if condition is closed_pipe:
        codes |= {-signal.SIGPIPE, 141}
    if condition in (little_memory, few_files) and "kshell" not in ended.said and ended.code in (1, 127, -6):
        return None  # Python itself, or its loader, did not come up
    bad = ("Traceback", "fault of kshell", "Exception ignored")
    if ended.code not in codes or any(word in ended.said for word in bad):
        return f"{name}: {ended.code}\n{ended.said[-1500:]}"
    return None


def main() -> None:
    """The last line is the number of cases."""
    assert demo_directory()
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + count):
        wrong = case(number)
        if wrong:
            print(wrong, flush=True)
    print(count)


if __name__ == "__main__":
    main()
