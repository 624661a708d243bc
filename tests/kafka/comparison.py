"""What a release of Kafka has, beside what kshell declares: each kind of declaration is compared in one function here.

``./dev kafka VERSION`` prints what these find, and the tests expect nothing. What kshell declares is passed in
(:class:`Declared`), so that a test can take something away and see it named. An older release has less than kshell
declares; only what the newest one lacks is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote

from kshell.client import settings
from kshell.client.releases import BROKER, CONTROLLER, Offer, Range, forwarded, offers, supported_features
from kshell.metadata import config_types
from kshell.metadata.feature_levels import LATEST, METADATA_VERSION, FeatureLevel, levels, metadata_changed
from kshell.metadata.metadata_version import NEWEST_NAMED, version_name
from kshell.metadata.records import record_types
from kshell.protocol.api import Api
from kshell.protocol.control import CONTROL_TYPES
from kshell.protocol.names import API_NAMES, error_codes
from kshell.protocol.schema import Schema
from tests.kafka import jars, messages, shapes
from tests.server.apis import apis
from tests.tools import config_types as types_tool
from tests.tools import releases as releases_tool

FIRST_WRITTEN = {"UserScramCredentialRecord": (3, 5), "DelegationTokenRecord": (3, 6), "AccessControlRecord": (99,)}
"""Records that earlier releases define, with another layout of the same version, and no release before these writes.
AccessControlRecord (api key 6) went away unused."""

RENAMED = {"ListConfigResources": (4, 1)}
"""APIs that are declared by the name that they have from a release on; before, their fields had other names too."""

ALONE_IN_4_0 = ("4.0", "kraft.version")
"""4.0 alone names what this feature needs, and it is what its own metadata.version has anyway."""

LEAST_CONFIG_KEYS = 290
"""Every release from 3.3 on has more: fewer mean that Kafka's classes moved, and were not read."""


class Gap(NamedTuple):
    """Something that kshell lacks (``is_wrong``: has, and should not have so), and where that is mended."""

    kind: str
    what: str
    where: str
    is_wrong: bool = False


class Declared(NamedTuple):
    """What kshell declares, by kind."""

    records: Mapping[int, Schema]
    control: Mapping[str, Schema]
    api_names: Mapping[int, str]
    apis: Mapping[int, Api]
    errors: Mapping[int, tuple[str, bool]]
    known_keys: Mapping[str, Collection[str]]
    secret_keys: Mapping[str, Collection[str]]
    config_types: Mapping[str, Mapping[str, config_types.KnownType]]
    client_key: Callable[[str], bool]
    version_names: Mapping[int, str]
    changed: Collection[int]
    latest: int
    levels: Mapping[str, Collection[FeatureLevel]]
    supported: Mapping[str, Mapping[str, Range]]
    offers: Collection[Offer]
    forwarded: Collection[int]


@cache
def declared() -> Declared:
    """Return what kshell declares."""
    known = range(1, NEWEST_NAMED + 1)
    types = {kind: config_types.known_types(kind) for kind in config_types.TABLE}
    return Declared(
        records={kind.api_key: kind.schema for kind in record_types().values()},
        control={kind.schema.name: kind.schema for kind in CONTROL_TYPES.values()},
        api_names=API_NAMES,
        apis=apis(),
        errors=error_codes(),
        known_keys=types,
        secret_keys={kind: [key for key in types[kind] if types[kind][key].is_password] for kind in types},
        config_types=types,
        client_key=settings.is_known,
        version_names={level: version_name(level) for level in known},
        changed={level for level in known if metadata_changed(level, level - 1)},
        latest=LATEST,
        levels=levels(),
        supported=supported_features(),
        offers=offers(),
        forwarded=forwarded(),
    )


def line_of(release: str) -> str:
    """Return ``"4.4"`` for ``"4.4.0"``."""
    return ".".join(release.split(".")[:2])


def is_newest(have: Declared, release: str) -> bool:
    """Return whether a release is of the newest line that kshell knows, or newer: it has all that kshell declares."""
    return _numbers(line_of(release)) >= max(map(_numbers, have.supported))


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))


@cache
def rows(release: str, program: str) -> list[list[str]]:
    """Return what one of our Java programs prints when it runs on the classes of a release: lines of words by tabs."""
    lines = jars.run(jars.classes(release, program), program).splitlines()
    return [line.split("\t") for line in lines if line]


# --- records and messages ------------------------------------------------------------------------------------------

FAMILIES = "kshell/metadata/families/: a function decorated with @record"
CONTROL = "kshell/protocol/control.py"
MESSAGES = "kshell/protocol/messages/"


