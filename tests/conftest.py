"""What all tests share: how long hypothesis may search, how often the soak repeats, what runs in one process."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.groups import is_left_out, rank, scheduler

settings.register_profile(
    "kshell",
    deadline=None,
    max_examples=int(os.environ.get("KSHELL_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("kshell")

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the processes under test must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SETTINGS = (
    "KSHELL_DIRECTORY",
    "KSHELL_BOOTSTRAP_CONTROLLERS",
    "KSHELL_BOOTSTRAP_SERVERS",
    "KSHELL_CONFIG",
    "KSHELL_CONTEXT",
)


_NUMBERS = itertools.count()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep together what shares a cluster, a browser, or Spark, and begin with what is long."""
    return scheduler(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast lane as a whole does not even read the files of which it would run nothing."""
    if config.args_source != pytest.Config.ArgsSource.TESTPATHS or "thorough" not in config.option.markexpr:
        return None
    path = collection_path.relative_to(config.rootpath).as_posix() + ("/" if collection_path.is_dir() else "")
    return is_left_out(path) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what the fast lane leaves out."""
    if is_left_out(item.nodeid):
        item.add_marker("thorough")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of such groups: tests stand in the order in which they are to begin."""
    if getattr(config.option, "loadgroup", False):
        items.sort(key=lambda item: rank(item.nodeid))


@pytest.fixture(autouse=True)
def nobodys_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own contexts and ``KSHELL_…`` settings are no business of a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-configuration"))
    # Only a name: a directory for each of ten thousand tests takes half a minute to make and to remove.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{next(_NUMBERS)}"))
    for name in [name for name in os.environ if name in _SETTINGS]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def soak_count() -> int:
    """How often a soak test repeats."""
    return int(os.environ.get("KSHELL_SOAK_COUNT", "1"))
