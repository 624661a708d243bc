"""Infer which Kafka release a server runs from the API versions and features that it reports, with the reasons.

In: the ranges of an ApiVersions response. Out: an :class:`Inference`. Servers do not report their release, so the
response is compared with what each release offers (``releases.py``). It can fit a release in three ways:

- *the same*: no range differs, and at most the APIs of a metrics plugin are missing;
- *less*: APIs are missing (excluded, filtered), or the APIs that a KRaft broker forwards are limited by its controller;
- *narrowed*: some range is smaller than the release's (a proxy, or versions switched off), or only some of the unstable
  versions are offered, though one setting switches all of them on.

A version that a release does not have rules that release out. So do the levels of supported features, which identify a
release by themselves from 3.3 on. The answer is made of the releases that remain: one release, the shortest range that
contains them all, a range without an upper end, or nothing. It is exact only if everything agrees with one release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kshell.client import releases
from kshell.client.releases import METADATA_VERSION, RELEASES, Offer, Range, position
from kshell.protocol.names import API_NAMES, api_name
from kshell.wording import first_of

SAME, LESS, NARROWED = range(3)
LAST = RELEASES[-1]
Bounds = tuple[str | None, str | None]
"""The lowest and the highest release, as text for users: ``("3.7", "3.8")``, ``("4.4 or later", "4.4 or later")``."""
_OR_LATER = " or later"
_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})", re.ASCII)


class Inference(NamedTuple):
    """The releases that a server may run, from ``lowest`` to ``highest``, and why.

    ``highest`` is ``None`` for "or later"; both are ``None`` if no release fits. ``evidence`` are sentences for users;
    names of features in them come from the server, so they must be escaped. ``kind`` is ``"broker"``, ``"controller"``
    or ``None`` (it could be either); ``kraft`` is whether the cluster's metadata is in a KRaft quorum (``None``: not
    clear).
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
            return f"{self.lowest}{_OR_LATER}"
        return self.lowest if self.lowest == self.highest else f"{self.lowest}\N{EN DASH}{self.highest}"

    @property
    def bounds(self) -> Bounds:
        """Both ends as text: ``("3.7", "3.8")``; for a range without an upper end, both are ``"3.7 or later"``."""
        return (self.text, self.text) if self.highest is None and self.lowest else (self.lowest, self.highest)


def infer(ranges: Mapping[int, Range], features: Mapping[str, Range], kind: str | None = None) -> Inference:
    """Infer the release of a server from its ApiVersions response. Never raises for what a server reports.

    ``ranges`` is API key -> (lowest, highest) version, ``features`` is supported feature -> (lowest, highest) level;
    ``kind`` is ``"broker"`` or ``"controller"`` if that is known. Ranges that make no sense are ignored and noted.
    """

    usable = {key: span for key, span in ranges.items() if key in API_NAMES and 0 <= span[0] <= span[1]}
    levels = {name: span for name, span in features.items() if name in _feature_names()}
    anomalies = oddities(ranges, features, usable, levels)
    candidates = [offer for offer in releases.offers() if kind in (None, offer.kind)]
    matches = [(offer, rank) for offer in candidates if (rank := fit(offer, usable)) is not None] if usable else []
    if newer := newer_apis(ranges):
        return _later_than_known(candidates, usable, newer, anomalies)
    if not matches:
        return Inference(None, None, False, no_match(candidates, usable) + anomalies)
    if newer := newer_features(levels):
        least = min(LAST, *_names(_best(matches)), key=position)
        return _answer(_best(matches), (least, None), newer + anomalies, exact=False)
    chosen = _by_features(matches, levels)
    if not chosen:
        return _contradicted(_best(matches), levels, anomalies)
    names = _names(chosen)
    exact = (
        len(names) == 1
        and not anomalies
        and any(rank == SAME and levels_match(offer, levels) for offer, rank in chosen)
    )
    # The range has no upper end if a release after the last known one is possible: without metadata.version, a filter
    # may hide what it added; and a feature that no known release has may be new in it.
    bounded = METADATA_VERSION in levels and features.keys() == levels.keys()
    open_ended = names[-1] == LAST and not exact and not bounded
    explanation = reasons(chosen, usable, levels) + anomalies
    return _answer(chosen, (names[0], None if open_ended else names[-1]), explanation, exact=exact)