def records(have: Declared, release: str) -> Iterator[Gap]:
    """Metadata records: types, versions, fields."""
    of_kafka = messages.metadata_records(release)
    for name, message in of_kafka.items():
        if tuple(map(int, release.split("."))) < FIRST_WRITTEN.get(name, (0,)):
            continue
        key = message["apiKey"]
        if key not in have.records:
            yield Gap("record", f"{name} (api key {key}) is not declared", FAMILIES)
            continue
        for reason in shapes.record_differences(have.records[key], message):
            yield Gap("record", f"{name} (api key {key}): {reason}", FAMILIES)
    if is_newest(have, release):
        for key, schema in have.records.items():
            if schema.name not in of_kafka:
                yield _extra("record", f"{schema.name} (api key {key})", FAMILIES)
            elif (schema.versions.high or 0) > (high := shapes.highest_version(of_kafka[schema.name])):
                yield _extra("record", f"{schema.name} above version {high}", FAMILIES)


def control_records(have: Declared, release: str) -> Iterator[Gap]:
    """Control records of the raft layer."""
    of_kafka = messages.control_records(release)
    for name, message in of_kafka.items():
        if name not in have.control:
            yield Gap("control record", f"{name} is not declared", CONTROL)
            continue
        for reason in shapes.record_differences(have.control[name], message):
            yield Gap("control record", f"{name}: {reason}", CONTROL)
    if is_newest(have, release):
        for name in have.control.keys() - of_kafka.keys():
            yield _extra("control record", name, CONTROL)


def requests(have: Declared, release: str) -> Iterator[Gap]:
    """Requests and responses that kshell declares, field by field, and their newest versions."""
    of_kafka = {message["apiKey"]: message for message in messages.requests(release).values()}
    answers = messages.responses(release)
    newest = is_newest(have, release)
    for key, api in have.apis.items():
        request = of_kafka.get(key)
        if _numbers(line_of(release)) < RENAMED.get(api.name, (0,)):
            continue
        if request is None:
            if newest:
                yield _extra("message", f"{api.name} (API {key})", MESSAGES)
            continue
        if request["name"] != api.request.name:
            yield Gap("message", f"{request['name']} is declared as {api.request.name}", MESSAGES)
            continue
        for schema, message in ((api.request, request), (api.response, answers[api.response.name])):
            if (flexible := shapes.flexible_versions(schema)) != message["flexibleVersions"]:
                reason = f"is declared flexible at {flexible}, in Kafka at {message['flexibleVersions']}"
                yield Gap("message", f"{schema.name} {reason}", MESSAGES)
                continue
            for difference in shapes.message_differences(schema, message, defaults=newest):
                yield Gap("message", f"{schema.name}: {shapes.shown(difference)}", MESSAGES)
        high = shapes.highest_version(request) - request.get("latestVersionUnstable", False)
        mine = api.versions.high or 0
        for version in range(mine + 1, high + 1):
            yield Gap("message", f"{api.name}: version {version} is not declared", MESSAGES)
        if newest and mine > high:
            yield _extra("message", f"{api.name} above version {high}", MESSAGES)


# --- names and numbers ---------------------------------------------------------------------------------------------

APIS = ERRORS = "kshell/protocol/names.py"


def names(have: Declared, release: str) -> Iterator[Gap]:
    """Names of APIs, and error codes with whether they may pass."""
    words = [row[0].split(" ") for row in rows(release, "ProtocolNames")]
    of_kafka = {int(key): name for kind, key, name, *_ in words if kind == "api"}
    errors = {int(word[1]): (word[2], word[3] == "true") for word in words if word[0] == "error"}
    newest = is_newest(have, release)
    for key, name in of_kafka.items():
        if key not in have.api_names:
            yield Gap("API", f"{name} (API {key}) has no name", APIS)
        elif newest and have.api_names[key] != name:
            yield Gap("API", f"API {key} is {name}, not {have.api_names[key]}", APIS, is_wrong=True)
    for code, (name, retriable) in errors.items():
        if code not in have.errors:
            yield Gap("error code", f"{code} {name}{' (retriable)' if retriable else ''} has no name", ERRORS)
        elif newest and have.errors[code] != (name, retriable):
            shown = f"{name}, {'' if retriable else 'not '}retriable"
            yield Gap("error code", f"{code} is {shown}; declared as {have.errors[code]}", ERRORS, is_wrong=True)
    if newest:
        for key in have.api_names.keys() - of_kafka.keys():
            yield _extra("API", f"{have.api_names[key]} (API {key})", APIS)
        for code in have.errors.keys() - errors.keys():
            yield _extra("error code", f"{code} {have.errors[code][0]}", ERRORS)


# --- configs -------------------------------------------------------------------------------------------------------

