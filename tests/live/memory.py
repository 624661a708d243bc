"""How much memory a process holds over time: samples, a slope, and a picture."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MIB = 1 << 20


class Sample(NamedTuple):
    """Seconds since the first one, and resident bytes."""

    seconds: float
    resident: int


def resident(pid: int) -> int | None:
    """Return the resident bytes of a process; ``None`` when it is gone."""
    done = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return int(done.stdout) * 1024 if done.stdout.strip() else None


@contextlib.contextmanager
def sampled(pid: int, every: float = 1.0) -> Iterator[list[Sample]]:
    """Take samples in the background; yields the list that they go to."""
    samples: list[Sample] = []
    stop = threading.Event()
    started = time.monotonic()

    def take() -> None:
        while not stop.is_set():
            size = resident(pid)
            if size is None:
                return
            samples.append(Sample(time.monotonic() - started, size))
            stop.wait(every)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def slope(samples: Sequence[Sample]) -> float:
    """Return the bytes per second of the straight line with the least squares."""
    middle = sum(sample.seconds for sample in samples) / len(samples)
    level = sum(sample.resident for sample in samples) / len(samples)
    spread = sum((sample.seconds - middle) ** 2 for sample in samples)
    together = sum((sample.seconds - middle) * (sample.resident - level) for sample in samples)
    return together / spread if spread else 0.0


def plot(samples: Sequence[Sample], kills: Sequence[float], title: str, image: Path) -> None:
    """Draw resident memory against time; a mark for each moment when something was killed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(
        [sample.seconds / 60 for sample in samples],
        [sample.resident / MIB for sample in samples],
        color="#2060a0",
        label="resident memory",
    )
    for number, moment in enumerate(kills):
        axes.axvline(
            moment / 60, ymax=0.04, color="#b04020", linewidth=1, label=None if number else "a controller is killed"
        )
    axes.set(xlabel="minutes", ylabel="MiB", title=title, ylim=(0, None), xlim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, loc="center right")
    figure.savefig(image, dpi=120)
