"""Compare copies of one log by Raft's rules: which copy counts, what is committed, which records an election removes.

Copies that ``logs`` read side by side come in, a :class:`CopyComparison` goes out. Log matching: an epoch has one
leader, so two logs that share a record of one epoch are identical up to that record. Two copies that differ from an
offset on and still share an epoch after it cannot both be of one cluster. Election: the log whose *last* record has the
higher epoch wins, then the longer one. At the offset where two logs begin to differ, the winner may have the
lower epoch.

Source: KIP-595, and Ongaro and Ousterhout, *In Search of an Understandable Consensus Algorithm*, 5.3 and 5.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kshell.protocol.batches import Batch
from kshell.sources.copies.logs import Copy, Pairs
from kshell.sources.directory.describe import snapshot_id
from kshell.wording import all_of

REFERENCE, SAME, BEHIND, DIVERGED = "reference", "same", "behind", "diverged"
OTHER_CLUSTER, NOT_COMPARED = "other-cluster", "not-compared"
STATES = (REFERENCE, SAME, BEHIND, DIVERGED, OTHER_CLUSTER, NOT_COMPARED)
DAMAGED = "damaged"
"""State of a copy that agrees with the reference as far as it can be read, but that cannot be read completely."""
CONSISTENT = frozenset((REFERENCE, SAME, BEHIND))
"""States of copies that do not contradict the reference."""


class Divergence(NamedTuple):
    """Where a copy begins to differ from another one: the first such offset, and the batch of each copy there.

    ``contradiction``: why no election explains the difference; ``None`` if one does. Then the copy's node deletes its
    records from ``offset`` on when it learns of the later epoch.
    """

    offset: int
    batch: Batch
    other_batch: Batch
    contradiction: str | None


class SnapshotDifference(NamedTuple):
    """A snapshot of one copy that the log of another contradicts: a sentence.

    ``is_explained``: a later leader, whose epoch the log does not know, may have had the snapshot's records instead:
    the node deletes its own when it learns of that epoch.
    """

    text: str
    is_explained: bool


class CopyVerdict(NamedTuple):
    """How a copy relates to ``peer``: the reference, or a copy that agrees with the reference and starts earlier.

    ``state``: one of :data:`STATES`. ``since``, ``to``: the offsets (``to`` exclusive) in which both logs are the same.
    ``uncommitted``: the first offset of this copy that is not proven to be committed; ``None`` if there is none.
    A copy is :data:`DIVERGED` by ``divergence``, if the logs differ, or by ``difference``.
    """

    copy: Copy
    state: str
    peer: Copy | None = None
    since: int | None = None
    to: int | None = None
    divergence: Divergence | None = None
    uncommitted: int | None = None
    difference: SnapshotDifference | None = None


class CopyComparison(NamedTuple):
    """The result of a comparison. ``verdicts``: one verdict per copy, in the order in which the copies were given.

    ``committed``: the copies prove that every record of the reference below this offset is committed.
    """

    reference: Copy
    committed: int
    verdicts: list[CopyVerdict]


def compare_copies(
    copies: Sequence[Copy], pairs: Pairs, preferred: Collection[int] = (), committed: int = 0
) -> CopyComparison:
    """Compare copies that were read together.

    Args:
        copies: at least one.
        pairs: what :func:`.read_together` returned for them.
        preferred: indexes of copies that rank before all others, whatever Raft's rules say. The others then prove
            nothing about what is committed.
        committed: the offset below which all records are already known to be committed.
    """
    cluster = cluster_of(copies)
    members = [index for index, copy in enumerate(copies) if copy.cluster_id in (None, cluster)]
    members.sort(
        key=lambda index: (index in preferred, rank(copies[index])), reverse=True
    )  # the sort is stable: of equal copies the one that was given first stays first
    first, latest = members[0], latest_epoch([copies[index] for index in members])
    verdicts = {first: CopyVerdict(copies[first], REFERENCE, None, copies[first].start, copies[first].log_end)}
    for index in members[1:]:
        agreeing = [earlier for earlier in verdicts if verdicts[earlier].state in CONSISTENT]
        verdict = _verdict(copies, pairs, index, agreeing)
        difference = next(snapshot_differences(copies[index], [copies[peer] for peer in agreeing], latest), None)
        if difference is not None and verdict.divergence is None:
            verdict = verdict._replace(state=DIVERGED, difference=difference)
        verdicts[index] = verdict
    counted = [verdict for index, verdict in verdicts.items() if not preferred or index in preferred]
    committed = max(committed, _committed(counted))
    every = [verdicts.get(index, CopyVerdict(copy, OTHER_CLUSTER)) for index, copy in enumerate(copies)]
    return CopyComparison(copies[first], committed, [_with_uncommitted(verdict, committed) for verdict in every])


def cluster_of(copies: Sequence[Copy]) -> str | None:
    """The id of the cluster that most copies belong to; of equally frequent ids the first one."""
    cluster_ids = [copy.cluster_id for copy in copies if copy.cluster_id is not None]
    return max(cluster_ids, key=cluster_ids.count, default=None)


def rank(copy: Copy) -> tuple[int, ...]:
    """Sort key of a copy: the one with the highest key is the reference.

    First Raft's order: epoch of the last record, then end. Of equal ends a log ranks before a snapshot, then the copy
    with less damage, then the one that starts earlier, because more can be compared with it.
    """
    reach = _end(copy) if copy.oldest is None else copy.oldest
    return copy.last_epoch, _end(copy), copy.log_end or 0, -copy.faults, -reach


def _end(copy: Copy) -> int:
    return copy.end if copy.end is not None else -1


def _verdict(copies: Sequence[Copy], pairs: Pairs, index: int, agreeing: Sequence[int]) -> CopyVerdict:
    """Compare a copy with the ``agreeing`` ones, which rank before it and agree with each other; reference first."""
    copy = copies[index]
    if not copy.end:  # an empty log agrees with the beginning of every other log
        return CopyVerdict(copy, BEHIND if copies[agreeing[0]].end else SAME, copies[agreeing[0]])
    with_each = [(peer, pairs.of(index, peer)) for peer in agreeing]
    for peer, pair in with_each:
        if pair.parting is not None:
            batches = pair.parting[1:] if index < peer else pair.parting[:0:-1]
            why = contradiction(copy, copies[peer], pair.parting.offset)
            parted = Divergence(pair.parting.offset, *batches, why)
            return CopyVerdict(copy, DIVERGED, copies[peer], pair.since, pair.to, parted)
    for peer, pair in with_each:
        if pair.since is not None:
            state = SAME if copy.end == copies[agreeing[0]].end else BEHIND
            return CopyVerdict(copy, state, copies[peer], pair.since, pair.to)
    return CopyVerdict(copy, NOT_COMPARED)


def latest_epoch(copies: Iterable[Copy]) -> int:
    """The latest epoch that any of the copies knows, by its records or its ``quorum-state``; -1 if none does."""
    return max((epoch for copy in copies for epoch in (copy.last_epoch, copy.stated_epoch or -1)), default=-1)


def snapshot_differences(copy: Copy, peers: Iterable[Copy], latest: int) -> Iterator[SnapshotDifference]:
    """Yield what the log of a copy contradicts in its peers' snapshots, and each peer's log in those of the copy.

    ``latest`` is the :func:`latest_epoch` of all copies.
    """
    for peer in peers:
        for log, holder in ((copy, peer), (peer, copy)):
            for file in holder.snapshots:
                if (why := log.refuted.get(file.path)) is not None:
                    name = f"snapshot {snapshot_id(file)} of {holder.path} is not of the log of {log.path}"
                    is_explained = not why.has_one_epoch and log.epochs[-1][0] < latest
                    yield SnapshotDifference(f"{name}: {why.text}", is_explained)


def contradiction(copy: Copy, peer: Copy, offset: int) -> str | None:
    """Explain why elections alone cannot make two logs differ from ``offset`` on; ``None`` if they can."""
    shared = copy.epochs_from(offset) & peer.epochs_from(offset)
    if shared:
        return f"both have records of epoch {min(shared)} from there on, and an epoch has one leader"
    newest = copy.newest
    if newest is not None and newest.end_offset is not None and newest.end_offset > offset:
        return f"its snapshot {newest.end_offset}-{newest.epoch} says that what it has there was committed"
    return None


def reason(verdict: CopyVerdict, reference: Copy) -> str | None:
    """Explain to the user why a copy is not the same as the others; ``None`` if there is nothing to explain."""
    if verdict.state == OTHER_CLUSTER:
        return f"its cluster is {verdict.copy.cluster_id}, that of {reference.path} is {reference.cluster_id}"
    if verdict.difference is not None:
        return verdict.difference.text
    if verdict.state == NOT_COMPARED:
        return f"has no offset of the log in common with {reference.path}, so only the cluster's id can be compared"
    if verdict.divergence is None or verdict.peer is None:
        return None
    offset, mine, theirs, why = verdict.divergence
    diverges = f"diverges from {verdict.peer.path} at offset {offset}"
    epochs = f"epoch {mine.epoch} here, {theirs.epoch} there"
    if why is not None:
        return f"{diverges} ({epochs}), and no election explains it: {why}"
    last = verdict.peer.last_epoch
    return (
        f"{diverges} ({epochs}): {verdict.peer.path} wins an election, because its last epoch is {last}, and here it is"
        f" {verdict.copy.last_epoch}. No leader up to epoch {last} has committed the records here from {offset} on: the"
        " node truncates them when it follows a leader"
    )


def with_damage(state: str, *, is_damaged: bool) -> str:
    """Return :data:`DAMAGED` for a damaged copy that agrees as far as it can be read, else ``state`` unchanged."""
    return DAMAGED if is_damaged and state in (SAME, BEHIND) else state


def which_to_keep(comparison: CopyComparison, states: Sequence[str], repair: str | None = None) -> str:
    """Say which copy to keep, and why.

    Args:
        comparison: the verdicts on the copies.
        states: the state of each copy, in the order of ``comparison.verdicts``.
        repair: a sentence on what becomes of the damage of the reference; ``None`` for general advice.

    Returns:
        A sentence for the user.
    """
    reference = comparison.reference
    if not reference.end:
        return "no copy has a record: there is nothing to keep"
    copies = [verdict.copy for verdict in comparison.verdicts]
    alike = [
        copy.path
        for copy, state in zip(copies, states, strict=True)
        if state == SAME and not copy.damage and (copy.log_end == copy.end or reference.log_end is None)
    ]
    parted = [copy.path for copy, state in zip(copies, states, strict=True) if state == DIVERGED]
    apart = [copy.path for copy, state in zip(copies, states, strict=True) if state == NOT_COMPARED]
    foreign = [copy for copy, state in zip(copies, states, strict=True) if state == OTHER_CLUSTER]
    rest = [copy for copy in copies if copy is not reference and copy not in foreign]
    why = "no other copy reaches that epoch"
    if not rest:
        why = "no other copy is of its cluster"
    elif any(copy.last_epoch == reference.last_epoch for copy in rest):
        why = "no copy of that epoch is longer"
    if any(copy.damage for copy in rest):
        why += ", as far as they can be read"
    sentences = [
        f"keep {reference.path}: its last record has epoch {reference.last_epoch}, and {why} (it ends at offset"
        f" {reference.end})"
    ]
    if reference.damage and repair:
        sentences.append(repair)
    elif reference.damage and alike:
        sentences.append(f"it is damaged: {alike[0]} has the same records and is whole, keep that one")
    elif reference.damage:
        sentences.append("it is damaged: keep the others, too; `kshell recover` takes from them what it lacks")
    elif alike:
        sentences.append(f"{all_of(alike)} {'has' if len(alike) == 1 else 'have'} the same records")
    if parted:
        sentences.append(
            f"{all_of(parted)} {'has' if len(parted) == 1 else 'have'} something else: look at what it is before you"
            " delete it"
        )
    if apart:
        verb = "has" if len(apart) == 1 else "have"
        sentences.append(f"{all_of(apart)} {verb} no offset in common with it: compare their topics")
    if foreign:
        are = "is" if len(foreign) == 1 else "are"
        sentences.append(f"{all_of([copy.path for copy in foreign])} {are} of another cluster, and left out")
    return "; ".join(sentences)


# --- what is committed ---------------------------------------------------------------------------------------------


def _committed(verdicts: Sequence[CopyVerdict]) -> int:
    """The offset below which all records of the reference (the first of ``verdicts``) are certainly committed.

    Snapshots prove it as well, because Kafka takes snapshots of committed records only.
    """
    proven = _shared_by_majority(verdicts)
    for verdict in verdicts:
        if verdict.difference is not None:
            continue
        newest, limit = verdict.copy.newest, verdict.divergence.offset if verdict.divergence else _end(verdicts[0].copy)
        if newest is not None and newest.end_offset is not None and newest.end_offset <= limit:
            proven = max(proven, newest.end_offset)
    return proven


def _shared_by_majority(verdicts: Sequence[CopyVerdict]) -> int:
    """The offset (exclusive) up to which a majority of voters has the reference's log; 0 if that proves no commit.

    It proves one only if the last of these records has the highest epoch that any copy knows: a later leader may still
    replace records of an older epoch.
    """
    reference = verdicts[0].copy
    ends = _ends_by_voter(verdicts, reference)
    if len(reference.runs) > 1 and any(directory is not None for directory in reference.voters.values()):
        return 0  # other voters may have been named in the gap
    majority = _majority(reference)
    shared = sorted(ends.values(), reverse=True)[majority - 1] if len(ends) >= majority else 0
    latest = latest_epoch(verdict.copy for verdict in verdicts)
    return shared if shared and reference.epoch_at(shared - 1) == latest else 0


def majority_with(copies: Sequence[Copy], pairs: Pairs, index: int, offset: int, peers: Iterable[int]) -> list[int]:
    """The voters that have a copy's records from an offset on; empty unless they are most of the voters it knows.

    Only records of its last epoch count as proof, since a majority can lose those of earlier epochs (figure 8 of the
    Raft paper). ``index`` is that of the copy, ``peers`` are those of the copies that count, perhaps with its own.
    """
    copy = copies[index]
    epoch_start = next((first for epoch, first in reversed(copy.epochs) if epoch == copy.last_epoch), offset)
    reach = max(epoch_start, offset)
    nodes = {copies[peer].node_id for peer in peers if peer == index or (pairs.of(index, peer).to or 0) > reach}
    voters = [voter for voter in copy.voters if voter in nodes]
    return sorted(voters) if len(voters) > len(copy.voters) // 2 else []


def startable_majority(comparison: CopyComparison) -> list[int]:
    """The ids of the voters that can elect a leader from their copies and lose no record; empty if no majority can.

    Each of them has an undamaged log that contradicts no other, and one of them has every record of the reference: the
    others elect it, because its log is the longest. (Old backups of all of them have not.) Of a node with several
    copies every one is such a log, as nobody knows here which of them it would start with.
    """
    reference = comparison.reference
    complete = _whole_logs(comparison)
    members = [verdict.copy for verdict in comparison.verdicts if verdict.state != OTHER_CLUSTER]
    voters = [verdict.copy for verdict in complete if _voter(verdict.copy, reference) is not None]
    latest_stated = max((copy.stated_epoch or -1 for copy in voters), default=-1)
    if any(copy.knows_leader and (copy.stated_epoch or -1) > latest_stated for copy in members):
        return []  # whoever elected that leader knew its epoch: these are older copies
    incomplete = {copy.node_id for copy in members if all(copy is not verdict.copy for verdict in complete)}
    ends = _ends_by_voter([verdict for verdict in complete if verdict.copy.node_id not in incomplete], reference)
    has_all = max(ends.values(), default=-1) >= (reference.end or 0)
    return sorted(ends) if has_all and len(ends) >= _majority(reference) else []


def majority_without(comparison: CopyComparison) -> tuple[list[int], int]:
    """The voters, a majority, whose logs are whole and agree without the reference, and the greatest end of them.

    The voters are those that the copy which ranks next after the reference knows. Returns ``([], 0)`` if there is no
    such majority, or if the reference names other voters: then those may have become a minority meanwhile.
    """
    complete = [verdict for verdict in _whole_logs(comparison) if verdict.copy is not comparison.reference]
    if not complete:
        return [], 0
    first = max((verdict.copy for verdict in complete), key=rank)
    if comparison.reference.voters and comparison.reference.voters.keys() != first.voters.keys():
        return [], 0
    ends = {voter: verdict.copy.end or 0 for verdict in complete if (voter := _voter(verdict.copy, first)) is not None}
    return (sorted(ends), max(ends.values())) if len(ends) >= _majority(first) else ([], 0)


def _whole_logs(comparison: CopyComparison) -> list[CopyVerdict]:
    """The verdicts on undamaged logs with records that are of the reference's history, or diverge as elections do."""
    return [
        verdict
        for verdict in comparison.verdicts
        if verdict.copy.log_end is not None and not verdict.copy.damage
        if verdict.state in CONSISTENT or (verdict.divergence is not None and verdict.divergence.contradiction is None)
    ]


