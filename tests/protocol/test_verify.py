"""The rules between batches: offsets, epochs, and what a file's end means."""

from __future__ import annotations

import struct

import pytest

from kshell.errors import CorruptDataError
from kshell.protocol import verify
from kshell.protocol.batches import Batch
from kshell.protocol.verify import Chain, FixedEpoch, LeaderEpochs, RisingEpochs, Torn, find_batch
from tests.builders import batch, batches, control_batch, leader_change, sealed, snapshot, value

NOTHING = value("NO_OP")


def data(offset: int, epoch: int, count: int = 1) -> bytes:
    return batch([NOTHING] * count, offset, epoch)


def leader(offset: int, epoch: int) -> bytes:
    return control_batch([leader_change()], offset, epoch)


def walk(
    *parts: bytes, history: list[tuple[int, int]] | None = None, start: int | None = None
) -> tuple[list[int], Torn | None]:
    """(base offset of every batch, torn end)."""
    chain = Chain(LeaderEpochs(history), start)
    found = [batch.base_offset for batch in chain.walk(b"".join(parts), "f")]
    return found, chain.torn


def damage(*parts: bytes, history: list[tuple[int, int]] | None = None, start: int | None = None) -> tuple[int, str]:
    """(which of the parts is to blame, why)."""
    with pytest.raises(CorruptDataError) as caught:
        walk(*parts, history=history, start=start)
    ends = [sum(map(len, parts[:index])) for index in range(len(parts))]
    assert caught.value.file == "f"
    return ends.index(caught.value.position), caught.value.reason


def test_a_sound_log() -> None:
    parts = leader(0, 1), data(1, 1, 3), leader(4, 3), data(5, 3)
    for history in (None, [(1, 0), (3, 4)], [(1, 0), (3, 4), (4, 6)], [(1, 0)], [(3, 4)]):
        assert walk(*parts, history=history, start=0) == ([0, 1, 4, 5], None)
    assert walk() == ([], None)


def test_offsets_have_no_gap_and_no_overlap() -> None:
    assert damage(data(0, 1, 2), data(3, 1)) == (1, "the batch starts at offset 3, 2 was expected")
    assert damage(data(0, 1, 2), data(1, 1)) == (1, "the batch starts at offset 1, 2 was expected")
    assert damage(data(4, 1), start=3) == (0, "the batch starts at offset 4, 3 was expected")


def test_a_batch_counts_its_records() -> None:
    raw = bytearray(data(0, 1, 2))
    for delta, count in ((2, 2), (0, 2), (-1, 0), (1, 3)):
        struct.pack_into(">i", raw, 23, delta)
        struct.pack_into(">i", raw, 57, count)
        where, reason = damage(sealed(raw))
        assert where == 0
        assert reason == f"the batch counts {count} records over {delta + 1} offsets"


def test_the_epoch_never_falls() -> None:
    assert damage(data(0, 3), data(1, 3), data(2, 2))[0] == 2
    assert "falls from 3 to 2" in damage(data(0, 3), data(1, 3), leader(2, 2))[1]


def test_a_rise_needs_a_leader_change_or_the_checkpoint() -> None:
    parts = data(0, 1), data(1, 1), data(2, 2)
    assert damage(*parts) == (2, "the epoch rises from 1 to 2 without a LeaderChange record")
    assert walk(*parts, history=[(1, 0), (2, 2)])[0] == [0, 1, 2]
    assert damage(*parts, history=[(1, 0), (2, 1)])[0] == 1
    assert walk(data(0, 1), data(1, 1), leader(2, 2))[0] == [0, 1, 2]


def test_a_rise_over_what_is_missing_needs_none() -> None:
    epochs = LeaderEpochs()
    list(Chain(epochs, 0).walk(data(0, 1), "a"))
    assert [one.base_offset for one in Chain(epochs, 5).walk(data(5, 2) + data(6, 2), "b")] == [5, 6]
    with pytest.raises(CorruptDataError, match="falls from 2 to 1"):
        list(Chain(epochs, 9).walk(data(9, 1), "c"))


def test_a_leader_change_raises_the_epoch() -> None:
    assert damage(leader(0, 1), data(1, 1), leader(2, 1)) == (
        2,
        "a LeaderChange record does not raise the epoch from 1",
    )


