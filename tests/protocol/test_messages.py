"""Every declared request and response, of Kafka and of the drafts, comes back as it went out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as search
from hypothesis import strategies as st

from kshell.protocol.api import Api, decode_response, encode_request
from kshell.protocol.decoder import UNKNOWN_TAGS, decode, decoder
from kshell.protocol.messages.drafts import DIALECTS
from kshell.protocol.names import API_NAMES, api_name, error_codes, error_name, is_retriable
from kshell.protocol.primitives import DecodeError
from tests.protocol.strategies import messages
from tests.server.apis import apis
from tests.server.frames import decode_header, encode_response

DECLARED = {**{made.name: made for made in apis().values()}, **DIALECTS}


def versions_of(made: Api) -> range:
    assert made.versions.high is not None
    return range(made.versions.low, made.versions.high + 1)


ALL = [(name, version) for name, made in DECLARED.items() for version in versions_of(made)]


@pytest.mark.parametrize(("name", "version"), ALL)
@search(max_examples=10)
@given(data=st.data())
def test_what_goes_out_comes_back(name: str, version: int, data: st.DataObject) -> None:
    made = DECLARED[name]
    request = data.draw(messages(made.request, version))
    frame = encode_request(made, version, 5, "me", request)
    assert decode(made.request, version, frame, decode_header(frame, made.request.flexible).body) == request
    response = data.draw(messages(made.response, version))
    assert decode_response(made, version, encode_response(made, version, 5, response)) == (5, response)


@pytest.mark.parametrize(("name", "version"), ALL)
def test_defaults_alone_are_a_message(name: str, version: int) -> None:
    made = DECLARED[name]
    for schema, frame in (
        (made.request, encode_request(made, version, 1, "", {})),
        (made.response, encode_response(made, version, 1, {})),
    ):
        start = decode_header(frame, schema.flexible).body if schema is made.request else None
        body = decode(schema, version, frame, start) if start is not None else decode_response(made, version, frame)[1]
        assert UNKNOWN_TAGS not in body


@pytest.mark.parametrize(("name", "version"), ALL)
@search(max_examples=20)
@given(raw=st.binary(max_size=80))
def test_no_bytes_break_a_decoder(name: str, version: int, raw: bytes) -> None:
    for schema in (DECLARED[name].request, DECLARED[name].response):
        try:
            _, end = decoder(schema, version)(raw, 0)
        except DecodeError:
            continue
        assert end <= len(raw)


def test_names_and_keys_agree() -> None:
    for made in DECLARED.values():
        assert API_NAMES[made.key] == made.name
        assert (made.request.name, made.response.name) == (f"{made.name}Request", f"{made.name}Response")


def test_numbers_that_nobody_knows_are_shown_as_they_are() -> None:
    assert api_name(4711) == "api 4711"
    assert error_name(4711) == "error code 4711"
    assert not is_retriable(4711)
    assert {-1, 0, 133} <= set(error_codes())
