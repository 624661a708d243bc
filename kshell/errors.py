"""Every error kshell raises on purpose, and the exit code each one ends with.

::

    KshellError                     2
    ├── CommandError                2  a command could not do what was asked
    │   ├── NoSuchPathError
    │   ├── NotADirectoryNodeError
    │   └── DeadlineError           3  it took longer than --timeout allows
    ├── UsageError                  2  the command line is not understood
    ├── SourceError                 3  the source cannot be reached, or refuses
    │   ├── SourceNotFoundError
    │   ├── SourcePermissionError
    │   └── NodeError                  … at one node
    │       ├── ConnectError               it cannot be reached, or the connection ended
    │       │   └── TlsError               … while TLS was being agreed on
    │       ├── SourceTimeoutError         no answer within the deadline
    │       │   └── NoLeaderError              … of a leader: no controller leads the quorum
    │       ├── AuthenticationError        who we are was not believed, or the server could not prove who it is
    │       ├── AuthorizationError         who we are may not do that
    │       ├── UnsupportedVersionError    an API, or the version of it that is needed, is not there
    │       ├── WrongEndpointError         a broker where controllers are asked for, or the reverse
    │       ├── ClusterIdError             another cluster than before, or than the one that is meant
    │       ├── ServerError                an error code that the server answered with
    │       └── ProtocolError              an answer that is not what Kafka's protocol says
    ├── DataError                   4  the data is corrupt or incomplete
    │   ├── CorruptDataError           … at a known byte of a file
    │   ├── IncompleteLogError         … records that should be there are not
    │   │   └── OutOfReachError     2  … of a time that the source no longer, or never, had
    │   └── MissingCodecError          … compressed with a codec that is not installed
    └── Interrupted               130

No error has the code 1: that is a predicate's answer, and whoever asked must be able to tell "it is bad" from "nobody
could tell". What the codes mean to users is said in :data:`EXIT_CODES`, and nowhere else.

A message says what is wrong, where, and (``hint``) what to do next. Values of records never go into a message:
they may be secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

EXIT_OK = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_SOURCE = 3
EXIT_DATA = 4
EXIT_INTERRUPTED = 130

EXIT_CODES: tuple[tuple[int, str], ...] = (
    (EXIT_OK, "done; and where a question was asked: clean, equal, allowed, found"),
    (EXIT_FINDING, "only an answer, never a failure: a finding, a difference, denied, nothing found, a row left"),
    (EXIT_USAGE, "not carried out: the line is wrong, or a path, name, point or file that it names is not there"),
    (
        EXIT_SOURCE,
        "not carried out: the source is not there, not reachable or readable, refuses, does not know, is too slow",
    ),
    (EXIT_DATA, "the data is damaged or incomplete; what is shown is the last good state"),
    (EXIT_INTERRUPTED, "interrupted"),
)
"""Code -> what it means. README, ``--help``, ``help exit-codes``, ``man`` and the reference print these sentences."""


_MOST_NAMES = 20_000
_CLOSE = 0.7
"""How alike two names are, as difflib says it, so that one may be meant by the other."""
_BEGINNING = 3
"""So much of a long name says which one is meant."""


def did_you_mean(
    name: str,
    names: Iterable[str],
    otherwise: str | None = None,
    *,
    limit: int = 2,
    write: Callable[[str], str] = str,
) -> str | None:
    """The hint for a name that does not exist.

    Args:
        name: what was typed.
        names: the names that exist.
        otherwise: the hint where no name is spelled like it.
        limit: names that are proposed at most.
        write: how a name is written in the hint.
    """
    from difflib import get_close_matches  # late: only mistakes need it

    known = list(names)
    if len(known) > _MOST_NAMES:  # comparing takes a while: of many topics, those that begin alike are enough
        known = [known_name for known_name in known if known_name[:1] == name[:1]][:_MOST_NAMES]
    matches = dict.fromkeys(get_close_matches(name, known, limit, _CLOSE))
    if not matches:  # LEGACY-IMPORT, Orders
        folded = {known_name.casefold(): known_name for known_name in known}
        matches = dict.fromkeys(folded[match] for match in get_close_matches(name.casefold(), folded, limit, _CLOSE))
    if not matches and len(name) >= _BEGINNING:
        matches = dict.fromkeys([known_name for known_name in known if known_name.startswith(name)][:limit])
    return f"did you mean {' or '.join(map(write, matches))}?" if matches else otherwise


class KshellError(Exception):
    """Root of the tree. ``hint`` is the next step for the person who reads it, or ``None``."""

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as it is, whatever its class is made with: errors come from other processes, too."""
        return _from_pickle, (type(self), *self.args), self.__dict__


def _from_pickle(kind: type[KshellError], *args: Any) -> KshellError:
    """One without its attributes: those are set by whoever unpickles it."""
    return kind.__new__(kind, *args)


