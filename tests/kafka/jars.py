"""Kafka's jars by version, fetched once by Maven coordinates, and our Java programs compiled against them.

The cache is ``$KSHELL_TEST_KAFKA`` when set, else ``$XDG_CACHE_HOME/kshell-tests/kafka`` (``~/.cache`` by default).
Everything in it is made beside its final place and renamed, under a file lock: several test processes may ask at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.kafka.runner import Ended, Gone, Runners

LATEST = "4.4.0"
"""The release whose classes judge images and write large files."""

LATEST_SHELL = "4.3.1"
"""The newest release whose kafka-shell is published."""

JAVA_SOURCES = Path(__file__).parent / "java"

_SLF4J = "1.7.36"
_ARTIFACTS = ("kafka_2.13", "kafka-tools")
_CONNECT = ("connect-api", "connect-json", "connect-runtime", "connect-transforms")
"""What kafka-tools names and no test runs; that of 4.4.0 does not resolve."""
WITHOUT_SHELL = ("4.4.0",)
"""Releases of which no kafka-shell is published."""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kshell.tests</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions>{exclusions}</exclusions></dependency>\n"
)
_EXCLUSION = "<exclusion><groupId>org.apache.kafka</groupId><artifactId>{}</artifactId></exclusion>"

RUNNERS = Runners()
"""Processes that wait for the next tool."""


class Unavailable(Exception):
    """A real Kafka cannot be had here; the message says which program or download is missing."""


def cache() -> Path:
    """Return the directory that holds one subdirectory for each Kafka version."""
    given = os.environ.get("KSHELL_TEST_KAFKA")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kshell-tests" / "kafka"


def program(name: str) -> str:
    """Return the path of ``java``, ``javac`` or ``mvn``, or raise Unavailable."""
    home = os.environ.get("JAVA_HOME")
    if home and name != "mvn" and (found := shutil.which(name, path=os.path.join(home, "bin"))):
        return found
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed (a JDK 17 or later and Maven are needed for a real Kafka)")
    return found


@contextlib.contextmanager
def _locked(name: str) -> Iterator[Path]:
    root = cache()
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield root


@functools.cache
def libs(version: str) -> Path:
    """Return the directory with the jars of that Kafka version, fetching them the first time."""
    target = cache() / version / "libs"
    if (target / ".done").exists():
        return target
    maven = program("mvn")
    with _locked(version) as root:
        if (target / ".done").exists():
            return target
        (root / version).mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root / version) as work:
            artifacts = [*_ARTIFACTS, *(() if version in WITHOUT_SHELL else ("kafka-shell",))]
            wanted = [("org.apache.kafka", artifact, version) for artifact in artifacts]
            wanted.append(("org.slf4j", "slf4j-nop", _SLF4J))
            exclusions = "".join(map(_EXCLUSION.format, _CONNECT))
            dependencies = "".join(_DEPENDENCY.format(*coordinates, exclusions=exclusions) for coordinates in wanted)
            pom = Path(work, "pom.xml")
            pom.write_text(_POM.format(dependencies=dependencies))
            out = Path(work, "libs")
            done = subprocess.run(
                [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={out}",
                 "-DincludeScope=runtime"],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            if done.returncode or not list(out.glob(f"kafka-clients-{version}.jar")):
                raise Unavailable(f"Maven could not fetch Kafka {version}: {(done.stdout + done.stderr)[-600:]}")
            for bound in out.glob("slf4j-reload4j*"):
                bound.unlink()
            (out / ".done").touch()
            shutil.rmtree(target, ignore_errors=True)
            out.rename(target)
    return target


@functools.cache
def classes(version: str, *sources: str) -> str:
    """Compile programs of ``java/`` against that version's jars once; return the class path to run them with."""
    jars = libs(version)
    return f"{_compiled(version, f'{jars}/*', sources)}:{jars}/*"


def _compiled(folder: str, class_path: str, sources: Sequence[str]) -> Path:
    """Return the directory of the classes, below ``folder`` of the cache."""
    files = [JAVA_SOURCES / f"{source}.java" for source in sources]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    path = cache() / folder / f"classes-{digest}"
    if not path.exists():
        javac = program("javac")
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(f"{folder}-{digest}"), tempfile.TemporaryDirectory(dir=path.parent) as work:
            out = Path(work, "classes")
            command = [javac, "-nowarn", "-encoding", "UTF-8", "-d", str(out), "-cp", class_path, *map(str, files)]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(sources)} does not compile in {path.parent}:\n{done.stderr}")
            if not path.exists():
                out.rename(path)
    return path


@functools.cache
def logging_jar() -> Path:
    """Return the jar that makes Kafka log to standard error; first on the class path, it wins over the silent one."""
    target = cache() / "logging" / f"slf4j-simple-{_SLF4J}.jar"
    if not target.exists():
        with _locked("logging"):
            target.parent.mkdir(exist_ok=True)
            artifact = f"org.slf4j:slf4j-simple:{_SLF4J}"
            goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
            done = subprocess.run(
                [program("mvn"), "-q", "-B", goal, f"-Dartifact={artifact}", f"-DoutputDirectory={target.parent}"],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            if done.returncode or not target.exists():
                raise Unavailable(f"Maven could not fetch {artifact}: {(done.stdout + done.stderr)[-600:]}")
    return target


def java(class_path: str, main: str, *args: str, heap: str = "512m", flags: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs a main class."""
    return [program("java"), *flags, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8", "-Dsun.stderr.encoding=UTF-8",
            "-cp", class_path, main, *args]  # fmt: skip


def run(class_path: str, main: str, *args: str, heap: str | None = None, check: bool = True) -> str:
    """Run a main class to its end and return its standard output. With a ``heap`` it has a process of its own."""
    ended = _alone(class_path, main, *args, heap=heap) if heap else outcome(class_path, main, *args)
    if check and ended.code:
        raise RuntimeError(f"{main} {' '.join(args)} ended with {ended.code}:\n{(ended.out + ended.err)[-4000:]}")
    return ended.out


def outcome(class_path: str, main: str, *args: str) -> Ended:
    """Run a main class to its end, whatever that is, in the process that stays for others of the release.

    Its current directory and environment are those that this process had when the first of them ran.
    """
    more, _, release = class_path.rpartition(":")

    def command() -> list[str]:
        return java(f"{_compiled('runner', '', ['Runner'])}:{release}", "Runner")

    try:
        return RUNNERS.run(release, command, more, main, *args)
    except Gone:
        # What it said went with it. What asks the JVM itself to end are programs that failed: they may fail again.
        return _alone(class_path, main, *args, heap="512m")


def _alone(class_path: str, main: str, *args: str, heap: str) -> Ended:
    command = java(class_path, main, *args, heap=heap)
    ended = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return Ended(ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8", "replace"))


def require(*versions: str) -> None:
    """Skip the running test, with the reason, where a real Kafka cannot be had; fail it under KSHELL_REQUIRE_LIVE=1."""
    from tests.needed import missing

    try:
        program("java")
        program("javac")
        for version in versions or (LATEST,):
            libs(version)
    except Unavailable as reason:
        missing(str(reason))