def fit(offer: Offer, ranges: Mapping[int, Range]) -> int | None:
    """Return how a server's ranges fit the offer of a release: SAME, LESS or NARROWED; ``None`` if they do not fit."""
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


def levels_match(offer: Offer, levels: Mapping[str, Range]) -> bool:
    """Whether the levels of the supported features that the server reports are those of the release."""
    supported = releases.supported_features().get(offer.release, {})
    return all(supported.get(name) == span for name, span in levels.items())


def has_unstable_levels(offer: Offer, levels: Mapping[str, Range]) -> bool:
    """Whether the levels can be those of the release with ``unstable.feature.versions.enable=true``: they go higher."""
    supported = releases.supported_features().get(offer.release, {}) if offer.kraft else {}
    low, high = supported.get(METADATA_VERSION, (0, -1))
    return levels.get(METADATA_VERSION, (-1, -1))[0] == low and high < levels[METADATA_VERSION][1]


def registered_releases(supported: Mapping[str, Range]) -> tuple[str, str] | None:
    """Return the lowest and the highest release of a node by the feature levels in its registration.

    The texts are as in :attr:`Inference.bounds`. ``None`` without ``metadata.version``, because the other features do
    not distinguish releases.
    """

    if METADATA_VERSION not in supported:
        return None
    named = by_level(supported[METADATA_VERSION][1])
    is_unheard_of = named[-1] == LAST and not supported.keys() <= _feature_names()
    if is_unheard_of or newer_features(supported):
        return f"{named[0]}{_OR_LATER}", f"{named[-1]}{_OR_LATER}"
    return named[0], named[-1]


def registered_span(supported: Iterable[Mapping[str, Range] | None]) -> Bounds:
    """Return the lowest and the highest release of nodes, by the feature levels that each of them registered."""
    ends = (registered_releases(levels) for levels in supported if levels is not None)
    return span(bounds for bounds in ends if bounds is not None)


def span(bounds: Iterable[Bounds]) -> Bounds:
    """Return the lowest and the highest release of a cluster from the bounds of its nodes.

    Bounds that do not begin with a number, such as "unknown", are ignored. If the highest release of one node is "or
    later", so is that of the cluster.
    """
    node_bounds = list(bounds)
    lows = [(numbers, low) for low, _ in node_bounds if low and (numbers := _numbers(low))]
    highs = [(numbers, high) for _, high in node_bounds if high and (numbers := _numbers(high))]
    lowest, highest = min(lows, default=((), None))[1], max(highs, default=((), None))[1]
    if highest is not None and any(high.endswith(_OR_LATER) for _, high in highs):
        highest = highest.removesuffix(_OR_LATER) + _OR_LATER
    return lowest, highest


def _numbers(version: str) -> tuple[int, ...] | None:
    match = _NUMBERS.match(version)
    return tuple(map(int, match[1].split("."))) if match else None


def by_level(level: int) -> Sequence[str]:
    """Return the last release whose ``metadata.version`` goes up to this level or less, and the first that reaches it.

    They are equal if a release has exactly this level; past either end of the known levels there is only one.
    """
    highest = {name: spans[METADATA_VERSION][1] for name, spans in releases.supported_features().items()}
    below = [name for name, top in highest.items() if top <= level][-1:]
    above = [name for name, top in highest.items() if top >= level][:1]
    return below + above


def _within(span: Range, outer: Range | None) -> bool:
    return outer is not None and outer[0] <= span[0] and span[1] <= outer[1]


