"""A JupyterLab server of its own: a home, settings and notebooks in one directory, and no question to anybody."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.notebooks.running import NOTEBOOKS, ROOT

SECONDS = 120
"""How long anything may take on a busy machine."""
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_SETTINGS: dict[str, dict[str, Any]] = {
    # Asked for outside of the machine, and a question over the cells.
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Cells that are out of sight would have no outputs.
    "notebook-extension/tracker": {"windowingMode": "none"},
}


class Unavailable(Exception):
    """A browser or JupyterLab is not there; the message says which."""


class Lab:
    """A server that listens on loopback. ``url`` is without the token."""

    def __init__(self, work: Path, url: str, token: str) -> None:
        self._work = work
        self._url = url
        self._token = token

    def page(self, name: str) -> str:
        """Where a notebook opens, with nothing of an earlier visit. ``/doc`` shows only the notebook."""
        return f"{self._url}doc/tree/{name}?reset&token={self._token}"

    def add(self, name: str, cells: Sequence[str]) -> None:
        """Writes a notebook of code cells."""
        self.write(
            name,
            {
                "cells": [
                    {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": source,
                     "outputs": [], "execution_count": None}
                    for number, source in enumerate(cells)
                ],
                "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
        )  # fmt: skip

    def write(self, name: str, notebook: Mapping[str, Any]) -> None:
        """Writes a notebook as it is given."""
        _write(self._notebooks / name, notebook)

    def add_own(self, name: str, copy: str) -> None:
        """Copies one of notebooks/. A kernel stays with its notebook: another name is another kernel."""
        shutil.copyfile(NOTEBOOKS / name, self._notebooks / copy)

    def saved(self, name: str) -> str:
        """A notebook as it is on disk."""
        return (self._notebooks / name).read_text("utf-8")

    def set_theme(self, theme: str) -> None:
        """``light`` or ``dark``, for pages that are opened from now on."""
        _settings(self._work, {"apputils-extension/themes": {"theme": THEMES[theme]}})

    @property
    def _notebooks(self) -> Path:
        return self._work / "notebooks"


def browser_program() -> str:
    """The path of a Chromium. Raises Unavailable."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise Unavailable(f"none of {', '.join(names)} is on the PATH")
    return found


@contextmanager
def serve(work: Path) -> Iterator[Lab]:
    """A server that lives in the directory ``work``. Raises Unavailable, AssertionError if it does not come up."""
    if find_spec("jupyterlab") is None:
        raise Unavailable("jupyterlab is not installed")
    (work / "notebooks").mkdir(parents=True)
    _settings(work, _SETTINGS)
    token = secrets.token_hex(16)
    log = work / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
             f"--ServerApp.root_dir={work / 'notebooks'}"],
            cwd=work, env=_environment(work, token), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            yield Lab(work, _address(work, process, log), token)
        finally:
            process.terminate()  # it ends its kernels as well
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
            if process.poll() is None:
                process.kill()
                process.wait()


def _environment(work: Path, token: str) -> dict[str, str]:
    """What Python needs, and a home below ``work``: nobody's settings, profiles and history."""
    gone = ("KSHELL_", "XDG_", "JUPYTER", "IPYTHON")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(gone)}
    return {
        **kept,
        "HOME": str(work / "home"),
        "JUPYTER_RUNTIME_DIR": str(work / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(work / "settings"),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
    }


def _address(work: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    """Waits until the server answers; it writes down where it listens."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        for path in (work / "runtime").glob("jpserver-*.json"):
            with suppress(json.JSONDecodeError, KeyError):
                return str(json.loads(path.read_text("utf-8"))["url"])
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not come up:\n{log.read_text('utf-8', 'replace')[-4000:]}")


def _settings(work: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    for name, values in settings.items():
        _write(work / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings", values)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
