"""Gather the state that the checks of ``health`` and ``status`` read; a remark names each part that is missing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from kshell.cluster.features import cluster_features
from kshell.cluster.kafka_tools import kafka_tools
from kshell.cluster.snapshot_slips import slips
from kshell.errors import (
    AuthorizationError,
    KshellError,
    NodeError,
    NoLeaderError,
    ServerError,
    SourceTimeoutError,
    UnsupportedVersionError,
)
from kshell.metadata.checkpoint import ONLY_LOG
from kshell.metadata.feature_update import ClusterFeatures
from kshell.metadata.health.check import CheckedState, SnapshotAge, SnapshotSlip, step_of
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.kafka_tools import KafkaTools
from kshell.metadata.next_steps import NextStep
from kshell.metadata.partial import MISSING
from kshell.metadata.partition_state import MinIsr
from kshell.sources.directory import checkpoints, describe
from kshell.sources.directory.log import LogReader
from kshell.tree.paths import join, walk

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.sources.directory.files import Listing
    from kshell.sources.source import Loaded

_REPLAYED = 64 << 20
"""Bytes: a longer log is not replayed only to compare snapshots with it."""


def state_of(session: Session, least: MinIsr) -> CheckedState:
    """Gather everything that checks read; a part that cannot be had adds a remark "not checked".

    Args:
        session: the source, and the point in time that is shown; only without such a point are nodes asked.
        least: the min.insync.replicas of each topic.

    Raises:
        KshellError: the source cannot be loaded.
    """
    loaded = session.loaded
    nodes = session.source.nodes if session.until is None else None
    quorum, leaderless = (None, None) if nodes is None else _quorum(session, nodes)
    recorded = describe.voters(loaded)
    directories = {voter["voterId"]: voter["voterDirectoryId"] for voter in recorded if voter.get("voterDirectoryId")}
    if quorum is None:
        voters = tuple(sorted(voter["voterId"] for voter in recorded))
    else:
        voters = tuple(sorted(voter["id"] for voter in quorum["voters"]))
        directories |= {voter["id"]: voter["directoryId"] for voter in quorum["voters"] if voter["directoryId"]}
    features = cluster_features(session)
    session.remarks += [f"not checked: {name}: {why}" for name, why in _refused(loaded.image)]
    return CheckedState(
        image=loaded.image,
        features=features,
        min_isr=least,
        now=_moment(loaded) if nodes is None else int(time.time() * 1000),
        voters=voters,
        voter_directories=directories,
        quorum=quorum,
        leaderless=leaderless,
        snapshots=_reported_snapshots(session, loaded) if session.source.is_live else _snapshots(session, loaded),
        slips=_slips(session, loaded),
        is_partial=not session.source.has_log,
        tools=kafka_tools(session, features),
    )


StepOf = Callable[[str, Mapping[str, Any]], NextStep]
"""(name of a finding, values for the placeholders of its text) -> the next step for the operator."""


def steps_of(session: Session) -> StepOf:
    """Next steps for commands that detect a finding of ``health`` themselves.

    What they depend on is gathered at the first call, and cached: brokers need more requests to report it.
    """

    @cache
    def tools_and_levels() -> tuple[KafkaTools, Mapping[str, int]]:
        features = cluster_features(session)
        return kafka_tools(session, features), features.finalized

    return lambda finding, places: step_of(finding, *tools_and_levels(), places)


def _refused(image: Image) -> list[tuple[str, str]]:
    """(name, reason) of each part of the image that brokers did not report; any check may depend on it."""
    if not image[MISSING]:
        return []
    from kshell.sources.brokers.source import parts  # late: a directory needs no client

    return sorted((part.path[-1], image[MISSING][part.path]) for part in parts() if part.path in image[MISSING])


def _moment(loaded: Loaded) -> int | None:
    """The time (ms) of a directory's last record, as its "now": a copy may be read long after it was made."""
    timestamp = max(loaded.last_timestamp, loaded.image.provenance.timestamp)
    return timestamp if timestamp > 0 else None


