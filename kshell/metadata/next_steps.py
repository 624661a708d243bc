"""The next step for a finding: a health check declares *cures*, and :func:`next_step` chooses and fills in one of them.

The first cure that fits the release and the finalized features of the cluster wins. For a release that cannot do what a
newer one can, there is a cure that says so and recommends the upgrade.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshell.metadata.kafka_tools import NEWEST, KafkaTools, Release, shell_text

_NOTHING: Mapping[str, int] = {}


class NextStep(NamedTuple):
    """A sentence that says what to do, and the shell commands that do it. The sentence may contain them."""

    text: str
    commands: tuple[str, ...] = ()


class Cure(NamedTuple):
    """The template of a next step, and the clusters that it is for.

    Args:
        text: A sentence; ``{0}`` is the first command, and ``{name}`` a value that the finding provides, quoted.
        commands: Templates for :meth:`KafkaTools.fill`.
        since: The first release that it is for; ``None``: all up to ``until``.
        until: The first release that it is no longer for; ``None``: all from ``since`` on.
        at_least: Feature -> the lowest finalized level that it is for.
        below: Feature -> the lowest finalized level that it is no longer for.
    """

    text: str
    commands: tuple[str, ...] = ()
    since: Release | None = None
    until: Release | None = None
    at_least: Mapping[str, int] = _NOTHING
    below: Mapping[str, int] = _NOTHING

    def fits(self, release: Release, finalized: Mapping[str, int]) -> bool:
        """Whether the cure is for a cluster of this release with these finalized levels of features."""
        return (
            (self.since is None or release >= self.since)
            and (self.until is None or release < self.until)
            and all(finalized.get(feature, 0) >= level for feature, level in self.at_least.items())
            and all(finalized.get(feature, 0) < level for feature, level in self.below.items())
        )

    def is_of_one_partition(self) -> bool:
        """Whether the sentence names topic and partition, so that each partition has one of its own."""
        embedded = (command for index, command in enumerate(self.commands) if f"{{{index}}}" in self.text)
        sentence = "".join((self.text, *embedded))
        return "{topic}" in sentence and "{partition}" in sentence

    def fill(self, tools: KafkaTools, values: Mapping[str, object]) -> NextStep:
        """Return the next step, with ``values`` in place of its placeholders."""
        commands = tuple(tools.fill(template, values) for template in self.commands)
        texts = {name: shell_text(value) for name, value in values.items()}
        return NextStep(string.Formatter().vformat(self.text, commands, texts), commands)


Cures = str | Sequence[Cure]
"""The declared cures of a finding; the first that fits wins; a text alone is a cure for every release."""


def cures_of(declared: Cures) -> tuple[Cure, ...]:
    """Return declared cures as a tuple."""
    return (Cure(declared),) if isinstance(declared, str) else tuple(declared)


def fitting_cure(cures: Sequence[Cure], tools: KafkaTools, finalized: Mapping[str, int]) -> Cure:
    """Return the first cure that fits the cluster, else the last cure.

    Args:
        cures: At least one.
        tools: They know the cluster's release.
        finalized: Feature -> its finalized level.
    """
    release = tools.release or NEWEST
    return next((cure for cure in cures if cure.fits(release, finalized)), cures[-1])


def next_step(
    cures: Sequence[Cure], tools: KafkaTools, finalized: Mapping[str, int], values: Mapping[str, object]
) -> NextStep:
    """Return the next step of :func:`fitting_cure`, with ``values`` in place of its placeholders."""
    return fitting_cure(cures, tools, finalized).fill(tools, values)
