"""Headers and bodies of requests and responses."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.protocol.api import API_VERSIONS_KEY, Api, api, correlation_of, decode_response, encode_request
from kshell.protocol.decoder import decode
from kshell.protocol.messages.connection import API_VERSIONS, SASL_HANDSHAKE
from kshell.protocol.primitives import DecodeError
from tests.server.frames import decode_header, encode_response

PING = api("Ping", 999, "0-2", flexible=2, request="number int32", response="number int32")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_request_has_kafkas_header(version: int) -> None:
    frame = encode_request(PING, version, 7, "me", {"number": 5})
    tags = b"\0" if version == 2 else b""
    assert frame == struct.pack(">hhih", 999, version, 7, 2) + b"me" + tags + b"\0\0\0\5" + tags
    head = decode_header(frame, PING.request.flexible)
    assert head[:4] == (999, version, 7, "me")
    assert decode(PING.request, version, frame, head.body) == {"number": 5}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_response_has_kafkas_header(version: int) -> None:
    frame = encode_response(PING, version, -9, {"number": 5})
    tags = b"\0" if version == 2 else b""
    assert frame == struct.pack(">i", -9) + tags + b"\0\0\0\5" + tags
    assert decode_response(PING, version, frame) == (-9, {"number": 5})
    assert correlation_of(frame) == -9


@pytest.mark.parametrize("version", range(5))
def test_the_header_of_api_versions_has_no_tags(version: int) -> None:
    frame = encode_response(API_VERSIONS, version, 3, {"apiKeys": []})
    assert frame[4:6] == b"\0\0"  # the error code, at once
    assert decode_response(API_VERSIONS, version, frame)[1]["errorCode"] == 0


def test_unknown_tags_of_a_header_are_passed_over() -> None:
    frame = b"\0\0\0\1" + b"\2" + b"\5\1x" + b"\x81\1\0" + b"\0\0\0\5" + b"\0"
    assert decode_response(PING, 2, frame) == (1, {"number": 5})


@pytest.mark.parametrize(
    "frame",
    [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\5\x7fx", b"\0\0\0\1\0\0\0\0\5\0more",
     b"\0\0\0\1\xff\xff\xff\xff\xff\xff"],
)  # fmt: skip
def test_what_is_no_response_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response(PING, 2, frame)


@pytest.mark.parametrize("frame", [b"", b"\0\1\0\0\0\0\0\1", b"\0\1\0\0\0\0\0\1\0\5ab"])
def test_what_is_no_request_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_header(frame)


def test_a_client_may_have_no_name() -> None:
    assert decode_header(b"\0\1\0\0\0\0\0\1\xff\xff").client_id is None


@given(frame=st.binary(max_size=60), version=st.integers(0, 2))
def test_no_bytes_break_the_decoder(frame: bytes, version: int) -> None:
    for made in (PING, API_VERSIONS, SASL_HANDSHAKE):
        if version in made.versions:
            with contextlib.suppress(DecodeError):
                decode_response(made, version, frame)


def test_an_api_without_flexible_versions() -> None:
    assert not any(SASL_HANDSHAKE.is_flexible(version) for version in (0, 1, 100))
    assert isinstance(SASL_HANDSHAKE, Api)
    assert API_VERSIONS.key == API_VERSIONS_KEY
