"""Made-up logs: epochs, one batch for each offset."""

from __future__ import annotations

from tests.builders import batch, control, control_batch, uuid, value

VOTERS = (1, 2, 3)


def leader(epoch: int, at: int, voters: tuple[int, ...] = VOTERS) -> bytes:
    """The LeaderChange of an epoch, with who votes."""
    named = [{"voterId": one} for one in voters]
    return control_batch([control(2, leaderId=1 + epoch % 3, voters=named, grantingVoters=named)], at, epoch)


def record(at: int, epoch: int, name: str = "a") -> bytes:
    """A topic."""
    return batch([value("TOPIC", name=f"{name}-{at}", topicId=uuid(at + 1))], at, epoch)


def log(*epochs: int, start: int = 0, name: str = "a") -> list[bytes]:
    """One batch of one record for each offset from ``start`` on, of that epoch; the first of an epoch opens it."""
    return [
        leader(epoch, at) if at == start or epoch != epochs[at - start - 1] else record(at, epoch, name)
        for at, epoch in enumerate(epochs, start)
    ]