CONFIGS = "add the release to RELEASES in tests/tools/config_types.py; python -m tests.tools.config_types"
CLIENT_KEYS = "kshell/client/settings.py"


def config_key_names(have: Declared, release: str) -> Iterator[Gap]:
    """Keys of topics, brokers, groups and client metrics, and which of them are passwords."""
    of_kafka = rows(release, "ConfigKeys")
    if len(of_kafka) < LEAST_CONFIG_KEYS:
        yield Gap(
            "config key", f"only {len(of_kafka)} keys were read: the classes moved", "tests/kafka/java/ConfigKeys"
        )
    for kind, key, value_type in of_kafka:
        secret = key in have.secret_keys.get(kind, ())
        if key not in have.known_keys.get(kind, ()):
            yield Gap("config key", f"{kind} {key} is not known", CONFIGS)
        elif value_type == "PASSWORD" and not secret:
            yield Gap("config key", f"{kind} {key} is a password", CONFIGS)
        elif value_type != "PASSWORD" and secret and is_newest(have, release):
            yield Gap("config key", f"{kind} {key} is no password", CONFIGS, is_wrong=True)


def config_rules(have: Declared, release: str) -> Iterator[Gap]:
    """Types, valid values and defaults of those keys: the newest release's, and the rules of all."""
    for kind, key, value_type, stated, default in rows(release, "ConfigTypes"):
        known = have.config_types.get(kind, {}).get(key)
        if known is None:
            yield Gap("config type", f"{kind} {key} has none", CONFIGS)
            continue
        rule = "*" if stated in types_tool.ANYTHING else stated
        if rule not in known.rules and (rule, known.rules) != ("*", ()):
            yield Gap("config type", f"{kind} {key}: the rule {rule} is not known", CONFIGS)
        elif is_newest(have, release):
            facts = (value_type, rule, None if default == "-" else unquote(default))
            mine = (known.type, (known.rules or ("*",))[0], known.default)
            if mine != facts:
                yield Gap("config type", f"{kind} {key} is {facts}, declared as {mine}", CONFIGS)


def client_keys(have: Declared, release: str) -> Iterator[Gap]:
    """Properties of Kafka's own clients: they may stand in a file that kshell is given."""
    for (key,) in rows(release, "ClientKeys"):
        if not have.client_key(key):
            yield Gap("client property", f"{key} is not known", CLIENT_KEYS)


# --- features and releases -----------------------------------------------------------------------------------------

VERSIONS = "kshell/metadata/metadata_version.py (names), kshell/metadata/feature_levels.py (_CHANGED, LATEST)"
LEVELS = "kshell/metadata/feature_levels.py (_LEVELS)"
SUPPORTED = "kshell/client/releases.py (RELEASES, _LEVELS)"
OFFERS = "add the release to PATCHES in tests/tools/releases.py; python -m tests.tools.releases"


class FeatureFacts(NamedTuple):
    """A level of a feature, as ``FeatureLevels.java`` prints it."""

    feature: str
    level: int
    name: str
    version: int
    changed: str
    needs: str


def feature_facts(release: str) -> tuple[list[FeatureFacts], dict[str, Range], int]:
    """Return a release's levels, what its servers support, and its newest metadata.version for production."""
    printed = rows(release, "FeatureLevels")
    facts = [FeatureFacts(r[0], int(r[1]), r[2], int(r[3]), r[4], r[5]) for r in printed if not r[0].startswith("#")]
    supported = {row[1]: (int(row[2]), int(row[3])) for row in printed if row[0] == "#supported"}
    return facts, supported, next(int(row[1]) for row in printed if row[0] == "#production")


def metadata_versions(have: Declared, release: str) -> Iterator[Gap]:
    """Levels of metadata.version: names, which of them brought metadata, and the newest one for production."""
    facts, _, production = feature_facts(release)
    newest = is_newest(have, release)
    # What a release has for testing may still change; the newest one says most of what is to come.
    known = [fact for fact in facts if fact.feature == METADATA_VERSION and (newest or fact.level <= production)]
    for fact in known:
        if fact.level < 1:
            continue
        name = have.version_names.get(fact.level)
        if name is None:
            yield Gap("metadata.version", f"{fact.level} ({fact.name}) has no name", VERSIONS)
        elif name != fact.name:
            yield Gap("metadata.version", f"{fact.level} is {fact.name}, not {name}", VERSIONS, is_wrong=True)
        if fact.changed in ("true", "false") and (fact.changed == "true") != (fact.level in have.changed):
            effect = "brought records or fields" if fact.changed == "true" else "changed no metadata"
            yield Gap("metadata.version", f"{fact.level} ({fact.name}) {effect}", VERSIONS, fact.changed == "false")
    if production > have.latest or (newest and production != have.latest):
        yield Gap("metadata.version", f"the newest for production is {production}, not {have.latest}", VERSIONS)
    if newest:
        for level in have.version_names.keys() - {fact.level for fact in known}:
            if level > max(fact.level for fact in known):
                yield _extra("metadata.version", f"{level} ({have.version_names[level]})", VERSIONS)


