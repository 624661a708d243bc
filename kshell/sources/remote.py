"""Files that are not on this machine: object stores and HDFS, named by URIs, read through ``pyarrow.fs``.

What a URI cannot say comes from where each store's own tools take it (``AWS_ENDPOINT_URL``, ``AWS_PROFILE``,
``GOOGLE_APPLICATION_CREDENTIALS``, ``AZURE_…``, ``HADOOP_HOME``, the role of the machine), wherever files are read. A
URI is printed in tables, plans and errors, so one with a key or a password in it is refused.
"""

from __future__ import annotations

import importlib
import os
import posixpath
import re
import urllib.parse
from functools import cache
from typing import Any, NamedTuple

from kshell.errors import SourceError, SourceNotFoundError, SourcePermissionError, UsageError
from kshell.extras import install_command

_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "abfs": "abfs",
    "abfss": "abfss",
}
"""Schemes that are understood, with what pyarrow calls them."""
_WITHOUT_HOST = ("hdfs", "viewfs")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_REASON = 300
_LEAST, _MOST = 1 << 16, 8 << 20
"""Bytes that one request asks for: little where somebody jumps along a file, more and more where all of it is read."""


class Info(NamedTuple):
    """The metadata of a path in a store; ``changed`` in nanoseconds since 1970, -1 where it is not known."""

    path: str
    is_file: bool
    is_directory: bool
    size: int = 0
    changed: int = -1


def is_remote(place: str) -> bool:
    """Whether it is a URI of a store."""
    scheme, colon, _ = place.partition("://")
    return bool(colon) and scheme.lower() in _SCHEMES


def plain(place: str) -> str:
    """A place as it is named from here on: a local path, or ``scheme://authority/path``.

    Raises UsageError for a URI that is not understood, or that carries a key; the message does not repeat it.
    """
    match = _URI.match(place)
    if match is None or (not is_remote(place) and os.path.exists(place)):
        return place
    scheme, rest = match[1].lower(), place[match.end() - 1 :]
    if scheme == "file":
        return "/" + urllib.parse.unquote(rest).lstrip("/")
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{scheme}:/…: no file system that kshell reads", hint=f"local paths, {', '.join(_SCHEMES)}; or mount it"
        )
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest.lstrip("/"))
    user, at, _ = authority.rpartition("@")
    if at and (":" in user or not scheme.startswith("abfs")):  # what is before the @ of abfs is a container
        raise UsageError(
            f"{scheme}://…@…: a key or a password in a URI would be shown in tables, plans and errors",
            hint="set it where the store's own tools look: AWS_PROFILE or AWS_ACCESS_KEY_ID, a role, a key file",
        )
    if re.search(r"\?[A-Za-z_-]+=", rest):
        raise UsageError(
            f"{scheme}://…?…: options in a URI are not understood",
            hint="for an endpoint: AWS_ENDPOINT_URL, and --conf spark.executorEnv.AWS_ENDPOINT_URL=… for executors",
        )
    if not authority and scheme not in _WITHOUT_HOST:
        raise UsageError(f"{scheme}:///{path}: names no bucket or container")
    return f"{scheme}://{authority}/{path}"


def system(place: str) -> tuple[Any, str]:
    """The ``pyarrow.fs.FileSystem`` of a URI that :func:`plain` gave, and the path within it, without ``..``.

    Raises SourceError where there is no such store, UsageError without pyarrow.
    """
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    store, root = _system(scheme, authority)
    path = posixpath.normpath(f"/{path}").lstrip("/")
    return store, f"/{path}" if scheme in _WITHOUT_HOST else f"{root}/{path}".strip("/")


@cache
def _system(scheme: str, authority: str) -> tuple[Any, str]:
    """A file system and the path of its root in it, once a process."""
    fs = _arrow()
    kind, region = _SCHEMES[scheme], os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    # With a delayed open, small files are one put: they are there as a whole, or not.
    try:
        if kind == "s3" and endpoint:
            protocol, colon, host = endpoint.rstrip("/").partition("://")
            at = {"endpoint_override": host, "scheme": protocol} if colon else {"endpoint_override": protocol}
            return fs.S3FileSystem(**at, region=region or "us-east-1", allow_delayed_open=True), authority
        if kind == "s3" and region:
            return fs.S3FileSystem(region=region, allow_delayed_open=True), authority
        query = "?allow_delayed_open=true" if kind == "s3" else ""
        store, root = fs.FileSystem.from_uri(f"{kind}://{authority}/{query}")
    except Exception as error:  # each store has kinds of its own
        raise SourceError(f"{scheme}://{authority}: {reason(error)}") from None
    return store, root.strip("/")