def _feature_names() -> frozenset[str]:
    return frozenset(name for spans in releases.supported_features().values() for name in spans)


def _best(matches: list[tuple[Offer, int]]) -> list[tuple[Offer, int]]:
    """Return the SAME and LESS matches, or else all: an API that is missing may be filtered, so both rank equally."""
    return [match for match in matches if match[1] <= LESS] or matches


def _by_features(matches: list[tuple[Offer, int]], levels: Mapping[str, Range]) -> list[tuple[Offer, int]]:
    """Return the best matches whose feature levels agree; if none is SAME, also SAME ones with unstable levels."""
    chosen = _best([match for match in matches if levels_match(match[0], levels)])
    loose = [match for match in matches if has_unstable_levels(match[0], levels)]
    if all(rank != SAME for _, rank in chosen):
        chosen = chosen + [match for match in loose if match[1] == SAME]
    return chosen or _best(loose)


def _names(matches: Iterable[tuple[Offer, int]]) -> list[str]:
    return sorted({offer.release for offer, _ in matches}, key=position)


def _answer(
    matches: Iterable[tuple[Offer, int]], span: tuple[str, str | None], explanation: list[str], *, exact: bool
) -> Inference:
    offers = [offer for offer, _ in matches]
    kinds = {offer.kind for offer in offers}
    modes = {offer.kraft for offer in offers}
    return Inference(
        *span, exact, explanation, kinds.pop() if len(kinds) == 1 else None, modes.pop() if len(modes) == 1 else None
    )


def _later_than_known(
    candidates: list[Offer], usable: Mapping[int, Range], newer: list[str], anomalies: list[str]
) -> Inference:
    """Return "the last release or later" for a server with something newer, unless it offers what that one dropped."""

    latest = [offer for offer in candidates if offer.release == LAST]
    possible = [(offer, LESS) for offer in latest if not dropped_apis(offer, usable)]
    if not possible:
        against = min((dropped_apis(offer, usable) for offer in latest), key=len, default=[])
        return Inference(None, None, False, newer + against[:2] + anomalies)
    return _answer(possible, (LAST, None), newer + anomalies, exact=False)


def _contradicted(matches: list[tuple[Offer, int]], levels: Mapping[str, Range], anomalies: list[str]) -> Inference:
    """Return the answer for a server whose APIs and features fit different releases: the range that contains both."""

    named = by_level(levels[METADATA_VERSION][1]) if METADATA_VERSION in levels else ()
    names = sorted({*_names(matches), *named}, key=position)
    explanation = [*reasons(matches, {}, {}), *feature_levels(levels), *anomalies]
    return _answer(matches, (names[0], names[-1]), explanation, exact=False)


# --- the reasons, as sentences ----------------------------------------------------------------------------------------


MOST = 3
"""Sentences of one sort, and names in one sentence: enough to check the answer, few enough to be read."""

Match = tuple[Offer, int]


def oddities(
    ranges: Mapping[int, Range], features: Mapping[str, Range], usable: Mapping[int, Range], levels: Mapping[str, Range]
) -> list[str]:
    """Return sentences about APIs and features that no Kafka release has, and about ranges that make no sense."""
    notes = []
    if vendor := [key for key in ranges if key not in API_NAMES]:
        notes.append(f"{_listed(f'API {key}' for key in sorted(vendor))}: not known to any Kafka up to {RELEASES[-1]}")
    if senseless := [key for key in ranges if key in API_NAMES and key not in usable]:
        notes.append(f"{_listed(map(api_name, sorted(senseless)))}: no sensible range of versions")
    if unknown := [name for name in features if name not in levels]:
        notes.append(f"feature {_listed(sorted(unknown))}: not known to any Kafka up to {RELEASES[-1]}")
    return notes


