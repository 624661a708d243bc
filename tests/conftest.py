"""What every test shares: how long hypothesis may search, and how often the soak repeats."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("kshell", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
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


@pytest.fixture(autouse=True)
def nobodys_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own contexts and ``KSHELL_…`` settings are no business of a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-configuration"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    for name in [name for name in os.environ if name in _SETTINGS]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def soak_count() -> int:
    """How often a soak test repeats."""
    return int(os.environ.get("KSHELL_SOAK_COUNT", "1"))
