"""explain: every byte of every recorded batch, once and in order, with what the decoders say of it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_OK, CommandError, UsageError
from kshell.history.byte_map import TYPES, ByteRange, batch_pieces
from kshell.metadata.records import decode_record
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.protocol.batches import HEADER_SIZE, Batch, iter_records, pack, read_header
from kshell.protocol.decoder import UNKNOWN_TAGS
from kshell.protocol.primitives import Uuid
from tests import builders
from tests.commands.shell import lines, opened, rows, run
from tests.commands.test_loggers import live
from tests.server import Quorum

NODES = builders.recorded()
SHOWN, HIDDEN = Redaction(show_secrets=True), Redaction()


def files(node: Path) -> list[Path]:
    directory = node / "__cluster_metadata-0"
    return sorted([*directory.glob("*.log"), *directory.glob("*.checkpoint")])


def covered(pieces: list[ByteRange], start: int) -> bytes:
    """The bytes of pieces, which follow each other without a gap."""
    for piece in pieces:
        assert piece.start == start, piece
        assert piece.end - piece.start == len(piece.raw) > 0, piece
        start = piece.end
    return bytes.fromhex("".join(piece.hex for piece in pieces))


@pytest.mark.parametrize("node", NODES, ids=builders.node_name)
def test_every_byte_of_every_recorded_batch_is_there_once_and_in_order(node: Path) -> None:
    for path in files(node):
        raw = path.read_bytes()
        for batch in builders.batches(raw):
            pieces = list(batch_pieces(batch, SHOWN))
            assert covered(pieces, batch.position) == batch.raw()
            assert {piece.type for piece in pieces} <= {*TYPES}
            assert not [piece for piece in pieces if piece.note and "stops here" in piece.note]
            hidden = list(batch_pieces(batch, HIDDEN))
            assert [(p.start, p.end, p.field) for p in hidden] == [(p.start, p.end, p.field) for p in pieces]


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The fields of a decoded message by their dotted paths, as the bytes have them."""
    if isinstance(value, dict):
        for name, below in value.items():
            if name == UNKNOWN_TAGS:
                yield from ((f"{path}.{name}[{kept['tag']}]", kept["data"].hex()) for kept in below if kept["data"])
            else:
                yield from leaves(below, f"{path}.{name}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves(below, f"{path}[{index}]")
    elif isinstance(value, Uuid):
        yield path, str(value)
    elif isinstance(value, bytes):
        import base64

        yield from [(path, base64.b64encode(value).decode())] if value else []
    elif value is not None and value != "":  # of null and of what is empty, only the length is there
        yield path, value


def decoded_leaves(batch: Batch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, raw in enumerate(iter_records(batch)):
        decoded = decode_record(raw, control=batch.is_control)
        assert decoded.data is not None
        found |= leaves(decoded.data, f"records[{index}].value")
    return found


FRAMING = ("frameVersion", "apiKey", "length", "count", "taggedFields", "tag", "tagSize", "isPresent")


@pytest.mark.parametrize("node", NODES, ids=builders.node_name)
def test_values_are_those_of_the_decoders(node: Path) -> None:
    for path in files(node):
        for batch in builders.batches(path.read_bytes()):
            pieces = [piece for piece in batch_pieces(batch, SHOWN) if ".value." in piece.field]
            values = {piece.field: piece.value for piece in pieces}
            expected = decoded_leaves(batch)
            assert expected.items() <= values.items()
            rest = {name for name in values.keys() - expected.keys() if name.rpartition(".")[2] not in FRAMING}
            own = {name for name in rest if not batch.is_control and name.endswith("].value.version")}
            assert rest == own


def test_the_header_says_what_follows_from_it() -> None:
    raw = builders.control_batch([builders.leader_change()], 7, 3)
    notes = {piece.field: piece.note for piece in batch_pieces(builders.parsed(raw), SHOWN)}
    assert notes["crc"] == "right"
    assert notes["attributes"] == "compression none, CreateTime, not transactional, control"
    assert notes["baseTimestamp"] == "2023-11-14T22:13:20.000Z"
    assert notes["records[0].key.type"] == "LEADER_CHANGE"
    assert notes["records[0].offsetDelta"] == "offset 7"


def topic(**more: Any) -> bytes:
    return builders.value("TOPIC", name="t", topicId=builders.uuid(1), **more)


def test_compressed_records_are_explained_decompressed() -> None:
    values = [topic(), topic()]
    body = pack([(None, value) for value in values])
    raw = builders.batch(values, 5, codec=1, compressed=gzip.compress(body))
    pieces = list(batch_pieces(builders.parsed(raw), SHOWN))
    stored = [piece for piece in pieces if not piece.is_decompressed]
    assert covered(stored, 0) == raw
    assert stored[-1].note == f"gzip: {len(body)} bytes when decompressed, explained below"
    assert covered([piece for piece in pieces if piece.is_decompressed], 0) == body


def secret(text: str) -> bytes:
    return builders.value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value=text)


def test_compressed_bytes_with_a_secret_inside_are_hidden() -> None:
    body = pack([(None, secret("canary"))])
    raw = builders.batch([secret("canary")], codec=1, compressed=gzip.compress(body, 0))
    assert b"canary" in raw  # as it is, without compression
    text = repr([(piece.hex, piece.visible_value) for piece in batch_pieces(builders.parsed(raw), HIDDEN)])
    assert b"canary".hex(" ") not in text and "canary" not in text
    shown = [(piece.hex, piece.visible_value) for piece in batch_pieces(builders.parsed(raw), SHOWN)]
    assert b"canary".hex(" ") in repr(shown) and "canary" in repr(shown)


def test_unknown_types_and_versions_stay_bytes(tmp_path: Path) -> None:
    values = [b"\x01\x63\x00rest", b"\x01\x02\x09later", topic()]
    raw = builders.batch(values)
    pieces = {piece.field: piece for piece in batch_pieces(builders.parsed(raw), HIDDEN)}
    assert covered(list(pieces.values()), 0) == raw
    assert pieces["records[0].value.rest"].raw == b"rest"
    assert pieces["records[0].value.rest"].note == "stops here: record type 99 is not known"
    assert "version 9 is not known" in str(pieces["records[1].value.rest"].note)
    assert pieces["records[2].value.name"].value == "t"


def test_tags_that_are_not_declared_are_shown(tmp_path: Path) -> None:
    raw = builders.batch([topic(**{UNKNOWN_TAGS: [{"tag": 77, "data": b"\x01\x02"}]})])
    (piece,) = [piece for piece in batch_pieces(builders.parsed(raw), HIDDEN) if piece.field.endswith("[77]")]
    assert piece.value == "0102"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_of_a_damaged_batch_every_byte_is_still_there_and_no_secret(data: st.DataObject) -> None:
    values = [topic(), secret("canary1x"), topic(), secret("canary2x")]
    raw = bytearray(builders.batch(values, 3))
    at = data.draw(st.integers(8, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    batch = read_header(bytes(raw), 0)
    end = len(raw)
    assert covered(list(batch_pieces(batch, SHOWN, end=end)), 0) == raw
    text = repr([(piece.hex, piece.visible_value, piece.note) for piece in batch_pieces(batch, HIDDEN, end=end)])
    for canary in ("canary1x", "canary2x"):
        assert canary not in text and canary.encode().hex(" ") not in text


def directory(folder: Path) -> Path:
    opening = builders.control_batch([builders.leader_change()])
    builders.write_log(folder, opening, builders.batch([topic(), topic()], 1), builders.batch([topic()], 3))
    return folder


def test_the_command_finds_the_batch_of_an_offset(tmp_path: Path) -> None:
    path = directory(tmp_path)
    raw = (path / builders.LOG).read_bytes()
    second = builders.batches(raw)[1]
    found = rows(opened(path), "explain 2")
    assert found[0]["position"] == second.position
    assert bytes.fromhex("".join(row["hex"] for row in found)) == second.raw()
    one = rows(opened(path), "explain 2 --record")
    assert {row["field"].partition(".")[0] for row in one} == {"records[1]"}
    assert run(opened(path), "explain 2").exit_code == EXIT_OK


def test_text_prints_eight_bytes_a_line(tmp_path: Path) -> None:
    path = directory(tmp_path)
    shown = lines(opened(path), "explain 0")
    printed = "".join(line[10:33].strip() for line in shown).replace(" ", "")
    assert bytes.fromhex(printed) == builders.batches((path / builders.LOG).read_bytes())[0].raw()
    assert shown[3].split() == ["16", "02", "magic", "=", "2"]


def test_damage_is_explained_up_to_where_it_can_be(tmp_path: Path) -> None:
    path = directory(tmp_path)
    raw = bytearray((path / builders.LOG).read_bytes())
    second = builders.batches(bytes(raw))[1]
    raw[second.position + HEADER_SIZE] = 0x7E  # a record that is longer than its batch
    (path / builders.LOG).write_bytes(raw)
    session = opened(path, show_secrets=True)
    result = run(session, "explain 1")
    assert result.exit_code == EXIT_DATA
    found = [dict(row) for row in result]  # type: ignore[attr-defined]  # Rows
    assert bytes.fromhex("".join(row["hex"] for row in found)) == raw[second.position : second.end]
    assert next(row for row in found if row["field"] == "crc")["note"].startswith("wrong: the bytes have ")
    assert found[-1]["field"] == "records[0].rest" and "runs past the end of the batch" in found[-1]["note"]
    with pytest.raises(CommandError, match="damaged"):
        run(opened(path), "explain 1 --record")
    assert run(opened(path), "explain 3").exit_code == EXIT_OK  # behind the damage


def test_a_torn_end_is_explained_up_to_the_files_end(tmp_path: Path) -> None:
    path = directory(tmp_path)
    raw = (path / builders.LOG).read_bytes()
    last = builders.batches(raw)[-1]
    for cut in (raw[:-5], raw[: last.position + 20]):
        (path / builders.LOG).write_bytes(cut)
        result = run(opened(path, show_secrets=True), "explain 3")
        assert result.exit_code == EXIT_DATA
        found = [dict(row) for row in result]  # type: ignore[attr-defined]  # Rows
        assert bytes.fromhex("".join(row["hex"] for row in found)) == cut[last.position :]


def test_a_snapshot_has_offsets_of_its_own() -> None:
    node = builders.FIXTURES / "4.3.1" / "controller-3000"
    path = sorted((node / "__cluster_metadata-0").glob("*.checkpoint"))[-1]
    first = builders.batches(path.read_bytes())[0]
    end, _, epoch = path.stem.partition("-")
    found = rows(opened(node), f"explain 0 --snapshot {int(end)}-{int(epoch)}")
    assert bytes.fromhex("".join(row["hex"] for row in found)) == first.raw()
    assert "SNAPSHOT_HEADER" in {row["note"] for row in found}
    assert rows(opened(path), "explain 0") == found  # a lone snapshot needs no name


def test_offsets_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = directory(tmp_path)
    with pytest.raises(CommandError, match="no batch of the log has that offset"):
        run(opened(path), "explain 4")
    builders.write_log(path, builders.batch([b"\1\1\0"], 9), base_offset=9)
    with pytest.raises(CommandError) as caught:
        run(opened(path), "explain 4")
    assert (caught.value.hint or "").endswith(" and 9 to 9"), "the gap is seen"
    with pytest.raises(UsageError, match="whole number"):
        run(opened(path), "explain x")
    with pytest.raises(CommandError, match="no such snapshot"):
        run(opened(path), "explain 0 --snapshot 9-9")


def test_secret_fields_are_redacted_in_hex_too(tmp_path: Path) -> None:
    builders.write_log(
        tmp_path, builders.control_batch([builders.leader_change()]), builders.batch([secret("s3cr")], 1)
    )
    (row,) = [row for row in rows(opened(tmp_path), "explain 1") if row["field"] == "records[0].value.value"]
    assert (row["hex"], row["value"]) == (REDACTED, REDACTED)
    (row,) = [row for row in rows(opened(tmp_path), "explain 1 --show-secrets") if row["field"].endswith("value.value")]
    assert (row["hex"], row["value"]) == (b"s3cr".hex(" "), "s3cr")


def test_what_an_observer_fetched_is_explained_like_a_file() -> None:
    with Quorum(controllers=2, brokers=0) as quorum:
        quorum.append(topic(), topic())
        session = live(quorum)
        found = rows(session, "explain 1")
        assert bytes.fromhex("".join(row["hex"] for row in found))[:8] == (1).to_bytes(8, "big")
        assert [row["value"] for row in found if row["field"] == "records[1].value.name"] == ["t"]


def test_what_is_after_the_point_that_is_shown_is_not_explained(tmp_path: Path) -> None:
    session = opened(directory(tmp_path))
    assert rows(session, "explain 3 --as-of 3")
    with pytest.raises(CommandError, match="3: after offset 1, the point in time that is shown") as caught:
        run(session, "explain 3 --as-of 1")
    assert rows(session, caught.value.hint or "")


def test_an_offset_that_the_log_lacks_is_not_looked_for_later(sample: Session) -> None:
    """Only what comes after the point is there now."""
    with pytest.raises(CommandError) as raised:
        run(sample.reshape(point="5"), "explain 100000")
    assert "as-of" not in (raised.value.hint or "")
    with pytest.raises(CommandError) as raised:
        run(sample.reshape(point="5"), "explain 7")
    assert raised.value.hint == "explain 7 --as-of now"
