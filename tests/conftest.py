"""What every test shares: how long hypothesis may search, and how often the soak repeats."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("kshell", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("kshell")


@pytest.fixture(scope="session")
def soak_count() -> int:
    """How often a soak test repeats."""
    return int(os.environ.get("KSHELL_SOAK_COUNT", "1"))