class CommandError(KshellError):
    """A command could not do what was asked."""


class NoSuchPathError(CommandError):
    """The tree holds nothing at that path."""


class NotADirectoryNodeError(CommandError):
    """The path is a leaf where a directory of the tree is needed."""


class DeadlineError(CommandError):
    """A command took longer than ``--timeout`` allows: the source had no answer by then."""

    exit_code = EXIT_SOURCE


class UsageError(KshellError):
    """The command line is not understood. ``column`` is the 0-based place of the fault in the line, if known."""

    def __init__(self, message: str, *, hint: str | None = None, column: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.column = column


class SourceError(KshellError):
    """The source cannot be reached, or refuses."""

    exit_code = EXIT_SOURCE


class SourceNotFoundError(SourceError):
    """Nothing that kshell can read is at that place."""


class UnreadError(SourceError):
    """What was listed could not be read: it is gone, or was changed meanwhile, or is refused to whoever was to read.

    ``clusters``: whose files they are -> what is wrong with one of them; empty where that is not known.
    """

    def __init__(self, message: str, *, hint: str | None = None, clusters: Mapping[str, str] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.clusters = clusters or {}


class SourcePermissionError(SourceError):
    """The operating system does not let this user read a file of the source."""


_LONGEST_REASON = 8000


def _shortened(text: str) -> str:
    left_out = len(text) - _LONGEST_REASON
    return text if left_out <= 0 else f"{text[:_LONGEST_REASON]}… ({left_out} more characters)"


class NodeError(SourceError):
    """Base of what goes wrong at one node; ``node`` is its ``host:port`` (or its id and that), ``api`` what was asked.

    The reason may quote what a server said; whoever prints it escapes it. What is longer than anybody reads is cut.
    """

    def __init__(self, node: str, reason: str, *, api: str | None = None, hint: str | None = None) -> None:
        prefix = f"{api}: " if api else ""
        reason, hint = _shortened(reason), hint and _shortened(hint)
        super().__init__(f"{node}: {prefix}{reason}", hint=hint)
        self.node = node
        self.api = api
        self.reason = reason


class ConnectError(NodeError):
    """A node cannot be reached, or the connection to it ended."""


class HostNotAllowedError(ConnectError):
    """A node named a host that the property ``allowed.hosts`` does not list: kshell does not connect to it."""


class TlsError(ConnectError):
    """TLS could not be agreed on: certificates, names, versions."""


class SourceTimeoutError(NodeError):
    """No answer within the deadline."""


class NoLeaderError(SourceTimeoutError):
    """No controller leads the quorum, as far as those that answer can say."""


class AuthenticationError(NodeError):
    """Who we are was not believed, or the server could not prove who it is."""


class AuthorizationError(NodeError):
    """Who we are may not do that. The hint names the ACL that is needed."""


class UnsupportedVersionError(NodeError):
    """The node does not offer an API, or no version of it that kshell knows and was not told to leave out."""


class WrongEndpointError(NodeError):
    """A broker where controllers are asked for, or a controller where brokers are (KIP-919)."""


class ClusterIdError(NodeError):
    """The node belongs to another cluster than the one that is meant or that was seen before."""


class ServerError(NodeError):
    """The server answered with an error: ``code`` is its number (``org.apache.kafka.common.protocol.Errors``)."""

    def __init__(self, node: str, code: int, reason: str, *, api: str | None = None, hint: str | None = None) -> None:
        super().__init__(node, reason, api=api, hint=hint)
        self.code = code


class ProtocolError(NodeError):
    """An answer that is not what Kafka's protocol says: cut, too large, of another request, or not decodable."""


class DataError(KshellError):
    """The data is corrupt or incomplete."""

    exit_code = EXIT_DATA


class CorruptDataError(DataError):
    """Damage at a known place: byte ``position`` of ``file``; ``reason`` says which rule it breaks."""

    def __init__(self, file: str, position: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{file}: byte {position}: {reason}", hint=hint)
        self.file = file
        self.position = position
        self.reason = reason


class IncompleteLogError(DataError):
    """Records that must exist (before the log's start, between segments) are not in the directory."""


class OutOfReachError(IncompleteLogError):
    """A point in time that the source does not reach back to. Nothing is wrong with the data that is there."""

    exit_code = EXIT_USAGE


class MissingCodecError(DataError):
    """A batch is compressed with a codec whose library is not installed."""

    def at(self, file: str, position: int) -> MissingCodecError:
        """The same, with the place of the batch."""
        return MissingCodecError(f"{file}: byte {position}: {self.message}", hint=self.hint)


class Interrupted(KshellError):
    """The person pressed Ctrl-C."""

    exit_code = EXIT_INTERRUPTED