def _arrow() -> Any:
    try:
        return importlib.import_module("pyarrow.fs")
    except ModuleNotFoundError:
        raise UsageError("object stores need the package pyarrow", hint=install_command("spark")) from None


def reason(error: BaseException) -> str:
    """Shorten what a store reported to one line of a message."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:_REASON] or type(error).__name__


def failure(place: str, error: OSError) -> SourceError:
    """The error of a place that could not be read."""
    if isinstance(error, FileNotFoundError):
        return SourceNotFoundError(f"{place}: no such file or directory")
    if isinstance(error, PermissionError):
        return SourcePermissionError(f"{place}: permission denied")
    return SourceError(f"{place}: {reason(error)}")


# --- looking ---------------------------------------------------------------------------------------------------------


def infos(places: list[str]) -> list[Info]:
    """What is at each of these URIs of one store, asked for at once. Raises SourceError."""
    if not places:
        return []
    store = system(places[0])[0]
    try:
        entries = store.get_file_info([system(place)[1] for place in places])
    except OSError as error:
        raise failure(places[0], error) from None
    return [_info(place, entry) for place, entry in zip(places, entries, strict=True)]


def children(place: str) -> list[Info]:
    """What is in a directory, sorted; nothing where there is none. Raises SourceError."""
    store, inner = system(place)
    try:
        entries = store.get_file_info(_arrow().FileSelector(inner, allow_not_found=True))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise failure(place, error) from None
    base = place.rstrip("/")
    return sorted(_info(f"{base}/{entry.base_name}", entry) for entry in entries if entry.base_name)


def locate(place: str, inner: str) -> str:
    """The directory ``inner`` in a directory, if there is one, else the place itself.

    Raises SourceNotFoundError, UsageError.
    """
    place = plain(place)
    its_place = f"{place.rstrip('/')}/{inner}"
    itself, inside = infos([place, its_place])
    if not (itself.is_file or itself.is_directory):
        raise SourceNotFoundError(f"{place}: no such file or directory")
    return its_place if inside.is_directory else place.rstrip("/")


def _info(place: str, entry: Any) -> Info:
    kind = entry.type.name
    changed = entry.mtime_ns
    return Info(place, kind == "File", kind == "Directory", entry.size or 0, -1 if changed is None else changed)


# --- reading ---------------------------------------------------------------------------------------------------------


class RemoteFile:
    """A file that is read in ranges: ``pread`` as of a descriptor, with fewer requests than calls.

    Raises FileNotFoundError (list again), SourceError for what a store refuses when it is opened, OSError later.
    """

    def __init__(self, place: str) -> None:
        store, inner = system(place)
        try:
            self._file = store.open_input_file(inner)
            self.size: int = self._file.size()
        except FileNotFoundError:
            raise FileNotFoundError(2, "no such file", place) from None
        except OSError as error:
            raise failure(place, error) from None
        self._block, self._start, self._ahead = b"", 0, _LEAST

    def pread(self, size: int, position: int) -> bytes:
        """Bytes from there on, fewer only where the file ends before."""
        at = position - self._start
        if at < 0 or at + size > len(self._block):
            goes_on = 0 <= at <= len(self._block) and position > 0
            self._ahead = min(2 * self._ahead, _MOST) if goes_on else _LEAST
            self._block, self._start, at = self._file.read_at(max(size, self._ahead), position), position, 0
        return self._block[at : at + size]

    def data_from(self, position: int) -> int:
        """Stores do not report what a file leaves out."""
        return position

    def close(self) -> None:
        """Forget the file."""
        self._block = b""
        self._file.close()


def text(place: str, most: int) -> str:
    """The beginning of a small text file; nothing where there is none, or none that may be read."""
    try:
        file = RemoteFile(place)
    except (FileNotFoundError, SourceError):
        return ""
    try:
        return file.pread(most, 0).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        file.close()
