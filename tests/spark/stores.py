"""An object store on the loopback address, which speaks the protocol of S3 and counts what it is asked."""

from __future__ import annotations

import contextlib
import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources import remote

BUCKET = "metadata-copies"
KEY, SECRET = "AKIACANARYCANARYCANA", "canary/of/a/secret/access/key"


class Store:
    """Environment of its clients (``variables``), and what it holds as ``s3://`` URIs."""

    def __init__(self, endpoint: str) -> None:
        self.asked: list[tuple[str, str, str]] = []
        """(method, path, Range header) of each request."""
        self.variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def system(self) -> Any:
        """A file system of it that is none of the code under test."""
        host = self.variables["AWS_ENDPOINT_URL"].partition("://")[2]
        return _arrow().S3FileSystem(
            endpoint_override=host, scheme="http", access_key=KEY, secret_key=SECRET, region="us-east-1",
            allow_bucket_creation=True, allow_delayed_open=True,
        )  # fmt: skip

    def put(self, source: Path, name: str) -> str:
        """A directory as objects below ``name``; gives their URI."""
        here, there = _arrow().LocalFileSystem(), self.system()
        there.create_dir(BUCKET)
        for path in sorted(source.rglob("*")):
            if path.is_file():
                with here.open_input_stream(str(path)) as read, there.open_output_stream(
                    f"{BUCKET}/{name}/{path.relative_to(source)}"
                ) as write:  # fmt: skip
                    write.write(read.read())
        return f"s3://{BUCKET}/{name}"


def _arrow() -> Any:
    return importlib.import_module("pyarrow.fs")


@contextlib.contextmanager
def store() -> Iterator[Store]:
    """One that is running; the test skips where moto is not installed. Its variables are set meanwhile."""
    moto = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    made = Store("http://{}:{}".format(*server.get_host_and_port()))
    _count(server, made)
    try:
        with _environment(made):
            yield made
    finally:
        server.stop()


_SERVER = """
import logging, sys, threading
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def separate_store() -> Iterator[Store]:
    """One in a process of its own: a library that waits for it with Python's lock held does not wait for ever."""
    pytest.importorskip("moto.server")
    program = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            made = Store(process.stdout.readline().strip())
            with _environment(made):
                yield made
        finally:
            process.kill()


@contextlib.contextmanager
def _environment(made: Store) -> Iterator[None]:
    """The variables that clients of the store take, and its bucket."""
    with pytest.MonkeyPatch.context() as patch:
        remote._system.cache_clear()  # what was opened is of another store
        for name, value in made.variables.items():
            patch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        made.system().create_dir(BUCKET)
        yield


def _count(server: Any, made: Store) -> None:
    app = server._server.app

    def counted(environ: dict[str, Any], start: Any) -> Any:
        made.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", "")))
        return app(environ, start)

    server._server.app = counted
