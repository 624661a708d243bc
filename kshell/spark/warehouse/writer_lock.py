"""One writer at a time in a warehouse.

On this machine the kernel holds the lock and frees it however the process ends. A store has no such thing: there a file
says who writes and until when, and is renewed; it protects from two jobs by mistake, not from two in the same second,
of which the later one fails at its commit.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time

from kshell.errors import CommandError
from kshell.spark.warehouse.storage import LocalStorage, Storage

_LEASE = 300.0
"""Seconds after which a writer in a store that was not heard of is taken for dead."""
_RENEWED = 60.0


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
            self._storage.remove(self._path)

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

    def _lease(self) -> None:
        text = self._storage.read(self._path)
        if text is not None:
            try:
                told = json.loads(text)
                until, writer = float(told["until"]), str(told["writer"])
            except (ValueError, TypeError, KeyError):
                until, writer = 0.0, ""
            if until > time.time():
                raise _busy(self._folder, writer, f"it counts as dead in {until - time.time():.0f} s unless it renews")
        self._done.clear()
        self._renew()
        threading.Thread(target=self._renewing, name="kshell writer", daemon=True).start()

    def _renew(self) -> None:
        told = {"writer": _name(), "token": self._me, "until": time.time() + _LEASE}
        self._storage.write(self._path, json.dumps(told).encode())

    def _renewing(self) -> None:
        while not self._done.wait(_RENEWED):
            try:
                self._renew()
            except CommandError:
                continue  # the commit tells whether it mattered


def _name() -> str:
    return f"process {os.getpid()} on {platform.node()}"


def _busy(folder: str, writer: str, more: str = "") -> CommandError:
    place = folder.rpartition("/")[0]
    return CommandError(f"{place}: {writer or 'another process'} is writing there", hint=more or "one at a time")
