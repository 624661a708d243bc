"""Files in object stores and HDFS, which URIs name: list them and read them through ``pyarrow.fs``.

Endpoints and credentials come from where each store's own tools take them (``AWS_ENDPOINT_URL``, ``AWS_PROFILE``,
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
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import SourceError, SourceNotFoundError, SourcePermissionError, UsageError
from kshell.extras import install_command

if TYPE_CHECKING:
    from types import ModuleType

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
"""Scheme of a URI -> pyarrow's name of the file system."""
_WITHOUT_HOST = ("hdfs", "viewfs")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_REASON = 300
_LEAST, _MOST = 1 << 16, 8 << 20
"""Bytes of one request: the least after a jump in a file, doubled up to the most while the file is read on."""


class Info(NamedTuple):
    """What a store reports on a path. ``changed``: the last change, in nanoseconds since 1970, -1 if not known."""

    path: str
    is_file: bool
    is_directory: bool
    size: int = 0
    changed: int = -1


def is_remote(place: str) -> bool:
    """Whether ``place`` is a URI of an object store or of HDFS."""
    scheme, colon, _ = place.partition("://")
    return bool(colon) and scheme.lower() in _SCHEMES


def plain(place: str) -> str:
    """Normalize what a user typed: to a local path, or to ``scheme://authority/path``, which all functions here expect.

    Raises UsageError for a URI that is not understood, or that contains a key; the message does not repeat it.
    """
    match = _URI.match(place)
    if match is None or (not is_remote(place) and os.path.exists(place)):
        return place
    scheme, rest = match[1].lower(), place[match.end() - 1 :]
    if scheme == "file":
        host, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
        if host.lower() not in ("", "localhost"):
            raise UsageError(f"file://{host}/…: on another host", hint="mount it, and give its path here")
        return "/" + urllib.parse.unquote(path).lstrip("/")
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{scheme}:/…: kshell cannot read this file system",
            hint=f"give a local path or one of {', '.join(_SCHEMES)}; or mount the file system",
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
    """The ``pyarrow.fs.FileSystem`` of a URI that :func:`plain` returned, and the path within it, without ``..``.

    Raises SourceError if the store cannot be opened, UsageError if pyarrow is not installed.
    """
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    store, root = _system(scheme, authority)
    path = posixpath.normpath(f"/{path}").lstrip("/")
    return store, f"/{path}" if scheme in _WITHOUT_HOST else f"{root}/{path}".strip("/")


@cache
def _system(scheme: str, authority: str) -> tuple[Any, str]:
    """The file system of a store, and the path of the store's root in it; made once per process."""
    fs = _arrow()
    kind, region = _SCHEMES[scheme], os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    # With a delayed open a small file is one PUT request: others see all of it, or nothing.
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


def _arrow() -> ModuleType:
    try:
        return importlib.import_module("pyarrow.fs")
    except ModuleNotFoundError:
        raise UsageError("object stores need the package pyarrow", hint=install_command("spark")) from None


def reason(error: BaseException) -> str:
    """Shorten what a store reported to one line of a message."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:_REASON] or type(error).__name__


def failure(place: str, error: OSError) -> SourceError:
    """Make the error for a place that could not be read."""
    if isinstance(error, FileNotFoundError):
        return SourceNotFoundError(f"{place}: no such file or directory")
    if isinstance(error, PermissionError):
        return SourcePermissionError(f"{place}: permission denied")
    return SourceError(f"{place}: {reason(error)}")


# --- looking ---------------------------------------------------------------------------------------------------------


def infos(places: list[str]) -> list[Info]:
    """Ask one store, in one call, what is at each of these URIs. Raises SourceError."""
    if not places:
        return []
    store = system(places[0])[0]
    try:
        entries = store.get_file_info([system(place)[1] for place in places])
    except OSError as error:
        raise failure(places[0], error) from None
    return [_info(place, entry) for place, entry in zip(places, entries, strict=True)]


def children(place: str) -> list[Info]:
    """The entries of a directory, sorted by path; none if there is no such directory. Raises SourceError."""
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
    """The URI of the directory ``inner`` in ``place``, if there is one, else of ``place`` itself.

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
    """An open file that is read in ranges. It reads ahead, so that there are fewer requests than calls of ``pread``.

    The constructor raises FileNotFoundError (list again) or SourceError; later calls raise OSError.
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
        """``size`` bytes from ``position`` on, fewer only if the file ends before."""
        at = position - self._start
        if at < 0 or at + size > len(self._block):
            goes_on = 0 <= at <= len(self._block) and position > 0
            self._ahead = min(2 * self._ahead, _MOST) if goes_on else _LEAST
            self._block, self._start, at = self._file.read_at(max(size, self._ahead), position), position, 0
        return self._block[at : at + size]

    def data_from(self, position: int) -> int:
        """``position`` itself: stores do not report holes of a sparse file."""
        return position

    def close(self) -> None:
        """Close the file, and release the block that was read last."""
        self._block = b""
        self._file.close()


def text(place: str, most: int, *, raises: bool = False) -> str:
    """The first ``most`` bytes of a text file; an empty text if there is no such file or, without ``raises`` (then it
    is a SourceError), if it cannot be read.
    """
    try:
        file = RemoteFile(place)
        try:
            return file.pread(most, 0).decode("utf-8", "replace")
        except OSError as error:
            raise failure(place, error) from None
        finally:
            file.close()
    except FileNotFoundError:
        return ""
    except SourceError:
        if raises:
            raise
        return ""
