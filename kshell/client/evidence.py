"""Why ``inference.py`` says what it says, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kshell.client import releases
from kshell.client.releases import METADATA_VERSION, RELEASES, Offer, Range, position
from kshell.protocol.names import API_NAMES, api_name

MOST = 3
"""Sentences of one sort: enough to check the answer, few enough to be read."""

Match = tuple[Offer, int]


def oddities(
    ranges: Mapping[int, Range], features: Mapping[str, Range], usable: Mapping[int, Range], levels: Mapping[str, Range]
) -> list[str]:
    """Say what no release of Kafka offers, and what is no range at all; it never names a release."""
    said = []
    if vendor := [key for key in ranges if key not in API_NAMES]:
        said.append(f"{_listed(f'API {key}' for key in sorted(vendor))}: not known to any Kafka up to {RELEASES[-1]}")
    if senseless := [key for key in ranges if key in API_NAMES and key not in usable]:
        said.append(f"{_listed(map(api_name, sorted(senseless)))}: no sensible range of versions")
    if others := [name for name in features if name not in levels]:
        said.append(f"feature {_listed(sorted(others))}: not known to any Kafka up to {RELEASES[-1]}")
    return said


def newer_apis(ranges: Mapping[int, Range]) -> list[str]:
    """Say which APIs are newer than every release of the table, if there are any."""
    top: dict[int, int] = {}
    for offer in releases.offers():
        for key, (_, high) in (*offer.ranges.items(), *offer.unstable.items()):
            top[key] = max(high, top.get(key, high))
    said = []
    for key, (low, high) in sorted(ranges.items()):
        if releases.LAST_KEY < key < releases.FIRST_VENDOR_KEY:
            said.append(f"API {key} is offered (after {RELEASES[-1]})")
        elif key in top and high > top[key] and 0 <= low <= high:
            said.append(f"{api_name(key)} goes up to {high} (after {RELEASES[-1]})")
    return said[:MOST]


def newer_features(levels: Mapping[str, Range]) -> list[str]:
    """Say which levels of features are newer than every release of the table, if there are any.

    A feature's highest level rises with releases, and its lowest one rises where a release drops old levels.
    """
    said = []
    for name, (lowest, highest) in releases.supported_features()[RELEASES[-1]].items():
        low, high = levels.get(name, (lowest, highest))
        if high > highest:
            said.append(f"{name} goes up to {high} ({highest} in {RELEASES[-1]})")
        elif lowest < low <= high:
            said.append(f"{name} starts at {low} ({lowest} in {RELEASES[-1]})")
    return said[:MOST]


def gone(offer: Offer, ranges: Mapping[int, Range]) -> list[str]:
    """Say what a server offers that a release does not have any more."""
    said = []
    for key, (low, _) in sorted(ranges.items()):
        has = offer.ranges.get(key) or offer.unstable.get(key)
        if has is None:
            said.append(f"{api_name(key)} is offered (not by a {offer.kind} of {offer.release})")
        elif low < has[0]:
            said.append(f"{api_name(key)} starts at {low} ({has[0]} in {offer.release})")
    return said


def no_match(candidates: Iterable[Offer], ranges: Mapping[int, Range]) -> list[str]:
    """Say why no release fits: the API that needs the newest one, and the API that needs the oldest one."""
    if not ranges:
        return ["the server names no API that Kafka has"]
    bounds: dict[int, tuple[int, int]] = {}
    for key, span in ranges.items():
        at = [position(offer.release) for offer in candidates if _holds(offer, key, span)]
        if not at:
            return [f"{api_name(key)} {_words(span)} is in no release"]
        bounds[key] = (min(at), max(at))
    newest = max(bounds, key=lambda key: bounds[key][0])
    oldest = min(bounds, key=lambda key: bounds[key][1])
    first, last = bounds[newest][0], bounds[oldest][1]
    if first <= last:
        return ["no release has these APIs together"]
    return [
        f"{api_name(newest)} {_words(ranges[newest])} is in {RELEASES[first]} and later",
        f"{api_name(oldest)} {_words(ranges[oldest])} is in {RELEASES[last]} and before",
    ]


def feature_levels(levels: Mapping[str, Range]) -> list[str]:
    """Say which releases have that ``metadata.version``."""
    if METADATA_VERSION not in levels:
        return []
    level = levels[METADATA_VERSION][1]
    tops = {spans[METADATA_VERSION][1]: name for name, spans in releases.supported_features().items()}
    where = f"({tops[level]})" if level in tops else "(in no release unless unstable features are on)"
    return [f"{METADATA_VERSION} goes up to {level} {where}"]


def sentences(chosen: list[Match], ranges: Mapping[int, Range], levels: Mapping[str, Range]) -> list[str]:
    """Say what speaks for the chosen releases: features, the lower bound, the upper bound, and what is missing."""
    said = feature_levels(levels)
    least = min(chosen, key=lambda match: position(match[0].release))[0]
    most = max(chosen, key=lambda match: position(match[0].release))[0]
    said += _since(least, ranges)
    said += _until(most, ranges, narrowed=all(rank > 1 for _, rank in chosen))
    nearest = min(chosen, key=lambda match: (match[1], position(match[0].release)))
    said += _whole(nearest, ranges)
    said += [
        f"{offer.release} has the same versions"
        for offer, rank in chosen
        if rank == 0 and offer.release != nearest[0].release
    ]
    for offer, rank in chosen:  # the same as one release, or another one of which something is kept back
        if nearest[1] == 0 < rank and offer.release != nearest[0].release:
            said += _whole((offer, rank), ranges)
    return said


def _since(offer: Offer, ranges: Mapping[int, Range]) -> list[str]:
    """What the release before does not have."""
    before = _neighbour(offer, -1)
    said = []
    for key, (_, high) in sorted(ranges.items()):
        if before is None:
            break
        had = before.ranges.get(key)
        if had is None:
            said.append(f"{api_name(key)} is offered ({offer.release} and later)")
        elif high > had[1]:
            said.append(f"{api_name(key)} goes up to {high} ({offer.release} and later)")
    return said[:MOST]


def _until(offer: Offer, ranges: Mapping[int, Range], *, narrowed: bool) -> list[str]:
    """What the release after does not have any more, or has more of."""
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


def _whole(match: Match, ranges: Mapping[int, Range]) -> list[str]:
    offer, rank = match
    if not ranges:
        return [f"the APIs are those of {offer.release}"]
    if rank > 1:
        return ["some versions are fewer than in any release: filtered on the way, or switched off"]
    said = []
    missing = offer.ranges.keys() - ranges.keys() - releases.OPTIONAL
    less = [key for key, span in ranges.items() if span not in (offer.ranges.get(key), offer.unstable.get(key))]
    if not missing and not less:
        said.append(f"all {len(ranges)} APIs have the versions of {offer.patch or offer.release}")
    if missing:
        said.append(f"not offered, though {offer.release} has them: {_listed(map(api_name, sorted(missing)))}")
    if less:
        said.append(f"limited by an older active controller: {_listed(map(api_name, sorted(less)))}")
    if loose := [key for key, span in ranges.items() if span != offer.ranges.get(key) and key not in less]:
        said.append(f"unstable versions are switched on: {_listed(map(api_name, sorted(loose)))}")
    return said


def _neighbour(offer: Offer, step: int) -> Offer | None:
    """The release before or after, of the same kind of server."""
    at = position(offer.release) + step
    same = (o for o in releases.offers() if (o.kind, o.kraft, o.patch) == (offer.kind, offer.kraft, None))
    return next((o for o in same if 0 <= at < len(RELEASES) and o.release == RELEASES[at]), None)


def _holds(offer: Offer, key: int, span: Range) -> bool:
    return any(
        has is not None and has[0] <= span[0] and span[1] <= has[1]
        for has in (offer.ranges.get(key), offer.unstable.get(key))
    )


def _words(span: Range) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more
