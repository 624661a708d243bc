"""Brokers as a source: an image of what they answer, for users who cannot connect to the controllers.

The image is partial. What brokers do not report is the string ``not available from brokers``, as a field, a leaf or in
place of a subtree; if they refuse, it names the ACL that is needed. Nothing is followed: every load asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.address import addresses, name_of
from kshell.client.nodes import BROKER, Nodes
from kshell.errors import AuthorizationError, ServerError, SourceError, SourceTimeoutError, UnsupportedVersionError
from kshell.metadata.delta import Delta
from kshell.metadata.image import EMPTY, Image, families
from kshell.metadata.partial import MISSING, NOT_AVAILABLE
from kshell.metadata.replay import Problems
from kshell.metadata.values import Provenance
from kshell.sources.brokers.requests import raise_if_no_broker_answers
from kshell.sources.directory.files import Listing
from kshell.sources.directory.log import FileBatch, Progress
from kshell.sources.source import NO_LOG, WHERE_LOGS_ARE, Loaded, Source, SourceFacts

if TYPE_CHECKING:
    from kshell.client.settings import Settings
    from kshell.sources.points import Since

_NOT_FOR_HERE = {54, 61, 64}
"""Errors that need no note, because nothing is wrong: SECURITY_DISABLED, DELEGATION_TOKEN_AUTH_DISABLED,
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""

TOPICS_MAY_BE_MISSING = (
    "topics may be missing: brokers leave out, without a word, those that the principal may not DESCRIBE"
    " (allow it DESCRIBE on all topics, or use -q)"
)
"""The note on topics of brokers that may have an authorizer; that on the whole image says as much of all its parts."""

_TOPICS = ("topics",)
_FRESH = 5.0
"""Seconds for which the last image counts as up to date."""


class ImagePart(NamedTuple):
    """One part of the image: its path, the families that it fills, and the function that asks brokers and fills it."""

    path: tuple[str, ...]
    families: tuple[str, ...]
    ask: Callable[[Nodes, Delta, list[str]], object]


