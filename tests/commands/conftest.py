"""The sample as a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kshell.engine.session import Session
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.commands.shell import opened
from tests.docs_reference import sample_session


@pytest.fixture
def sample() -> Session:
    """A fresh session on the sample."""
    return sample_session()


@pytest.fixture
def cut_sample(tmp_path: Path) -> Session:
    """The sample without the log before its newest snapshot: what came earlier is known from that alone."""
    target = tmp_path / METADATA_DIRECTORY
    target.mkdir()
    for name in ("00000000000000000158.log", "00000000000000000159-0000000001.checkpoint"):
        shutil.copyfile(Path(demo_directory(), METADATA_DIRECTORY, name), target / name)
    return opened(target)
