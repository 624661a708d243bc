"""One log out of the copies: it has what they have, and never another history's records."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from kshell.errors import DataError
from kshell.sources.copies.agreement import CONSISTENT
from kshell.sources.copies.recovery import Survivors, survey
from tests.raft import Quorum, names

SEEDS = range(60)


def recovered(directories: Sequence[Path]) -> Survivors | None:
    """The survey of some copies; ``None`` where no state can be made of them."""
    try:
        found = survey([str(directory) for directory in directories], None)
        found.log.load(None)
    except DataError:
        return None
    return found


def topics(found: Survivors) -> set[str]:
    return {topic.name for topic in found.log.load(None).image["topics"].values()}


def end_of(found: Survivors | None) -> tuple[int, int]:
    """How far a joined log comes, as Raft compares logs."""
    if found is None:
        return -1, 0
    last = found.log.ranges[-1].copy if found.log.ranges else found.reference
    epoch = last.epoch_at(found.log.end - 1)
    assert epoch is not None
    return epoch, found.log.end


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_of_most_voters_lose_nothing_that_is_committed(seed: int, tmp_path: Path) -> None:
    quorum = Quorum(seed)
    nodes = [node for node in quorum.voters if node.log][: quorum.majority]
    nodes += [node for node in quorum.observers if node.log and quorum.random.random() < 0.5]
    quorum.random.shuffle(nodes)
    directories = [quorum.write(tmp_path, node) for node in nodes]
    found = recovered(directories)
    assert found is not None
    assert not found.contradictions
    assert found.comparison.committed <= quorum.high_watermark
    if len([node for node in nodes if node in quorum.voters]) >= quorum.majority:
        assert found.log.end >= quorum.high_watermark
        after = {name for name in topics(found) if int(name.rpartition("-")[2]) >= quorum.high_watermark}
        assert topics(found) - after == names(quorum.committed)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_copy_never_makes_the_log_shorter(seed: int, tmp_path: Path) -> None:
    quorum = Quorum(seed)
    nodes = [node for node in quorum.voters + quorum.observers if node.log]
    quorum.random.shuffle(nodes)
    directories = [quorum.write(tmp_path, node, damaged=True) for node in nodes[: quorum.random.randint(2, 5)]]
    together = recovered(directories)
    if together is None:
        assert all(recovered([directory]) is None for directory in directories)
        return
    assert not together.contradictions
    assert together.comparison.committed <= quorum.high_watermark
    for directory, verdict in zip(directories, together.verdicts, strict=True):
        if verdict.state in CONSISTENT:
            assert end_of(recovered([directory])) <= end_of(together), directory
    for order in itertools.islice(itertools.permutations(directories), 3):
        other = recovered(order)
        assert other is not None
        assert (other.log.end, topics(other)) == (together.log.end, topics(together))