class BrokerSource(Source):
    """Asks the brokers that ``bootstrap`` lists (``host:port,…``), and the brokers that these name."""

    kind = "brokers"
    has_log = False
    nodes: Nodes

    def __init__(self, bootstrap: str, settings: Settings) -> None:
        bootstrap_addresses = addresses(bootstrap)
        self.name = ",".join(name_of(*address) for address in bootstrap_addresses)
        self.nodes = Nodes(BROKER, bootstrap_addresses, settings)
        self._kraft_version: int | None = None
        self._queried_at = float("-inf")
        self._lock = threading.Lock()

    def load(self, *, until: int | None = None, progress: Progress | None = None, from_oldest: bool = False) -> Loaded:
        """Load the present image. Raises SourceError if no broker answers, or if ``until`` asks for the past."""
        if until is not None:
            raise SourceError(NO_LOG, hint=WHERE_LOGS_ARE)
        image, notes = self._image(parts(), progress)
        partial = "the image is partial: it has only what brokers report and the principal may see (-q has all of it)"
        self._queried_at = time.monotonic()
        return Loaded(
            image=image,
            listing=Listing(self.name, (), (), {}),
            snapshot=None,
            log_end_offset=None,
            last_timestamp=-1,
            problems=Problems(),
            torn=None,
            open_transaction=None,
            damage=[],
            notes=[f"{self.name}: {partial}", *notes],
        )

    def image(self, *only: str, progress: Progress | None = None) -> tuple[Image, list[str]]:
        """The present image, and notes on it for the user. Raises NodeError if no broker answers (any more).

        ``only``: last path segments of the parts to ask for, such as ``topics``; all parts by default.
        """
        selected = tuple(part for part in parts() if not only or part.path[-1] in only)
        image, notes = self._image(selected, progress)
        from kshell.sources.brokers.access import has_authorizer  # late, as in parts()

        has_topics = any(part.path == _TOPICS for part in selected) and _TOPICS not in image[MISSING]
        return image, [TOPICS_MAY_BE_MISSING, *notes] if has_topics and has_authorizer(self.nodes) else notes

    def _image(self, selected: tuple[ImagePart, ...], progress: Progress | None) -> tuple[Image, list[str]]:
        notes: list[str] = []
        with self._lock:
            self.nodes.any(timeout=self.nodes.settings.api_timeout)  # once, before each part tries for as long
            delta = Delta(EMPTY)
            for path in _unavailable_paths(parts()):
                delta.table(MISSING)[path] = NOT_AVAILABLE
            for number, part in enumerate(selected):
                if progress is not None:
                    progress(number, len(selected), "asking brokers")
                self._ask(part, delta, notes)
            return delta.apply(Provenance(-1, -1, -1)), notes

    def _ask(self, part: ImagePart, delta: Delta, notes: list[str]) -> None:
        """Ask for one part of the image. If it is refused, the reason takes its place, and the other parts go on.

        Raises NodeError if no broker answers any more.
        """
        path = part.path
        try:
            finalized = part.ask(self.nodes, delta, notes)
        except (AuthorizationError, UnsupportedVersionError) as error:
            acl_hint = f" ({error.hint})" if error.hint else ""
            delta.table(MISSING)[path] = f"{NOT_AVAILABLE}: {error.api}: {error.reason}{acl_hint}"
            notes.append(f"/image/{'/'.join(path)} is not in the image: {error.message}{acl_hint}")
        except SourceTimeoutError as error:
            raise_if_no_broker_answers(self.nodes, error)
            delta.table(MISSING)[path] = f"no answer from brokers: {error.message}"
            notes.append(f"/image/{'/'.join(path)} is not in the image: {error.message}")
        except ServerError as error:
            delta.table(MISSING)[path] = f"{NOT_AVAILABLE}: {error.api}: {error.reason}"
            if error.code not in _NOT_FOR_HERE:
                notes.append(f"/image/{'/'.join(path)} is not in the image: {error.message}")
        else:
            if isinstance(finalized, dict):
                self._kraft_version = finalized.get("kraft.version", 0)

    def listing(self, *, full_log: bool = False) -> Listing:
        """Brokers have neither snapshots nor log: raises SourceError."""
        raise SourceError(NO_LOG, hint=WHERE_LOGS_ARE)

    def offset_of(self, point: str) -> int | None:
        """``None`` for ``now``. Raises SourceError for any other point, UsageError for a text that is no point."""
        from kshell.sources.points import Point, parse_point  # imported late: few command lines name a point

        if parse_point(point, from_end=True) != Point():
            raise SourceError(NO_LOG, hint=WHERE_LOGS_ARE)
        return None

    def since(self, point: str) -> Since | None:
        """``None`` for ``now``; raises as :meth:`offset_of` does."""
        self.offset_of(point)
        return None

    def quorum(self, loaded: Loaded) -> SourceFacts:
        """The facts of ``/quorum``, for which brokers ask the controllers."""
        from kshell.sources.quorum.facts import describe_quorum, described

        names = ("leaderId", "leaderEpoch", "highWatermark", "voters", "observers")
        try:
            description = describe_quorum(self.nodes)
        except (AuthorizationError, UnsupportedVersionError, ServerError, SourceTimeoutError) as error:
            acl_hint = f" ({error.hint})" if error.hint else ""
            facts: SourceFacts = dict.fromkeys(names, ("quorum", f"{NOT_AVAILABLE}: {error.message}{acl_hint}", None))
        else:
            facts = described(description)
        kraft = NOT_AVAILABLE if self._kraft_version is None else self._kraft_version
        return facts | {"kraftVersion": ("quorum", kraft, None)}

    def notes(self) -> list[str]:
        """The notes of the connections."""
        return list(self.nodes.notes)

    def refresh(self) -> bool:
        """Whether the last image is some seconds old, because brokers do not say whether anything changed."""
        return time.monotonic() - self._queried_at > _FRESH

    def follow(self, start: int | None = None) -> Iterator[FileBatch | None]:
        """Brokers have no log of the metadata: raises SourceError."""
        raise SourceError(NO_LOG, hint=WHERE_LOGS_ARE)

    def close(self) -> None:
        """Close connections."""
        self.nodes.close()


def parts() -> tuple[ImagePart, ...]:
    """The parts of the image that brokers can fill; configs come after the topics that they belong to."""
    from kshell.sources.brokers import access
    from kshell.sources.brokers.configs import configs
    from kshell.sources.brokers.registrations import brokers
    from kshell.sources.brokers.topics import topics

    return (
        ImagePart(("cluster", "brokers"), ("brokers", "features"), brokers),
        ImagePart(("topics",), (), topics),
        ImagePart(("configs",), ("configs",), configs),
        ImagePart(("acls",), ("acls",), access.acls),
        ImagePart(("clientQuotas",), ("clientQuotas",), access.quotas),
        ImagePart(("scram",), ("scram",), access.scram),
        ImagePart(("delegationToken",), ("delegationToken",), access.tokens),
    )


def _unavailable_paths(every: tuple[ImagePart, ...]) -> list[tuple[str, ...]]:
    """The paths at which brokers report nothing: ``provenance``, and every family that no part fills."""
    filled = {name for part in every for name in part.families}
    return [("provenance",), *(family.path for name, family in families().items() if name not in filled)]
