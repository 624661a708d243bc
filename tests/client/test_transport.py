"""Frames over a socket: what is believed, how long it may take, and what a person is told."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kshell.client.address import name_of
from kshell.client.connection import MAX_FRAME, SocketTransport
from kshell.errors import ConnectError, NodeError, ProtocolError, SourceTimeoutError


@contextmanager
def serving(act: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port at which one connection is served by ``act``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                act(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


@contextmanager
def talking(data: bytes, *, stays: bool = False) -> Iterator[SocketTransport]:
    """A transport whose peer sends ``data`` and, unless it ``stays``, closes."""
    over = threading.Event()

    def act(connection: socket.socket) -> None:
        connection.sendall(data)
        if stays:
            over.wait(5)

    with serving(act) as port:
        transport = SocketTransport("127.0.0.1", port, soon())
        try:
            yield transport
        finally:
            over.set()
            transport.close()


def soon(seconds: float = 2.0) -> float:
    return time.monotonic() + seconds


def test_a_frame_comes_without_its_length() -> None:
    with talking(b"\0\0\0\3abc\0\0\0\0\0\0\0\1x") as transport:
        assert [transport.receive(soon()) for _ in range(3)] == [b"abc", b"", b"x"]


def test_a_frame_goes_with_its_length() -> None:
    seen = bytearray()

    def act(connection: socket.socket) -> None:
        while got := connection.recv(100):
            seen.extend(got)

    with serving(act) as port:
        transport = SocketTransport("127.0.0.1", port, soon())
        transport.send(b"hello", soon())
        transport.close()
    assert seen == b"\0\0\0\5hello"


@pytest.mark.parametrize("size", [-1, -(1 << 31), MAX_FRAME + 1, 0x7FFFFFFF])
def test_a_length_that_no_answer_has_is_not_believed(size: int) -> None:
    with talking(size.to_bytes(4, "big", signed=True), stays=True) as transport:
        with pytest.raises(ProtocolError, match=f"an answer of {size} bytes is claimed"):
            transport.receive(soon())
        with pytest.raises(ConnectError):
            transport.receive(soon())  # closed


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", "speaks TLS", "security.protocol=SSL"),
        (b"HTTP/1.1 400 Bad Request\r\n", "begins with HTTP", "Kafka listener"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "begins with SSH-", "Kafka listener"),
    ],
)
def test_a_listener_of_another_kind_is_named(data: bytes, words: str, hint: str) -> None:
    with talking(data) as transport, pytest.raises(ProtocolError, match=words) as caught:
        transport.receive(soon())
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", "before it answered"),
        (b"\0\0", "after 2 of 4 bytes"),
        (b"\0\0\0\5ab", "after 2 of 5 bytes"),
        (b"\0\0\0\5", "after 0 of 5 bytes"),
    ],
)
def test_an_end_says_where_it_came(data: bytes, where: str) -> None:
    with talking(data) as transport, pytest.raises(ConnectError, match=where) as caught:
        transport.receive(soon())
    assert caught.value.node == transport.node


@pytest.mark.parametrize("data", [b"", b"\0\0\0\5", b"\0\0\0\5ab"])
def test_silence_ends_at_the_deadline(data: bytes) -> None:
    with talking(data, stays=True) as transport:
        begin = time.monotonic()
        with pytest.raises(SourceTimeoutError):
            transport.receive(soon(0.1))
        assert 0.09 < time.monotonic() - begin < 1


def test_a_trickle_does_not_stretch_the_deadline() -> None:
    def act(connection: socket.socket) -> None:
        connection.sendall(b"\0\0\1\0")
        try:
            for _ in range(100):
                connection.sendall(b"x")
                time.sleep(0.02)
        except OSError:
            pass

    with serving(act) as port:
        transport = SocketTransport("127.0.0.1", port, soon())
        begin = time.monotonic()
        with pytest.raises(SourceTimeoutError):
            transport.receive(soon(0.2))
        assert time.monotonic() - begin < 1


def test_a_peer_that_reads_nothing_ends_at_the_deadline() -> None:
    with talking(b"", stays=True) as transport, pytest.raises(SourceTimeoutError):
        for _ in range(100):
            transport.send(bytes(1 << 20), soon(0.1))


def test_a_passed_deadline_asks_nothing() -> None:
    with pytest.raises(SourceTimeoutError):
        SocketTransport("127.0.0.1", 1, time.monotonic() - 1)


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match="cannot be reached") as caught:
            SocketTransport("127.0.0.1", port, soon())
    assert caught.value.node == f"127.0.0.1:{port}"
    assert caught.value.hint == "does a node listen there?"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 300, "a..b"])
def test_a_name_that_means_nothing(host: str) -> None:
    with pytest.raises(NodeError) as caught:
        SocketTransport(host, 9092, soon())
    assert isinstance(caught.value, ConnectError)


def test_close_ends_a_wait_in_another_thread() -> None:
    with talking(b"", stays=True) as transport:
        threading.Timer(0.05, transport.close).start()
        begin = time.monotonic()
        with pytest.raises(ConnectError):
            transport.receive(soon(5))
        assert time.monotonic() - begin < 2
        transport.close()


def test_an_ipv6_address_is_named_in_brackets() -> None:
    assert name_of("::1", 9093) == "[::1]:9093"
    assert name_of("host", 9093) == "host:9093"