def newer_apis(ranges: Mapping[int, Range]) -> list[str]:
    """Return sentences about APIs, and versions of APIs, that are newer than every known release."""
    top: dict[int, int] = {}
    for offer in releases.offers():
        for key, (_, high) in (*offer.ranges.items(), *offer.unstable.items()):
            top[key] = max(high, top.get(key, high))
    notes = []
    for key, (low, high) in sorted(ranges.items()):
        if releases.LAST_KEY < key < releases.FIRST_VENDOR_KEY:
            notes.append(f"API {key} is offered (after {RELEASES[-1]})")
        elif key in top and high > top[key] and 0 <= low <= high:
            notes.append(f"{api_name(key)} goes up to {high} (after {RELEASES[-1]})")
    return notes[:MOST]


def newer_features(levels: Mapping[str, Range]) -> list[str]:
    """Return sentences about feature levels that are newer than every known release.

    The highest level of a feature rises with releases, and its lowest level rises where a release drops old levels.
    """
    notes = []
    for name, (lowest, highest) in releases.supported_features()[RELEASES[-1]].items():
        low, high = levels.get(name, (lowest, highest))
        if high > highest:
            notes.append(f"{name} goes up to {high} ({highest} in {RELEASES[-1]})")
        elif lowest < low <= high:
            notes.append(f"{name} starts at {low} ({lowest} in {RELEASES[-1]})")
    return notes[:MOST]


def dropped_apis(offer: Offer, ranges: Mapping[int, Range]) -> list[str]:
    """Return sentences about APIs, or versions of them, that a server offers and a release has dropped or never had."""
    notes = []
    for key, (low, _) in sorted(ranges.items()):
        has = offer.ranges.get(key) or offer.unstable.get(key)
        if has is None:
            notes.append(f"{api_name(key)} is offered (not by a {offer.kind} of {offer.release})")
        elif low < has[0]:
            notes.append(f"{api_name(key)} starts at {low} ({has[0]} in {offer.release})")
    return notes


def no_match(candidates: Iterable[Offer], ranges: Mapping[int, Range]) -> list[str]:
    """Return why no release fits: the API that needs the newest release, and the API that needs the oldest one."""
    if not ranges:
        return ["the server names no API that Kafka has"]
    bounds: dict[int, tuple[int, int]] = {}
    for key, span in ranges.items():
        at = [position(offer.release) for offer in candidates if _holds(offer, key, span)]
        if not at:
            return [f"{api_name(key)} {_version_text(span)} is in no release"]
        bounds[key] = (min(at), max(at))
    newest = max(bounds, key=lambda key: bounds[key][0])
    oldest = min(bounds, key=lambda key: bounds[key][1])
    first, last = bounds[newest][0], bounds[oldest][1]
    if first <= last:
        return ["no release has these APIs together"]
    return [
        f"{api_name(newest)} {_version_text(ranges[newest])} is in {RELEASES[first]} and later",
        f"{api_name(oldest)} {_version_text(ranges[oldest])} is in {RELEASES[last]} and before",
    ]


def feature_levels(levels: Mapping[str, Range]) -> list[str]:
    """Return a sentence that says which release has that highest ``metadata.version``; none without that feature."""
    if METADATA_VERSION not in levels:
        return []
    level = levels[METADATA_VERSION][1]
    tops = {spans[METADATA_VERSION][1]: name for name, spans in releases.supported_features().items()}
    where = f"({tops[level]})" if level in tops else "(in no release unless unstable features are on)"
    return [f"{METADATA_VERSION} goes up to {level} {where}"]


def reasons(chosen: list[Match], ranges: Mapping[int, Range], levels: Mapping[str, Range]) -> list[str]:
    """Return the evidence for the chosen releases: features, the lower and the upper bound, and what is missing."""
    notes = feature_levels(levels)
    least = min(chosen, key=lambda match: position(match[0].release))[0]
    most = max(chosen, key=lambda match: position(match[0].release))[0]
    notes += _since(least, ranges)
    notes += _until(most, ranges, narrowed=all(rank > 1 for _, rank in chosen))
    nearest = min(chosen, key=lambda match: (match[1], position(match[0].release)))
    notes += _completeness(nearest, ranges)
    notes += [
        f"{offer.release} has the same versions"
        for offer, rank in chosen
        if rank == 0 and offer.release != nearest[0].release
    ]
    for offer, rank in chosen:  # the server is the same as one release, or another release with something missing
        if nearest[1] == 0 < rank and offer.release != nearest[0].release:
            notes += _completeness((offer, rank), ranges)
    return notes


