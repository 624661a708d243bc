"""The images, as far as that can be tested without a builder: their steps are run in a directory instead."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.locks import BESIDE, LOCKS, PYTHONS
from tests.needed import missing

ROOT = Path(__file__).parents[2]
FILE = ROOT / "release" / "Containerfile"
PLACES = ("/source", "/build", "/wheel", "/opt")
"""Absolute paths of the images that their steps name."""


class Step(NamedTuple):
    """One instruction: ``RUN``, ``COPY``, …, and the rest of its line."""

    name: str
    rest: str


def stages() -> dict[str, list[Step]]:
    """The steps of each stage, after those of the stage that it begins with."""
    made: dict[str, list[Step]] = {}
    name = ""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, text.splitlines()):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            made[name] = list(made.get(base, []))
        elif name:
            made[name].append(Step(instruction, rest))
    return made


def sources(steps: list[Step]) -> list[str]:
    """What is copied from the checkout."""
    copies = [step.rest.split() for step in steps if step.name == "COPY" and not step.rest.startswith("--from")]
    return [source for words in copies for source in words[:-1]]


@pytest.mark.parametrize("stage", ["shell", "pipeline"])
def test_an_image_starts_a_command_of_the_package_and_not_as_root(stage: str) -> None:
    steps = dict(stages()[stage])
    user = re.fullmatch(r"(\d+):(\d+)", steps["USER"])
    assert user is not None and int(user[1]) > 0 and int(user[2]) > 0
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert re.findall(r'"(.*)"', steps["ENTRYPOINT"])[0] in scripts
    copied = re.fullmatch(r"--from=(\S+) /opt/kshell /opt/kshell", steps["COPY"])
    assert copied is not None and copied[1] in stages()
    assert "RUN" not in steps  # no layer holds what a later one removes


def test_the_pipelines_user_has_a_name_without_which_spark_does_not_start() -> None:
    made = stages()
    steps = made["pipeline"]
    user = dict(steps)["USER"]
    (written,) = [step.rest for step in made["pipeline-environment"] if "/etc/passwd" in step.rest]
    assert re.fullmatch(rf"echo '\w+:x:{user}:\w*:/tmp:\S+' >> /etc/passwd", written)
    assert Step("COPY", "--from=pipeline-environment /etc/passwd /etc/passwd") in steps


def test_all_that_pip_fetches_is_pinned_with_hashes() -> None:
    installs = [
        words
        for steps in stages().values()
        for step in steps
        if step.name == "RUN"
        for words in re.split(" && ", step.rest)
        if " install " in words
    ]
    assert len(installs) >= 5
    for words in installs:
        lock = re.search(r"--no-cache-dir --require-hashes -r requirements/(\w+)\.txt *$", words)
        assert lock is None or lock[1] in (*LOCKS, *BESIDE)
        assert lock is not None or words.rstrip().endswith("--no-cache-dir --no-index --no-deps /wheel/*.whl")


def test_the_image_has_a_python_that_kshell_supports() -> None:
    version = re.search(r"^ARG IMAGE=\S+/python:(3\.\d+)-slim$", FILE.read_text(), re.MULTILINE)
    assert version is not None and f"{version[1]}.0" in PYTHONS


def test_what_is_copied_reaches_the_builder() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert rules[0] == "*"
    for source in {source for steps in stages().values() for source in sources(steps)}:
        assert (ROOT / source).exists(), source
        assert any(source == rule or source.startswith(f"{rule}/") for rule in allowed), source


@pytest.mark.slow
def test_the_steps_of_the_shells_image_make_a_kshell_that_runs(tmp_path: Path) -> None:
    for place in PLACES:
        (tmp_path / place[1:]).mkdir()
    source = tmp_path / "source"
    for step in stages()["shell-environment"]:
        if step.name == "COPY":
            *names, target = step.rest.split()
            for name in names:
                path = source / target / (Path(name).name if (ROOT / name).is_file() else "")
                path.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, path, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, path)
        elif step.name == "RUN":
            line = re.sub(r"(?<![\w/.])(?=(?:" + "|".join(PLACES) + r")\b)", str(tmp_path), step.rest)
            line = re.sub(r"(?<![\w/])python(?= -m venv)", sys.executable, line)
            done = subprocess.run(["sh", "-ec", line], cwd=source, capture_output=True, text=True, check=False)
            if "No matching distribution" in done.stderr or "Max retries exceeded" in done.stderr:
                missing(f"pip cannot fetch what the image installs: {done.stderr[-300:]}")
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    environment = {"PATH": f"{tmp_path}/opt/kshell/bin:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    command = [f"{tmp_path}/opt/kshell/bin/kshell", "--demo", "partitions", "--offline"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "legacy-import" in done.stdout
    assert not list((tmp_path / "opt/kshell").glob("lib/*/site-packages/pip"))