def test_the_checkpoint_overrules_what_a_batch_says() -> None:
    history = [(1, 0), (4, 2)]
    assert damage(leader(0, 1), data(1, 1), leader(2, 3), data(3, 3), history=history)[0] == 2
    assert damage(leader(0, 2), data(1, 2), history=history) == (
        0,
        "the batch has epoch 2, leader-epoch-checkpoint says 1",
    )


def test_the_checkpoint_is_asked_again_where_its_next_line_begins_and_where_a_walk_goes_back() -> None:
    history = [(1, 0), (2, 4), (3, 6)]
    parts = leader(0, 1), data(1, 1), data(2, 1, 2)
    assert damage(*parts, data(4, 1), history=history) == (3, "the batch has epoch 1, leader-epoch-checkpoint says 2")
    epochs = LeaderEpochs(history)
    for offset, epoch in (4, 2), (5, 2), (5, 2):
        list(Chain(epochs, None).walk(data(offset, epoch), "f"))
    for offset, known in (3, 1), (6, 3):
        with pytest.raises(CorruptDataError, match=f"has epoch 2, leader-epoch-checkpoint says {known}"):
            list(Chain(epochs, None).walk(data(offset, 2), "f"))
    list(Chain(epochs, None).walk(data(4, 2), "f"))


def test_a_checkpoint_that_is_older_than_the_log_lets_leader_changes_raise_the_epoch() -> None:
    parts = leader(0, 1), data(1, 1), leader(2, 2), data(3, 2)
    assert walk(*parts, history=[(1, 0)])[0] == [0, 1, 2, 3]
    assert damage(*parts[:2], data(2, 2), history=[(1, 0)])[0] == 2


def test_without_a_witness_the_next_batch_decides_who_is_wrong() -> None:
    assert damage(data(0, 65), data(1, 1), data(2, 1)) == (0, "the batch has epoch 65, the batches after it have 1")
    assert damage(leader(0, 1), data(1, 1), leader(2, 34), data(3, 2), data(4, 2))[0] == 2
    assert damage(data(0, 1), data(1, 1), data(2, 0), data(3, 1))[0] == 2


def test_epochs_go_on_over_files() -> None:
    epochs = LeaderEpochs()
    list(Chain(epochs, 0).walk(data(0, 5) + data(1, 5), "a"))
    with pytest.raises(CorruptDataError, match="falls from 5 to 4") as caught:
        list(Chain(epochs, 2).walk(data(2, 4), "b"))
    assert (caught.value.file, caught.value.position) == ("b", 0)


def snapshot_walk(epoch: int | None, *epochs: int) -> FixedEpoch:
    rule = FixedEpoch(epoch)
    raw = b"".join(data(index, one) for index, one in enumerate(epochs))
    list(Chain(rule, 0).walk(raw, "f"))
    return rule


def blamed(epoch: int | None, *epochs: int) -> int:
    with pytest.raises(CorruptDataError) as caught:
        snapshot_walk(epoch, *epochs)
    return caught.value.position // len(data(0, 0))


def test_a_snapshot_has_the_epoch_of_its_name() -> None:
    assert snapshot_walk(4, 4, 4, 4).epoch == 4
    assert blamed(4, 5, 5, 5) == 0
    assert blamed(4, 4, 5, 4) == 1
    assert blamed(4, 4, 4, 0) == 2


def test_epoch_0_throughout_is_accepted_under_any_name() -> None:
    assert snapshot_walk(4, 0, 0, 0).epoch == 0
    assert blamed(4, 0, 4, 4) == 0
    assert blamed(4, 0, 0, 4) == 2
    assert blamed(4, 4, 0, 4) == 1


def test_without_a_name_the_batches_agree_with_each_other() -> None:
    assert snapshot_walk(None, 7, 7).epoch == 7
    assert snapshot_walk(None, 7).epoch == 7
    assert blamed(None, 7, 0, 0) == 0
    assert blamed(None, 0, 7, 0) == 1
    assert blamed(None, 0, 7) == 1


@pytest.mark.parametrize("left", [1, 11, 60, 61])
def test_a_file_that_ends_inside_a_batch_is_torn(left: int) -> None:
    whole, cut = data(0, 1), data(1, 1, 5)
    found, torn = walk(whole, cut[:left])
    assert found == [0]
    assert torn is not None
    assert (torn.position, torn.bytes_left) == (len(whole), left)


