"""What is missing is named with a command that installs it, for kshell as installed and for kshell in a checkout."""

from __future__ import annotations

import importlib.metadata
import shlex
import sys
from pathlib import Path

import pytest

from kshell import extras
from kshell.errors import UsageError

ROOT = Path(extras.__file__).parents[1]


def not_installed(name: str) -> None:
    raise importlib.metadata.PackageNotFoundError(name)


def test_where_kshell_is_installed_pip_adds_the_extra_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: object())
    assert extras.install_command("sql") == "pip install 'kraft-shell[sql]'"


def test_in_a_checkout_the_checkout_and_its_python_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    words = shlex.split(extras.install_command("sql"))
    assert words == [sys.executable, "-m", "pip", "install", f"{ROOT}[sql]"]


def test_a_package_in_a_zip_names_the_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "kshell.zip" / "kshell" / "extras.py"))
    assert extras.install_command("spark") == "pip install 'kraft-shell[spark]'"


def test_a_missing_package_is_an_error_with_that_command() -> None:
    with pytest.raises(UsageError, match="the answer needs the package no_such_package") as raised:
        extras.require("the answer", "sql", "no_such_package")
    assert raised.value.hint == extras.install_command("sql")


def test_a_package_that_cannot_be_loaded_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_there.py").write_text("raise ImportError('half_there.so: failed to map segment')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"sql needs the package half_there, which cannot be loaded: .*map segment"):
        extras.require("sql", "sql", "half_there")