def _ends_by_voter(verdicts: Iterable[CopyVerdict], reference: Copy) -> dict[int, int]:
    """Voter id -> the offset (exclusive) up to which its log is the same as that of the copy it was compared with."""
    ends: dict[int, int] = {}
    for verdict in verdicts:
        voter = _voter(verdict.copy, reference)
        if voter is not None:
            ends[voter] = max(ends.get(voter, 0), verdict.to or 0)
    return ends


def _majority(reference: Copy) -> int:
    return len(reference.voters) // 2 + 1


def _voter(copy: Copy, reference: Copy) -> int | None:
    """The id of the voter that a copy belongs to, by node id and, if both are known, directory id (KIP-853)."""
    if copy.node_id is None or copy.node_id not in reference.voters:
        return None
    directory = reference.voters[copy.node_id]
    return copy.node_id if copy.directory_id is None or directory in (None, copy.directory_id) else None


def not_the_voter(copy: Copy, reference: Copy) -> str | None:
    """Say that a copy is of a voter's node and of another disk, so that it does not count as that voter (KIP-853)."""
    if copy.node_id not in reference.voters or _voter(copy, reference) is not None:
        return None
    return (
        f"{copy.path}: its meta.properties is of directory {copy.directory_id}, and the log names directory"
        f" {reference.voters[copy.node_id]} for voter {copy.node_id}: it does not count as that voter"
    )


def _with_uncommitted(verdict: CopyVerdict, committed: int) -> CopyVerdict:
    """The verdict with ``uncommitted`` set: where the part of the copy begins that is not proven to be committed."""
    if verdict.state == OTHER_CLUSTER:
        return verdict
    limit = min(committed, verdict.divergence.offset) if verdict.divergence else committed
    return verdict._replace(uncommitted=limit if _end(verdict.copy) > limit else None)
