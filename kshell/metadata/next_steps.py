"""What to do about a finding, by the Kafka release of the cluster: declared as cures, filled in for one cluster.

A finding declares its cures beside its check, the first that fits wins. Where a release cannot do what a newer one can,
an earlier cure says so, and that upgrading is what is left.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kshell.metadata.kafka_tools import NEWEST, KafkaTools, Release, shell_text

_NOTHING: Mapping[str, Any] = {}


class NextStep(NamedTuple):
    """A sentence, and the command lines that carry it out, as a shell reads them. The sentence may have them in it."""

    text: str
    commands: tuple[str, ...] = ()


class Cure(NamedTuple):
    """What to do, where the conditions hold.

    Args:
        text: A sentence; ``{0}`` is the first command, and ``{name}`` a value that the finding gives, quoted.
        commands: Templates for :meth:`KafkaTools.fill`.
        since: The first release that it holds for.
        until: The first release that it does not hold for any more.
        at_least: Feature -> the lowest level that it needs to be finalized.
        below: Feature -> a level that must not be finalized yet.
    """

    text: str
    commands: tuple[str, ...] = ()
    since: Release | None = None
    until: Release | None = None
    at_least: Mapping[str, int] = _NOTHING
    below: Mapping[str, int] = _NOTHING

    def fits(self, release: Release, finalized: Mapping[str, int]) -> bool:
        """Whether it is for a release with these finalized features."""
        return (
            (self.since is None or release >= self.since)
            and (self.until is None or release < self.until)
            and all(finalized.get(feature, 0) >= level for feature, level in self.at_least.items())
            and all(finalized.get(feature, 0) < level for feature, level in self.below.items())
        )

    def fill(self, tools: KafkaTools, values: Mapping[str, Any]) -> NextStep:
        """The step with every argument in it."""
        commands = tuple(tools.fill(template, values) for template in self.commands)
        shown = {name: shell_text(value) for name, value in values.items()}
        return NextStep(string.Formatter().vformat(self.text, commands, shown), commands)


Cures = str | Sequence[Cure]
"""Cures of a finding, the first that fits wins; a sentence alone holds for every release."""


def cures_of(declared: Cures) -> tuple[Cure, ...]:
    """The cures of a declaration."""
    return (Cure(declared),) if isinstance(declared, str) else tuple(declared)


def next_step(
    cures: Sequence[Cure], tools: KafkaTools, finalized: Mapping[str, int], values: Mapping[str, Any]
) -> NextStep:
    """The step for a cluster: of the first cure that fits, else of the last one."""
    release = tools.release or NEWEST
    cure = next((cure for cure in cures if cure.fits(release, finalized)), cures[-1])
    return cure.fill(tools, values)
