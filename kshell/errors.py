"""Every error that kshell raises on purpose, with its exit code.

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
    │       │   └── TlsError               … in the TLS handshake
    │       ├── SourceTimeoutError         no answer within the deadline
    │       │   └── NoLeaderError              … from a leader: no controller leads the quorum
    │       ├── AuthenticationError        the credentials are not accepted, or the server's identity is not proven
    │       ├── AuthorizationError         the principal that kshell connects as may not do this
    │       ├── UnsupportedVersionError    an API, or the needed version of it, is not offered
    │       ├── WrongEndpointError         a broker where a controller is needed, or the reverse
    │       ├── ClusterIdError             another cluster than before, or than the intended one
    │       ├── ServerError                an error code that the server answered with
    │       └── ProtocolError              an answer that violates Kafka's protocol
    ├── DataError                   4  the data is corrupt or incomplete
    │   ├── CorruptDataError           … at a known byte of a file
    │   ├── IncompleteLogError         … records that should be there are not
    │   │   └── OutOfReachError     2  … of a time that the source does not reach back to
    │   └── MissingCodecError          … compressed with a codec that is not installed
    └── Interrupted               130

No error has the code 1: that is an answer (a finding, a difference, denied), and a script must be able to tell "the
answer is no" from "there is no answer". Only :data:`EXIT_CODES` says what the codes mean to users.

A message says what is wrong and where; its ``hint`` says what to do next. A message never has values of records, which
may be secret.
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
    (EXIT_OK, "success; where the command answers a question: clean, equal, allowed, found"),
    (
        EXIT_FINDING,
        "an answer, not a failure: a finding, a difference, denied, nothing found, a row with --fail-if-any",
    ),
    (EXIT_USAGE, "failed: the command line is wrong, or names a path, name, point or file that does not exist"),
    (
        EXIT_SOURCE,
        "failed: the source is missing, unreachable, unreadable or too slow, refuses, or does not know the answer",
    ),
    (EXIT_DATA, "the data is damaged or incomplete; what is shown is the last good state"),
    (EXIT_INTERRUPTED, "interrupted"),
)
"""Code -> what it means. README, ``--help``, ``help exit-codes``, ``man`` and the reference print these sentences."""


_MOST_NAMES = 20_000
_CLOSE = 0.7
"""The similarity (as difflib measures it, 0 to 1) from which on one name may be meant by another."""
_BEGINNING = 3
"""The number of characters from which on names that begin with the typed text are proposed."""


def did_you_mean(
    name: str,
    names: Iterable[str],
    otherwise: str | None = None,
    *,
    limit: int = 2,
    write: Callable[[str], str] = str,
) -> str | None:
    """Return the hint for a name that does not exist: ``did you mean …?``.

    Args:
        name: what was typed.
        names: the names that exist.
        otherwise: the hint if no name is similar.
        limit: the most names that are proposed.
        write: writes a name in the hint.
    """
    from difflib import get_close_matches  # late: only mistakes need it

    candidates = list(names)
    if len(candidates) > _MOST_NAMES:  # comparing is slow: of many topics, only those with the same first letter
        candidates = [known_name for known_name in candidates if known_name[:1] == name[:1]][:_MOST_NAMES]
    matches = dict.fromkeys(get_close_matches(name, candidates, limit, _CLOSE))
    if not matches:  # names that differ in case: LEGACY-IMPORT, Orders
        folded = {known_name.casefold(): known_name for known_name in candidates}
        matches = dict.fromkeys(folded[match] for match in get_close_matches(name.casefold(), folded, limit, _CLOSE))
    if not matches and len(name) >= _BEGINNING:
        matches = dict.fromkeys([known_name for known_name in candidates if known_name.startswith(name)][:limit])
    return f"did you mean {' or '.join(map(write, matches))}?" if matches else otherwise


class KshellError(Exception):
    """The root of kshell's errors. ``hint`` says what the user can do next; ``None`` if there is no advice."""

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling the constructor, which differs by class: errors also come from other processes."""
        return _from_pickle, (type(self), *self.args), self.__dict__


def _from_pickle(kind: type[KshellError], *args: object) -> KshellError:
    """Return an error without its attributes, which pickle then sets."""
    return kind.__new__(kind, *args)


class CommandError(KshellError):
    """A command could not do what was asked."""


class NoSuchPathError(CommandError):
    """The tree has nothing at the path."""


class NotADirectoryNodeError(CommandError):
    """The path is a leaf where a directory is needed."""


class DeadlineError(CommandError):
    """A command took longer than ``--timeout`` allows."""

    exit_code = EXIT_SOURCE


class UsageError(KshellError):
    """The command line is not understood. ``column`` is the fault's position in the line, from 0, if it is known."""

    def __init__(self, message: str, *, hint: str | None = None, column: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.column = column


class SourceError(KshellError):
    """The source cannot be reached, or refuses."""

    exit_code = EXIT_SOURCE


class SourceNotFoundError(SourceError):
    """Nothing that kshell can read is at the given location."""


class UnreadError(SourceError):
    """Files that were listed could not be read: they were deleted or changed meanwhile, or access to them is denied.

    ``clusters``: cluster -> what is wrong with one of its files; empty if that is not known.
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
    """An error at one node: ``node`` is its ``host:port``, perhaps with its id, ``api`` the API that was called.

    ``reason`` may quote the server, so whoever prints it must escape it. Very long reasons are cut.
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
    """The TLS handshake failed: certificates, names or versions do not fit."""


class SourceTimeoutError(NodeError):
    """A node did not answer within the deadline."""


class NoLeaderError(SourceTimeoutError):
    """No controller leads the quorum, as far as the controllers that answer know."""


class LeaderNotListedError(ConnectError):
    """The leader listens at none of the addresses that kshell was given, and no controller says where."""


class AuthenticationError(NodeError):
    """The node did not accept kshell's credentials, or could not prove its own identity."""


class AuthorizationError(NodeError):
    """The principal that kshell connects as may not do this. The hint names the ACL that is needed."""


class UnsupportedVersionError(NodeError):
    """The node does not offer an API, or no version of it that kshell knows and is allowed to use."""


class WrongEndpointError(NodeError):
    """A broker answered where a controller is needed, or a controller where a broker is (KIP-919)."""


class ClusterIdError(NodeError):
    """The node belongs to another cluster than the intended one, or than before."""


class ServerError(NodeError):
    """The server answered with an error: ``code`` is its number (``org.apache.kafka.common.protocol.Errors``)."""

    def __init__(self, node: str, code: int, reason: str, *, api: str | None = None, hint: str | None = None) -> None:
        super().__init__(node, reason, api=api, hint=hint)
        self.code = code


class ProtocolError(NodeError):
    """An answer that violates Kafka's protocol: cut short, too large, for another request, or not decodable."""


class NotKafkaError(ProtocolError, ConnectError):
    """What listens at an address answers ApiVersions as no Kafka node does; other addresses may still be tried."""


class DataError(KshellError):
    """The data is corrupt or incomplete."""

    exit_code = EXIT_DATA


class CorruptDataError(DataError):
    """Damage at byte ``position`` of ``file``; ``reason`` names the rule that it breaks."""

    def __init__(self, file: str, position: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{file}: byte {position}: {reason}", hint=hint)
        self.file = file
        self.position = position
        self.reason = reason


class IncompleteLogError(DataError):
    """Records that must exist (before the log's first segment, between segments) are not in the directory."""


class OutOfReachError(IncompleteLogError):
    """The source does not reach back to a point in time. The data that it has is not damaged."""

    exit_code = EXIT_USAGE


class MissingCodecError(DataError):
    """A batch is compressed with a codec whose library is not installed."""

    def at(self, file: str, position: int) -> MissingCodecError:
        """Return the same error with the position of the batch in a file."""
        return MissingCodecError(f"{file}: byte {position}: {self.message}", hint=self.hint)


class Interrupted(KshellError):
    """The user pressed Ctrl-C."""

    exit_code = EXIT_INTERRUPTED
