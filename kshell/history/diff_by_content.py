"""Reduces the differences between two clusters to those in content: what users configured, not what Kafka generated.

Ignored is what Kafka generates and counts: topic ids and ACL ids, epochs, incarnation ids, log directories, offsets.
Between two clusters, that includes what they cannot share: hosts and ports, the times of delegation tokens, and what
Kafka keeps of a password (another salt each time). Within one cluster, these show a change that somebody made.
ACLs and delegation tokens, whose keys are ids, are compared by what they contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from kshell.history.diff import ADDED, CHANGED, PROVENANCE, REMOVED, Change
from kshell.json_text import to_json
from kshell.metadata.redaction import REDACTED
from kshell.tree.paths import TOPICS_BY_ID, TOPICS_BY_NAME, Segments

_REGISTRATION = frozenset(("epoch", "incarnationId", "directories", "cordonedDirectories"))
_LEFT_OUT: dict[str, frozenset[str]] = {
    "partition": frozenset(("leaderEpoch", "partitionEpoch", "directories")),
    "broker": _REGISTRATION,
    "controller": _REGISTRATION,
    "delegationToken": frozenset(("tokenId",)),
}
"""Leaf type -> the fields that are ignored."""
_NOT_SHARED: dict[str, frozenset[str]] = {
    "scram": frozenset(("salt", "storedKey", "serverKey")),
    "delegationToken": frozenset(("issueTimestamp", "maxTimestamp", "expiryTimestamp")),
}
"""Leaf type -> the fields that are ignored between two clusters as well."""
_ADDRESS = frozenset(("host", "port"))
"""The fields of a listener that are ignored between two clusters."""
_SETS = frozenset(("isr", "elr", "lastKnownElr"))
"""Fields whose elements are compared without their order."""
_KEYED_BY_ID = frozenset(("acl", "delegationToken"))
_NEVER = frozenset(("topicId", "producerId"))
"""Leaf types that are ignored altogether."""


class ContentComparison:
    """Reduces changes to those in content; ``two_clusters``: also without what two clusters cannot share."""

    def __init__(self, *, two_clusters: bool) -> None:
        self._two_clusters = two_clusters

    def changes(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield the changes that are differences in content, in the tree's order; ACLs are ordered by content."""
        for is_keyed_by_id, group in groupby(filter(_may_count, changes), lambda change: change.type in _KEYED_BY_ID):
            if is_keyed_by_id:
                yield from self._without_twins(list(group))
            else:
                yield from filter(None, map(self._content_change, group))

    def readable(self, choices: Iterable[tuple[Change, bool]]) -> Iterator[Change]:
        """Yield the chosen changes for users, without the ignored fields in their values.

        If all leaves of a topic that only one side has were chosen, they become one change of type ``topic``.

        Args:
            choices: every change, and whether it was chosen.
        """
        for topic, group in groupby(choices, lambda choice: _topic(choice[0])):
            every = list(group)
            chosen = [self._with_content(change) for change, is_chosen in every if is_chosen]
            whole_topic = _whole_topic(topic, chosen) if chosen and len(chosen) == len(every) else None
            yield from chosen if whole_topic is None else [whole_topic]

    def _with_content(self, change: Change) -> Change:
        return change._replace(old=self._content(change.type, change.old), new=self._content(change.type, change.new))

    def _content_change(self, change: Change) -> Change | None:
        """Return the change with only the fields that differ in content; ``None`` if there are none.

        A field whose value is redacted on both sides differs, too: :class:`TreeComparison` compares the values.
        """
        if change.change != CHANGED or not change.fields:
            return change
        old, new = (self._content(change.type, value) for value in (change.old, change.new))
        fields = [name for name in change.fields if old.get(name) != new.get(name) or old.get(name) == REDACTED]
        return change._replace(fields=fields) if fields else None

    def _content(self, kind: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        left_out = _LEFT_OUT.get(kind, frozenset())
        if self._two_clusters:
            left_out |= _NOT_SHARED.get(kind, frozenset())
        content = {name: part for name, part in value.items() if name not in left_out}
        for name in _SETS.intersection(content):
            if isinstance(content[name], list):
                content[name] = sorted(content[name])
        if self._two_clusters and isinstance(content.get("listeners"), list):
            content["listeners"] = [
                {name: part for name, part in listener.items() if name not in _ADDRESS}
                for listener in content["listeners"]
            ]
        return content

    def _without_twins(self, changes: list[Change]) -> Iterator[Change]:
        """Yield the changes of leaves keyed by id, without pairs that have the same content under different ids."""
        contents = sorted(
            ((change.type, self._text(change), change) for change in changes if self._content_change(change)),
            key=lambda item: item[:2],
        )
        for _, group in groupby(contents, lambda item: item[:2]):
            alike = [change for _, _, change in group]
            twins = min(sum(change.change == side for change in alike) for side in (ADDED, REMOVED))
            left_out = {ADDED: twins, REMOVED: twins, CHANGED: 0}
            for change in alike:
                if left_out[change.change]:
                    left_out[change.change] -= 1
                else:
                    yield change

    def _text(self, change: Change) -> str:
        """Return the content of a leaf as JSON text, to sort and compare by."""
        return to_json(self._content(change.type, change.old if change.change == REMOVED else change.new))


def _may_count(change: Change) -> bool:
    return change.path[: len(TOPICS_BY_ID)] != TOPICS_BY_ID and change.path != PROVENANCE and change.type not in _NEVER


def _topic(change: Change) -> Segments | None:
    """Return the path of the topic that a change is below; ``None`` if it is not below a topic's name."""
    is_below = change.path[: len(TOPICS_BY_NAME)] == TOPICS_BY_NAME and len(change.path) > len(TOPICS_BY_NAME) + 1
    return change.path[: len(TOPICS_BY_NAME) + 1] if is_below else None


def _whole_topic(topic: Segments | None, changes: Sequence[Change]) -> Change | None:
    """Return one change for a whole topic that was added or removed; ``None`` if only some of its leaves were."""
    first = changes[0]
    is_whole = any(change.path[-1] == "name" for change in changes)
    if topic is None or not is_whole or any(change.change != first.change for change in changes):
        return None
    is_gone = first.change == REMOVED
    values = [change.old if is_gone else change.new for change in changes if change.type == "partition"]
    sizes = [len(value.get("replicas", ())) for value in values if isinstance(value, dict)]
    summary = {"partitions": len(values), "replicationFactor": max(sizes, default=0)}
    old, new = (summary, None) if is_gone else (None, summary)
    return Change(topic, "topic", first.change, [], old, new)