def test_a_length_that_reaches_past_the_end_is_told_from_a_torn_end() -> None:
    def longer(raw: bytes, by: int) -> bytes:
        return raw[:8] + (int.from_bytes(raw[8:12], "big") + by).to_bytes(4, "big") + raw[12:]

    assert "its CRC says that it is whole" in damage(data(0, 1), longer(data(1, 1), 5))[1]
    where, reason = damage(data(0, 1), longer(data(1, 1), 500), data(2, 1))
    assert where == 1
    assert "a whole batch follows" in reason
    assert "7 was expected" in damage(data(6, 1), data(9, 1)[:-1])[1]


@pytest.mark.parametrize("length", [0, 48, -1, -(2**31)])
def test_a_length_below_a_header_is_damage(length: int) -> None:
    raw = data(0, 1)
    bad = raw[:8] + length.to_bytes(4, "big", signed=True) + raw[12:]
    assert damage(bad) == (0, f"the batch claims a length of {length} bytes")


@pytest.mark.parametrize("magic", [0, 1, 3, 0x82])
def test_another_magic_is_damage(magic: int) -> None:
    raw = data(0, 1)
    where, reason = damage(raw, data(1, 1)[:16] + bytes([magic]) + data(1, 1)[17:])
    assert where == 1
    assert "magic" in reason


def test_walking_from_the_middle() -> None:
    raw = data(0, 1) + data(1, 1)
    found: list[Batch] = list(Chain(LeaderEpochs(), None).walk(raw, "f", len(raw) // 2))
    assert [one.base_offset for one in found] == [1]


def test_find_batch_looks_for_a_whole_one() -> None:
    first, second = data(0, 1), data(1, 1)
    raw = b"\x02junk\x02" + first[:40] + second + b"\x02"
    found = find_batch(raw, 0)
    assert found is not None
    assert found.position == 6 + 40
    assert find_batch(raw, found.position + 1) is None
    assert find_batch(b"", 0) is None
    assert find_batch(b"\x02" * 500, 0) is None


def test_find_batch_gives_up_on_headers_made_to_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers back to back, each of which claims all the rest of the file: a CRC each would be quadratic."""
    count, good = 2000, data(0, 1)
    whole = bytearray()
    for index in range(count):
        header = bytearray(good[:61])
        header[8:12] = ((count - index) * 61 + len(good) - 12).to_bytes(4, "big")
        whole += header
    whole += good
    monkeypatch.setattr(verify, "_SEARCHED", 200 * len(whole))
    assert find_batch(bytes(whole), 0) is None
    found = find_batch(bytes(whole), (count - 100) * 61)
    assert found is not None
    assert found.position == count * 61


def test_a_record_before_the_leader_change_of_its_epoch() -> None:
    """As in real logs of Kafka 3.3.2: the first record of an epoch before its LeaderChange."""
    assert walk(data(0, 1), leader(1, 1), data(2, 1), start=0) == ([0, 1, 2], None)
    assert walk(leader(0, 1), data(1, 2), leader(2, 2), data(3, 2)) == ([0, 1, 2, 3], None)
    # One of two neighbours is blamed; that something is wrong never goes unsaid.
    assert damage(data(0, 1), leader(1, 1), leader(2, 1), data(3, 1))[0] in (1, 2)
    assert damage(leader(0, 1), data(1, 2), data(2, 2), leader(3, 2))[0] in (0, 1)


def test_a_leaders_batches_only_rise() -> None:
    chain = Chain(RisingEpochs(), 0)
    assert [b.epoch for b in chain.walk(data(0, 1) + data(1, 3) + data(2, 3), "node")] == [1, 3, 3]
    with pytest.raises(CorruptDataError, match="the epoch falls from 3 to 2"):
        list(chain.walk(data(3, 2), "node"))


@pytest.mark.parametrize("epochs", [LeaderEpochs, RisingEpochs])
def test_a_log_has_no_header_and_no_footer_of_a_snapshot(epochs: type[LeaderEpochs | RisingEpochs]) -> None:
    whole = snapshot([value("NO_OP")])
    *_, footer = batches(whole)
    for raw, start in ((whole, 0), (whole, 7), (whole, None), (data(1, 1) + whole[footer.position :], None)):
        with pytest.raises(CorruptDataError, match="the file is a snapshot, not a segment") as caught:
            list(Chain(epochs(), start).walk(raw, "f"))
        assert caught.value.position == (0 if raw == whole else len(data(1, 1)))
