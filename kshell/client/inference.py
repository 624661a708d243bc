"""Which release a server runs, when it does not say so: inferred from what it says of its APIs and features.

Three things that a server's answer can be, against what a release offers (``releases.py``):

- *the same*: nothing is missing but what a plugin would add, no range differs;
- *less*: APIs are missing (excluded, filtered), or a KRaft broker's passed-on APIs are limited by its controller;
- *narrowed*: some range lies within the release's range (a proxy, or versions switched off), or only some of the
  unstable versions are there, which are switched on together.

A version that a release does not have rules that release out; the levels of supported features do so as well, and they
name a release by themselves from 3.3 on. What is left over is the answer: one release, the shortest range that holds
them all, a range that is open above, or nothing. It is called exact only when everything agrees with one release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kshell.client import releases
from kshell.client.releases import METADATA_VERSION, RELEASES, Offer, Range, position
from kshell.protocol.names import API_NAMES

SAME, LESS, NARROWED = range(3)
LAST = RELEASES[-1]


class Inference(NamedTuple):
    """The releases a server may run, from ``lowest`` to ``highest``, and why.

    ``highest`` is ``None`` for "or later"; both are ``None`` when nothing can be said. ``evidence`` holds sentences for
    people; names of features in them come from the server and are not to be trusted as text. ``kind`` is
    ``"broker"``, ``"controller"`` or ``None`` (it could be either); ``kraft`` tells whether metadata is kept by a
    KRaft quorum (``None``: not clear).
    """

    lowest: str | None
    highest: str | None
    exact: bool
    evidence: list[str]
    kind: str | None = None
    kraft: bool | None = None

    @property
    def text(self) -> str:
        """``"4.1"``, ``"3.7\N{EN DASH}3.8"``, ``"4.4 or later"``, ``"unknown"``."""
        if self.lowest is None:
            return "unknown"
        if self.highest is None:
            return f"{self.lowest} or later"
        return self.lowest if self.lowest == self.highest else f"{self.lowest}\N{EN DASH}{self.highest}"

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """Both ends as they are shown: ``("3.7", "3.8")``; neither end of what is open above is a fact by itself."""
        return (self.text, self.text) if self.highest is None and self.lowest else (self.lowest, self.highest)


def infer(ranges: Mapping[int, Range], features: Mapping[str, Range], kind: str | None = None) -> Inference:
    """Infer the release from ApiVersions: API key -> (lowest, highest), supported feature -> (lowest, highest) level.

    ``kind`` is ``"broker"`` or ``"controller"`` where that is known. Nothing that a server answers is an error here:
    what makes no sense is left out, and said.
    """
    from kshell.client import evidence

    usable = {key: span for key, span in ranges.items() if key in API_NAMES and 0 <= span[0] <= span[1]}
    levels = {name: span for name, span in features.items() if name in _feature_names()}
    odd = evidence.oddities(ranges, features, usable, levels)
    candidates = [offer for offer in releases.offers() if kind in (None, offer.kind)]
    matches = [(offer, rank) for offer in candidates if (rank := fit(offer, usable)) is not None] if usable else []
    if newer := evidence.newer_apis(ranges):
        return _later_than_known(candidates, usable, newer, odd)
    if not matches:
        return Inference(None, None, False, evidence.no_match(candidates, usable) + odd)
    if newer := evidence.newer_features(levels):
        least = min(LAST, *_names(_best(matches)), key=position)
        return _answer(_best(matches), (least, None), newer + odd, exact=False)
    chosen = _by_features(matches, levels)
    if not chosen:
        return _contradicted(_best(matches), levels, odd)
    found = _names(chosen)
    exact = len(found) == 1 and not odd and any(rank == SAME and agrees(offer, levels) for offer, rank in chosen)
    # Without the features of a release nothing bounds what later releases may still offer to a filter in between; and
    # a feature that no known release has may be one that a later release brought.
    bounded = METADATA_VERSION in levels and features.keys() == levels.keys()
    open_ended = found[-1] == LAST and not exact and not bounded
    said = evidence.sentences(chosen, usable, levels) + odd
    return _answer(chosen, (found[0], None if open_ended else found[-1]), said, exact=exact)


def fit(offer: Offer, ranges: Mapping[int, Range]) -> int | None:
    """Return how a server's ranges fit into what a release offers: SAME, LESS, NARROWED; ``None``: not at all."""
    rank = SAME
    unstable = set()
    passed_on = releases.forwarded() if offer.kraft and offer.kind == releases.BROKER else frozenset()
    for key, span in ranges.items():
        stable, loose = offer.ranges.get(key), offer.unstable.get(key)
        if span == stable:
            continue
        if span == loose:
            unstable.add(key)
        elif _within(span, stable) or _within(span, loose):
            rank = max(rank, LESS if key in passed_on else NARROWED)
        else:
            return None
    if offer.ranges.keys() - ranges.keys() - releases.OPTIONAL:
        rank = max(rank, LESS)
    if unstable and unstable != offer.unstable.keys():
        rank = NARROWED
    return rank


