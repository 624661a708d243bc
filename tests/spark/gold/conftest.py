"""One session for all tests of gold tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notebooks import sparks


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine, for many small queries: they take longer to compile than to run."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        session.conf.set("spark.sql.session.timeZone", "Pacific/Apia")  # days must be UTC's wherever the session is
        yield session
