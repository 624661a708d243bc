"""Every input that the fuzzer has kept, what it begins with, and cheap variations: typed errors and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.targets import TARGETS, run, seeds


@pytest.mark.parametrize("target", TARGETS)
def test_inputs_lead_to_typed_errors_only(target: str) -> None:
    inputs = [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))] + seeds(target)
    assert inputs
    rng = random.Random(target)
    for data in inputs:
        run(target, data)
        for _ in range(3):
            changed = bytearray(data or b"\0")
            changed[rng.randrange(len(changed))] = rng.randrange(256)
            run(target, bytes(changed))


def test_every_directory_of_the_corpus_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(TARGETS)