def agrees(offer: Offer, levels: Mapping[str, Range]) -> bool:
    """Whether the levels of supported features, as far as any are named, are those of the release."""
    known = releases.supported_features().get(offer.release, {})
    return all(known.get(name) == span for name, span in levels.items())


def raised(offer: Offer, levels: Mapping[str, Range]) -> bool:
    """Whether a server of the release would name these levels with ``unstable.feature.versions.enable=true``."""
    known = releases.supported_features().get(offer.release, {}) if offer.kraft else {}
    low, high = known.get(METADATA_VERSION, (0, -1))
    return levels.get(METADATA_VERSION, (-1, -1))[0] == low and high < levels[METADATA_VERSION][1]


def registered_releases(supported: Mapping[str, Range]) -> tuple[str, str] | None:
    """Return the lowest and the highest release whose servers register these levels, as ``Inference.bounds`` has them.

    ``None`` without ``metadata.version``: the other features do not tell releases apart.
    """
    from kshell.client import evidence

    if METADATA_VERSION not in supported:
        return None
    named = by_level(supported[METADATA_VERSION][1])
    is_unheard_of = named[-1] == LAST and not supported.keys() <= _feature_names()
    if is_unheard_of or evidence.newer_features(supported):
        return f"{named[0]} or later", f"{named[-1]} or later"
    return named[0], named[-1]


def by_level(level: int) -> Sequence[str]:
    """Return the releases between which a highest ``metadata.version`` lies: one, or the two around it."""
    highest = {name: spans[METADATA_VERSION][1] for name, spans in releases.supported_features().items()}
    below = [name for name, top in highest.items() if top <= level][-1:]
    above = [name for name, top in highest.items() if top >= level][:1]
    return below + above


def _within(span: Range, outer: Range | None) -> bool:
    return outer is not None and outer[0] <= span[0] and span[1] <= outer[1]


def _feature_names() -> frozenset[str]:
    return frozenset(name for spans in releases.supported_features().values() for name in spans)


def _best(matches: list[tuple[Offer, int]]) -> list[tuple[Offer, int]]:
    """The same and less count alike: what is missing in one release may be filtered from the next."""
    return [match for match in matches if match[1] <= LESS] or matches


def _by_features(matches: list[tuple[Offer, int]], levels: Mapping[str, Range]) -> list[tuple[Offer, int]]:
    """Those that the features agree with; and those whose APIs are all there, if only raised levels contradict."""
    chosen = _best([match for match in matches if agrees(match[0], levels)])
    loose = [match for match in matches if raised(match[0], levels)]
    if all(rank != SAME for _, rank in chosen):
        chosen = chosen + [match for match in loose if match[1] == SAME]
    return chosen or _best(loose)


def _names(matches: Iterable[tuple[Offer, int]]) -> list[str]:
    return sorted({offer.release for offer, _ in matches}, key=position)


def _answer(
    matches: Iterable[tuple[Offer, int]], span: tuple[str, str | None], said: list[str], *, exact: bool
) -> Inference:
    offers = [offer for offer, _ in matches]
    kinds = {offer.kind for offer in offers}
    modes = {offer.kraft for offer in offers}
    return Inference(
        *span, exact, said, kinds.pop() if len(kinds) == 1 else None, modes.pop() if len(modes) == 1 else None
    )


def _later_than_known(
    candidates: list[Offer], usable: Mapping[int, Range], newer: list[str], odd: list[str]
) -> Inference:
    """Something is newer than every release of the table; the rest must not be older than its last one."""
    from kshell.client import evidence

    latest = [offer for offer in candidates if offer.release == LAST]
    possible = [(offer, LESS) for offer in latest if not evidence.gone(offer, usable)]
    if not possible:
        against = min((evidence.gone(offer, usable) for offer in latest), key=len, default=[])
        return Inference(None, None, False, newer + against[:2] + odd)
    return _answer(possible, (LAST, None), newer + odd, exact=False)


def _contradicted(matches: list[tuple[Offer, int]], levels: Mapping[str, Range], odd: list[str]) -> Inference:
    """APIs say one thing, features another: the range that holds both."""
    from kshell.client import evidence

    named = by_level(levels[METADATA_VERSION][1]) if METADATA_VERSION in levels else ()
    found = sorted({*_names(matches), *named}, key=position)
    said = [*evidence.sentences(matches, {}, {}), *evidence.feature_levels(levels), *odd]
    return _answer(matches, (found[0], found[-1]), said, exact=False)