def feature_levels(have: Declared, release: str) -> Iterator[Gap]:
    """Levels of the other features: the metadata.version that brings each by default, and what it needs."""
    facts, supported, _ = feature_facts(release)
    for fact in facts:
        if fact.feature == METADATA_VERSION or not 1 <= fact.level <= supported.get(fact.feature, (0, 0))[1]:
            continue
        mine = next((level for level in have.levels.get(fact.feature, ()) if level.level == fact.level), None)
        title = f"{fact.feature} {fact.level}"
        if mine is None:
            yield Gap("feature level", f"{title} is not declared", LEVELS)
            continue
        if mine.version != fact.version:
            yield Gap("feature level", f"{title} comes with {fact.version}, not with {mine.version}", LEVELS, True)
        needs = ",".join(f"{name}={level}" for name, level in mine.needs.items()) or "-"
        if needs != fact.needs and (line_of(release), fact.feature) != ALONE_IN_4_0:
            yield Gap("feature level", f"{title} needs {fact.needs}, declared as {needs}", LEVELS, True)


def supported_ranges(have: Declared, release: str) -> Iterator[Gap]:
    """Which levels the release's servers support: what its release is told by."""
    _, supported, _ = feature_facts(release)
    line = line_of(release)
    text = " ".join(f"{name} {low}-{high}" for name, (low, high) in sorted(supported.items()))
    if line not in have.supported:
        yield Gap("supported features", f"{line} is not in the table: {text}", SUPPORTED)
    elif have.supported[line] != supported:
        yield Gap("supported features", f"{line} supports {text}", SUPPORTED)


def api_ranges(have: Declared, release: str) -> Iterator[Gap]:
    """Which versions of which APIs the release's servers offer."""
    offered = _offered(release)
    for kind, listener in ((BROKER, "BROKER"), (CONTROLLER, "CONTROLLER")):
        mine = [o for o in have.offers if (o.release, o.kind, o.kraft) == (line_of(release), kind, True)]
        table = next((o for o in mine if o.patch == release), next((o for o in mine if o.patch is None), None))
        if table is None:
            yield Gap("release", f"{line_of(release)} is not in the table of {kind}s", OFFERS)
            continue
        ours = [row for row in offered if row.kind == listener]
        stable = {row.key: row.stable for row in ours if row.stable}
        loose = {row.key: row.unstable for row in ours if row.unstable and row.unstable != row.stable}
        for key in sorted(stable.keys() | table.ranges.keys()):
            if stable.get(key) != table.ranges.get(key):
                text = f"a {kind} of {release} offers API {key} {stable.get(key)}, in the table {table.ranges.get(key)}"
                yield Gap("release", text, OFFERS)
        if loose != table.unstable:
            yield Gap("release", f"a {kind} of {release} has the unstable {loose}", OFFERS)
        passed_on = {row.key for row in ours if row.forwardable} - set(have.forwarded)
        if passed_on:
            yield Gap("release", f"a {kind} of {release} passes on the APIs {sorted(passed_on)}", OFFERS)


@cache
def _offered(release: str) -> list[releases_tool.Row]:
    return releases_tool.read([jars.libs(release) / f"kafka-clients-{release}.jar"])


def _extra(kind: str, what: str, where: str) -> Gap:
    return Gap(kind, f"{what} is declared, but this release does not have it", where, is_wrong=True)


COMPARISONS: tuple[Callable[[Declared, str], Iterable[Gap]], ...] = (
    records, control_records, requests, names, config_key_names, config_rules, client_keys, metadata_versions,
    feature_levels, supported_ranges, api_ranges,
)  # fmt: skip


def compare(have: Declared, release: str) -> list[Gap]:
    """Return everything that kshell lacks, or has wrong, for a release. A comparison that fails is a gap itself."""
    gaps: list[Gap] = []
    for comparison in COMPARISONS:
        try:
            gaps += comparison(have, release)
        except (RuntimeError, KeyError, ValueError, StopIteration) as error:
            lines = str(error).strip().splitlines() or [repr(error)]
            what = f"{comparison.__name__} cannot be compared: {lines[0]}"
            gaps.append(Gap("comparison", what, "tests/kafka/comparison.py and the program in tests/kafka/java"))
    return gaps
