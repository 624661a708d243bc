"""Tab in a cell: how long IPython's completer takes to answer with 1,000,000 partitions. Goal: a median of 50 ms."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from typing import Any, NamedTuple

from tests.bench.cat_million import PARTITIONS, TOPICS
from tests.bench.harness import met
from tests.kafka import gen

_GOAL = 0.05
_PLACES = (
    "%kafka topi",
    "%kafka ls /image/to",
    "%kafka ls /image/topics/byName/",
    "%kafka cat /image/topics/byName/topic-12",
    "%kafka cat /image/topics/byName/topic-1234/",
    "%kafka topics --where part",
    "%kafka ls -o js",
    "%kafka why topic-77",
    "%kafka log /image/topics/byName/topic-4",
)


class Answers(NamedTuple):
    """Seconds of every answer, by what was typed."""

    by_place: dict[str, list[float]]
    goal: float = 1.0
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """The median of all answers over the goal."""
        return statistics.median(value for values in self.by_place.values() for value in values) / _GOAL

    def __str__(self) -> str:
        lines = ["completion in a cell, 1,000,000 partitions"]
        for place, values in self.by_place.items():
            lines.append(
                f"  median {statistics.median(values) * 1000:7.1f} ms   max {max(values) * 1000:7.1f}   {place}"
            )
        lines.append(
            f"  median of all {self.ratio * _GOAL * 1000:.1f} ms (goal {_GOAL * 1000:.0f} ms: {met(self.ratio <= 1)})"
        )
        return "\n".join(lines)


def run(rounds: int) -> Answers:
    """Every place ``rounds`` times, in turn."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"IPYTHONDIR": home, "HOME": home}
        ip = _shell(str(gen.snapshot(TOPICS, PARTITIONS)))
        found: dict[str, list[float]] = {place: [] for place in _PLACES}
        for _ in range(rounds):
            for place, seconds in found.items():
                begun = time.perf_counter()
                _ask(ip, place)
                seconds.append(time.perf_counter() - begun)
        return Answers(found)


def _shell(directory: str) -> Any:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    ip: Any = InteractiveShell.instance(config=config)
    ip.run_line_magic("load_ext", "kshell")
    ip.run_line_magic("kafka", f"connect -d {directory}")
    return ip


def _ask(ip: Any, text: str) -> None:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        if not list(ip.Completer.completions(text, len(text))):
            raise RuntimeError(f"{text}: no candidates")
