"""One writer at a time in a warehouse.

On this machine the kernel holds the lock and frees it however the process ends. A store has no such thing: there a file
says who writes and until when, and is renewed. Who writes it last has the lease; whoever had it before finds that out
before the first write of a step and before its commit, which fails (:meth:`WriterLock.check`); it leaves the file. The
steps of one that took over have other numbers than those that the one before may still be writing.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import threading
import time
from typing import NamedTuple

from kshell.errors import CommandError, LeaseLostError
from kshell.spark.warehouse.storage import LocalStorage, Storage, replaces_in_two

_LEASE = 300.0
"""Seconds after which a writer in a store that was not heard of is taken for dead."""
_RENEWED = 60.0
_SETTLED = 2.0
"""Seconds after which one that found no lease either, at the same moment, has written its own."""
_MOMENT = 0.5
"""Seconds after which a file is there again that a store replaces in two steps."""
_NUMBERS = 8
"""Numbers that a writer may be writing under without a commit between them, or more: a step takes another one whenever
tables are begun anew in it."""


class _Told(NamedTuple):
    """What the file in a store says; ``until`` in seconds since 1970."""

    writer: str = ""
    token: str = ""
    until: float = 0.0
    passed_over: int = 0


_KEYS = ("writer", "token", "until", "passedOver")


class WriterLock:
    """Use as a context manager. Raises CommandError where another process writes."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._path = storage.join(folder, "writer")
        self._descriptor = -1
        self._holders = 0
        self._me = secrets.token_hex(8)
        self._done = threading.Event()
        self._renewal = threading.Lock()
        self._since = 0.0
        """When the lease was taken, by the monotonic clock."""
        self.passed_over = 0
        """Numbers of steps that a writer may still be using that was taken for dead."""

    def __enter__(self) -> WriterLock:
        self._holders += 1
        if self._holders == 1:
            try:
                if isinstance(self._storage, LocalStorage):
                    self._lock()
                else:
                    self._lease()
            except BaseException:
                self._holders = 0
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._holders -= 1
        if self._holders:
            return
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        elif not self._done.is_set():
            self._done.set()
            self._give_back()

    @property
    def is_held(self) -> bool:
        """Whether this process has it."""
        return self._holders > 0

    def _lock(self) -> None:
        import fcntl  # late: there is none where nobody writes on this machine

        try:
            os.makedirs(self._folder, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except (NotADirectoryError, FileExistsError):
            place = os.path.dirname(self._folder)
            raise CommandError(f"{place}: not a directory", hint="tables need a directory of their own") from None
        except OSError as error:
            raise CommandError(f"{self._folder}: {error.strerror}", hint="tables are written there") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            writer = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise _busy(self._folder, writer) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _name().encode())
        self._descriptor = descriptor

    # --- in a store ---

    def check(self) -> None:
        """Raises LeaseLostError where another process has taken over; else the lease is good for minutes."""
        if isinstance(self._storage, LocalStorage):
            return
        time.sleep(max(self._since + _SETTLED - time.monotonic(), 0))
        with self._renewal:
            told = self._told()
            if told.token != self._me:
                place = self._folder.rpartition("/")[0]
                raise LeaseLostError(
                    f"{place}: {told.writer or 'another process'} took this one for dead and writes there now",
                    hint="nothing of this step counts; run it again, and have one job a warehouse",
                )
            self._renew()

    def committed(self) -> None:
        """A step counts: its number, and those after it, are nobody's but this writer's."""
        self.passed_over = 0

    def _lease(self) -> None:
        told = self._told()
        if told.until > time.time():
            left = told.until - time.time()
            raise _busy(self._folder, told.writer, f"it counts as dead in {left:.0f} s unless it renews")
        self.passed_over = told.passed_over + _NUMBERS if told.token else 0
        self._done.clear()
        self._renew()
        self._since = time.monotonic()
        threading.Thread(target=self._renewing, name="kshell writer", daemon=True).start()

    def _told(self) -> _Told:
        """What the file says; nothing where there is none, or something else."""
        try:
            text = self._storage.read(self._path)
            if text is None and replaces_in_two(self._path):
                time.sleep(_MOMENT)
                text = self._storage.read(self._path)
            told = json.loads(text or b"")
            return _Told(str(told["writer"]), str(told["token"]), float(told["until"]), int(told.get("passedOver", 0)))
        except (ValueError, TypeError, KeyError, AttributeError):
            return _Told()

    def _renew(self, lasts: float = _LEASE) -> None:
        told = _Told(_name(), self._me, time.time() + lasts, self.passed_over)
        self._storage.write(self._path, json.dumps(dict(zip(_KEYS, told, strict=True))).encode())

    def _renewing(self) -> None:
        while not self._done.wait(_RENEWED):
            try:
                with self._renewal:
                    if self._done.is_set() or self._told().token != self._me:
                        return  # whoever took over has it; what is done next with the warehouse tells
                    self._renew()
            except CommandError:
                continue  # the commit tells whether it mattered

    def _give_back(self) -> None:
        with self._renewal, contextlib.suppress(CommandError):  # the store may be gone: the lease ends by itself
            if self._told().token != self._me:
                return
            if self.passed_over:
                self._renew(0.0)  # the next writer has to pass them over as well
            else:
                self._storage.remove(self._path)


def _name() -> str:
    return f"process {os.getpid()} on {platform.node()}"


def _busy(folder: str, writer: str, more: str = "") -> CommandError:
    place = folder.rpartition("/")[0]
    return CommandError(f"{place}: {writer or 'another process'} is writing there", hint=more or "one at a time")
