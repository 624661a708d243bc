"""A TCP proxy with the faults of real networks: it delays, dribbles byte by byte, resets, and stalls.

Each connection is sound for some seconds, then has a fault for a while, and so on. What it does is random, by a seed;
when it does it depends on the machine. A peer that is not there shows as a connection that ends at once, as behind a
load balancer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

HOST = "127.0.0.1"
DELAY, DRIBBLE, RESET, STALL = FAULTS = ("delay", "dribble", "reset", "stall")
REFUSED = "refused"
"""The peer is not there: no fault of the proxy's own, but counted."""

_CHUNK = 1 << 16
_DRIBBLED = 2000
"""Bytes of a chunk that go one by one: all of a large one would take minutes."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close is a reset."""


class Timing(NamedTuple):
    """Seconds: how long connections are sound, on average, and how long faults last at the most."""

    sound: float = 8.0
    delayed: float = 5.0
    delay: float = 0.4
    dribbling: float = 4.0
    stalled: float = 10.0


class _Link:
    """One connection: a client's half and the peer's, and the fault that it has now."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.fault: str | None = None
        self.flows = asyncio.Event()
        self.flows.set()

    def reset(self) -> None:
        """End the client's half the hard way: what is under way is lost."""
        sock = self.client.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.client.transport.abort()


class Proxy:
    """Passes what comes at ``port`` to another port of this machine. Lives in the event loop that started it."""

    def __init__(self, target: int, rng: random.Random, timing: Timing, counts: Counter[str]) -> None:
        self.port = 0
        self._target = target
        self._rng = rng
        self._timing = timing
        self._counts = counts

    async def start(self) -> asyncio.Server:
        """Listen at a port that was free."""
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        link = _Link(client)
        try:
            peer_reader, peer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            self._counts[REFUSED] += 1
            link.reset()
            return
        tasks = [
            asyncio.ensure_future(work)
            for work in (
                self._pump(reader, peer, link),
                self._pump(peer_reader, client, link, faulty=True),
                self._afflict(link),
            )
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in (client, peer):
                writer.close()

    async def _afflict(self, link: _Link) -> None:
        """Give the connection one fault after another, until it has none left to lose."""
        rng, timing = self._rng, self._timing
        while True:
            await asyncio.sleep(rng.expovariate(1 / timing.sound))
            fault = rng.choice(FAULTS)
            self._counts[fault] += 1
            link.fault = fault
            if fault == RESET:
                await asyncio.sleep(1.0)  # in the middle of the next answer, if one comes
                link.reset()
                return
            if fault == STALL:
                link.flows.clear()
            most = {DELAY: timing.delayed, DRIBBLE: timing.dribbling, STALL: timing.stalled}[fault]
            await asyncio.sleep(rng.uniform(0.2, most))
            link.fault = None
            link.flows.set()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link, *, faulty: bool = False
    ) -> None:
        """Pass bytes on until the connection ends. ``faulty``: answers have all faults, questions only stall."""
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await link.flows.wait()
                if faulty:
                    chunk = await self._spoil(chunk, writer, link)
                writer.write(chunk)
                await writer.drain()

    async def _spoil(self, chunk: bytes, writer: asyncio.StreamWriter, link: _Link) -> bytes:
        """Do what the fault says; return what is left to be sent."""
        if link.fault == DELAY:
            await asyncio.sleep(self._rng.uniform(0.0, self._timing.delay))
        elif link.fault == RESET:
            writer.write(chunk[: self._rng.randrange(len(chunk) + 1)])
            await asyncio.sleep(0.01)  # that much does arrive
            link.reset()
            return b""
        elif link.fault == DRIBBLE:
            for at in range(min(len(chunk), _DRIBBLED)):
                if link.fault != DRIBBLE:
                    return chunk[at:]
                writer.write(chunk[at : at + 1])
                await writer.drain()
                await asyncio.sleep(0.0005)
            return chunk[_DRIBBLED:]
        return chunk


class Proxies(NamedTuple):
    """Their ports, in the order of the targets, and how often they did what."""

    ports: list[int]
    counts: Counter[str]


@contextlib.contextmanager
def proxies(targets: Sequence[int], seed: int) -> Iterator[Proxies]:
    """Run a proxy for each port, in a thread of their own."""
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    made = [Proxy(target, rng, Timing(), counts) for target in targets]
    loop = asyncio.new_event_loop()
    servers = [loop.run_until_complete(proxy.start()) for proxy in made]
    thread = threading.Thread(target=loop.run_forever, name="proxies", daemon=True)
    thread.start()
    try:
        yield Proxies([proxy.port for proxy in made], counts)
    finally:
        asyncio.run_coroutine_threadsafe(_end(servers), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _end(servers: list[asyncio.Server]) -> None:
    for server in servers:
        server.close()
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
