"""Error codes become typed errors that say what to do next."""

from __future__ import annotations

import pytest

from kshell.client import codes
from kshell.errors import (
    AuthorizationError,
    ClusterIdError,
    NodeError,
    ServerError,
    UnsupportedVersionError,
    WrongEndpointError,
)
from kshell.protocol.names import error_codes, error_name, is_retriable


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (31, AuthorizationError),
        (29, AuthorizationError),
        (35, UnsupportedVersionError),
        (104, ClusterIdError),
        (114, WrongEndpointError),
        (115, WrongEndpointError),
        (-1, ServerError),
        (41, ServerError),
        (4711, ServerError),
    ],
)
def test_a_code_is_a_typed_error(code: int, kind: type[NodeError]) -> None:
    made = codes.failure("node:9093", code, "Fetch", "said so")
    assert type(made) is kind
    # What a server says when it refuses somebody is a dump of the request.
    said = "" if kind is AuthorizationError else ": said so"
    assert made.message == f"node:9093: Fetch: {error_name(code)}{said}"
    assert made.exit_code == 3


@pytest.mark.parametrize("code", [code for code in error_codes() if code] + [4711, -32768])
def test_every_code_has_an_error(code: int) -> None:
    made = codes.failure("node:9093", code, "Fetch")
    assert error_name(code) in made.message
    if isinstance(made, ServerError):
        assert made.code == code


def test_what_is_missing_is_named() -> None:
    assert "CLUSTER_ACTION on CLUSTER:kafka-cluster" in str(codes.failure("n", 31, "Fetch").hint)
    assert "DESCRIBE on CLUSTER:kafka-cluster" in str(codes.failure("n", 31, "DescribeQuorum").hint)
    assert codes.failure("n", 31, "Vote").hint is None


def test_a_message_that_is_the_name_is_said_once() -> None:
    assert codes.failure("n", 41, "Fetch", "NOT_CONTROLLER").message == "n: Fetch: NOT_CONTROLLER"


def test_what_a_server_says_has_an_end() -> None:
    assert len(codes.failure("n", 41, "Fetch", "x" * 1_000_000).message) < 2000


def test_what_may_pass() -> None:
    assert codes.may_succeed_later(8)  # a controller that shuts down
    assert not is_retriable(8)
    assert codes.may_succeed_later(6)
    assert not codes.may_succeed_later(31)
    assert not codes.may_succeed_later(4711)