def without_leader(session: Session, error: NoLeaderError) -> CheckedState:
    """The state to check if no leader says what is committed: the reason for that, and an empty image."""
    session.remarks.append("not checked: everything else, for no controller says what is committed")
    return CheckedState(EMPTY, ClusterFeatures({}, ()), MinIsr(EMPTY), leaderless=error.reason)


def _quorum(session: Session, nodes: Nodes) -> tuple[JsonObject | None, str | None]:
    """Ask the quorum: (its description, ``None``), or (``None``, why it seems to have no leader). Raises NodeError.

    Brokers forward the question to the leader, so if one that is up gives no answer, there is no leader.
    """
    from kshell.client.nodes import BROKER
    from kshell.sources.quorum.facts import describe_quorum

    try:
        return describe_quorum(nodes), None
    except (AuthorizationError, ServerError, UnsupportedVersionError, SourceTimeoutError) as error:
        leaderless = None
        if isinstance(error, NoLeaderError):
            leaderless = error.reason
        elif isinstance(error, SourceTimeoutError):
            if nodes.kind != BROKER:
                raise
            nodes.any()  # raises where the brokers themselves do not answer any more
            leaderless = f"broker {error.node} answers, and gets no answer from the active controller"
        hint = f" ({error.hint})" if error.hint else ""
        session.remarks.append(f"not checked: how the quorum keeps up: {error.message}{hint}")
        return None, leaderless


def _reported_snapshots(session: Session, loaded: Loaded) -> SnapshotAge | None:
    """The age of the leader's newest snapshot now; ``None`` for a past point, and for brokers, which have none."""
    from kshell.sources.quorum.newest_snapshot import snapshot_age
    from kshell.sources.quorum.source import QuorumSource

    if session.until is not None or not isinstance(session.source, QuorumSource):
        return None
    try:
        return snapshot_age(session.source, loaded)
    except NodeError as error:
        session.remarks.append(f"not checked: the age of snapshots: {error.message}")
        return None


def _snapshots(session: Session, loaded: Loaded) -> SnapshotAge | None:
    """The age of a directory's newest snapshot; ``None`` for a single file, or if another snapshot was loaded.

    ``None`` also for a point before the first snapshot: how many bytes of log there were by then is not known.
    """
    listing = loaded.listing
    if listing.directory is None or not listing.segments or loaded.last_timestamp <= 0:
        return None
    until = session.until
    # The snapshot at offset 0 is written when a directory is formatted: it holds the first voters, and says nothing
    # about whether the servers write snapshots.
    ends = [(snapshot.end_offset or 0, snapshot.path) for snapshot in listing.snapshots]
    there = [path for end, path in ends if end > 0 and (until is None or end <= until + 1)]
    used = None
    if not there and until is not None:
        return None
    if there:
        if loaded.snapshot is None or loaded.snapshot.path != there[-1]:
            return None
        used = loaded.snapshot.timestamp
    first = _first_timestamp(listing)
    size = sum(segment.size for segment in listing.segments)
    return SnapshotAge(used, loaded.last_timestamp if first is None else first, loaded.last_timestamp, size)


def _slips(session: Session, loaded: Loaded) -> tuple[SnapshotSlip, ...]:
    """Slips that the image still shows. A log of more than ``_REPLAYED`` bytes is not replayed to find them."""
    if session.source.is_live or not session.source.has_log:
        return ()
    size = checkpoints.log_before(loaded.listing)
    if size > _REPLAYED and not (session.past is not None and session.past.is_recorded):
        session.remarks.append(
            f"not checked: whether snapshots agree with the {size >> 20} MiB of log before them; `info` compares them"
        )
        return ()
    return tuple(
        SnapshotSlip(join(slip.path), slip.snapshot, slip.difference)
        for slip in slips(session, lasting=True)
        if (walk(session.root, slip.path) is None) == (slip.difference == ONLY_LOG)
    )


def _first_timestamp(listing: Listing) -> int | None:
    """The time (ms) of the log's first batch; ``None`` if it cannot be read."""
    with contextlib.suppress(KshellError, FileNotFoundError):
        for _, batch in LogReader(listing):
            return batch.base_timestamp if batch.base_timestamp > 0 else None
    return None