def _since(offer: Offer, ranges: Mapping[int, Range]) -> list[str]:
    """Return sentences about what the server offers and the release before ``offer`` does not have."""
    before = _neighbour(offer, -1)
    notes = []
    for key, (_, high) in sorted(ranges.items()):
        if before is None:
            break
        had = before.ranges.get(key)
        if had is None:
            notes.append(f"{api_name(key)} is offered ({offer.release} and later)")
        elif high > had[1]:
            notes.append(f"{api_name(key)} goes up to {high} ({offer.release} and later)")
    return notes[:MOST]


def _until(offer: Offer, ranges: Mapping[int, Range], *, narrowed: bool) -> list[str]:
    """Return sentences about what the release after ``offer`` has dropped and (unless ``narrowed``) added."""
    after = _neighbour(offer, 1)
    if after is None or not ranges:
        return []
    strong, weak = [], []
    for key, (low, high) in sorted(ranges.items()):
        has = after.ranges.get(key)
        if has is None:
            strong.append(f"{api_name(key)} is offered ({offer.release} and before)")
        elif low < has[0]:
            strong.append(f"{api_name(key)} starts at {low} ({offer.release} and before)")
        elif high < has[1]:
            weak.append(f"{api_name(key)} stops at {high} (before {after.release})")
    if not narrowed:
        absent = sorted(after.ranges.keys() - offer.ranges.keys() - ranges.keys() - releases.OPTIONAL)
        strong += weak
        strong += [f"{api_name(key)} is not offered (before {after.release})" for key in absent]
    return strong[:MOST]


def _completeness(match: Match, ranges: Mapping[int, Range]) -> list[str]:
    """Return sentences about how completely the server offers what the release offers."""
    offer, rank = match
    if not ranges:
        return [f"the APIs are those of {offer.release}"]
    if rank > 1:
        return ["some versions are fewer than in any release: filtered on the way, or switched off"]
    notes = []
    missing = offer.ranges.keys() - ranges.keys() - releases.OPTIONAL
    less = [key for key, span in ranges.items() if span not in (offer.ranges.get(key), offer.unstable.get(key))]
    if not missing and not less:
        notes.append(f"all {len(ranges)} APIs have the versions of {offer.patch or offer.release}")
    if missing:
        notes.append(f"not offered, though {offer.release} has them: {_listed(map(api_name, sorted(missing)))}")
    if less:
        notes.append(f"limited by an older active controller: {_listed(map(api_name, sorted(less)))}")
    if loose := [key for key, span in ranges.items() if span != offer.ranges.get(key) and key not in less]:
        notes.append(f"unstable versions are switched on: {_listed(map(api_name, sorted(loose)))}")
    return notes


def _neighbour(offer: Offer, step: int) -> Offer | None:
    """Return the offer of the release before (``step`` -1) or after (1), for the same kind of server, if any."""
    at = position(offer.release) + step
    same = (o for o in releases.offers() if (o.kind, o.kraft, o.patch) == (offer.kind, offer.kraft, None))
    return next((o for o in same if 0 <= at < len(RELEASES) and o.release == RELEASES[at]), None)


def _holds(offer: Offer, key: int, span: Range) -> bool:
    return any(
        has is not None and has[0] <= span[0] and span[1] <= has[1]
        for has in (offer.ranges.get(key), offer.unstable.get(key))
    )


def _version_text(span: Range) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"


def _listed(names: Iterable[str]) -> str:
    return first_of(list(names), MOST)
