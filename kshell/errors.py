"""Every error kshell raises on purpose, and the exit code each one ends with.

::

    KshellError                     1
    ├── CommandError                1  a command could not do what was asked
    │   ├── NoSuchPathError
    │   ├── NotADirectoryNodeError
    │   └── DeadlineError
    ├── UsageError                  2  the command line is not understood
    ├── SourceError                 3  the source cannot be reached, or refuses
    │   ├── SourceNotFoundError
    │   └── SourcePermissionError
    ├── DataError                   4  the data is corrupt or incomplete
    │   ├── CorruptDataError           … at a known byte of a file
    │   ├── IncompleteLogError         … records that should be there are not
    │   └── MissingCodecError          … compressed with a codec that is not installed
    └── Interrupted               130

A message says what is wrong, where, and (``hint``) what to do next. Values of records never go into a message:
they may be secret.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_SOURCE = 3
EXIT_DATA = 4
EXIT_INTERRUPTED = 130


class KshellError(Exception):
    """Root of the tree. ``hint`` is the next step for the person who reads it, or ``None``."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CommandError(KshellError):
    """A command could not do what was asked."""


class NoSuchPathError(CommandError):
    """The tree holds nothing at that path."""


class NotADirectoryNodeError(CommandError):
    """The path is a leaf where a directory of the tree is needed."""


class DeadlineError(CommandError):
    """A command took longer than ``--timeout`` allows."""


class UsageError(KshellError):
    """The command line is not understood. ``column`` is the 0-based place of the fault in the line, if known."""

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, hint: str | None = None, column: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.column = column


class SourceError(KshellError):
    """The source cannot be reached, or refuses."""

    exit_code = EXIT_SOURCE


class SourceNotFoundError(SourceError):
    """Nothing that kshell can read is at that place."""


class SourcePermissionError(SourceError):
    """The operating system does not let this user read a file of the source."""


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


class MissingCodecError(DataError):
    """A batch is compressed with a codec whose library is not installed."""

    def at(self, file: str, position: int) -> MissingCodecError:
        """The same, with the place of the batch."""
        return MissingCodecError(f"{file}: byte {position}: {self.message}", hint=self.hint)


class Interrupted(KshellError):
    """The person pressed Ctrl-C."""

    exit_code = EXIT_INTERRUPTED
