"""The settings of connections, read from client properties. Times are in seconds; a ``repr`` never shows a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.properties import Properties
from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.client.allowed_hosts import AllowedHosts
    from kshell.client.sasl.configuration import Sasl
    from kshell.client.tls import Tls


PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
_LARGEST_KEY = 0x7FFF


class Settings(NamedTuple):
    """The settings of connections to one cluster; ``warnings`` are sentences for the user, without secrets."""

    security_protocol: str
    tls: Tls | None
    sasl: Sasl | None
    client_id: str
    request_timeout: float
    connect_timeout: float
    api_timeout: float
    reconnect_backoff: float
    reconnect_backoff_max: float
    retry_backoff: float
    retry_backoff_max: float
    bootstrap_controllers: str | None
    bootstrap_servers: str | None
    cluster_id: str | None
    dialects: frozenset[str]
    excluded: dict[str, frozenset[int]]
    """API name -> versions that kshell must not use (``api.versions.exclude``)."""
    fallback_release: str | None
    allow_plaintext_password: bool
    allowed_hosts: AllowedHosts | None
    """The hosts that kshell may connect to; ``None`` allows all."""
    warnings: list[str]
    file: str | None = None
    """The properties file that the user named; Kafka's own tools can read it as well."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Settings:
        """Read client properties. Raises UsageError, which names the key and, if known, the file and line."""
        source = properties if isinstance(properties, Properties) else Properties(properties)
        warnings = _unknown(source)
        protocol = (source.filled("security.protocol") or PLAINTEXT).upper()
        if protocol not in _PROTOCOLS:
            raise source.fault("security.protocol", "is not one that Kafka has", hint=f"one of {', '.join(_PROTOCOLS)}")
        settings = cls(
            security_protocol=protocol,
            tls=_tls(source, warnings) if protocol.endswith(SSL) else None,
            sasl=_sasl(source) if protocol.startswith("SASL") else None,
            client_id=source.filled("client.id") or "kshell",
            request_timeout=_positive(source, "request.timeout.ms", 30),
            connect_timeout=_positive(source, "socket.connection.setup.timeout.ms", 10),
            api_timeout=_positive(source, "default.api.timeout.ms", 60),
            reconnect_backoff=source.seconds("reconnect.backoff.ms", 0.05),
            reconnect_backoff_max=source.seconds("reconnect.backoff.max.ms", 1),
            retry_backoff=source.seconds("retry.backoff.ms", 0.1),
            retry_backoff_max=source.seconds("retry.backoff.max.ms", 1),
            bootstrap_controllers=source.filled("bootstrap.controllers"),
            bootstrap_servers=source.filled("bootstrap.servers"),
            cluster_id=source.filled("cluster.id"),
            dialects=_dialects(source),
            excluded=_excluded(source),
            fallback_release=source.filled("broker.version.fallback"),
            allow_plaintext_password=source.switch("sasl.plain.allow.plaintext"),
            allowed_hosts=_allowed_hosts(source),
            warnings=warnings,
        )
        if (
            settings.sasl is not None
            and settings.sasl.oauth is not None
            and settings.tls is None
            and settings.sasl.oauth.is_secret
        ):
            warnings.append(
                "OAUTHBEARER with SASL_PLAINTEXT: whoever sees the traffic can take the token (use SASL_SSL)"
            )
        return settings


def source_of(settings: Settings) -> tuple[str, str] | None:
    """Return the bootstrap list that the properties set: (``bootstrap_controllers`` or ``bootstrap_servers``, list).

    ``None`` if they set neither. Raises UsageError if they set both (KIP-919).
    """
    controllers, servers = settings.bootstrap_controllers, settings.bootstrap_servers
    if controllers and servers:
        raise UsageError(
            "the client properties set bootstrap.controllers and bootstrap.servers, but only one may be set",
            hint="choose with -q LIST or -b LIST on the command line, or remove one of them",
        )
    if controllers:
        return "bootstrap_controllers", controllers
    return ("bootstrap_servers", servers) if servers else None


def _unknown(properties: Properties) -> list[str]:
    """Return the warnings about unknown keys: one for each that is shown, and one for all others."""
    warnings, hidden = list[str](), list[str]()
    for key in properties:
        place = properties.places.get(key)
        if is_known(key):
            continue
        if place and not is_shown(properties, key):
            hidden.append(place)
        elif place:
            warnings.append(f"{place}: {key} is not a client property that is known")
        else:
            warnings.append(f"{key}: not a known client property")
    if hidden:
        more = f" and {len(hidden) - 1} more" if hidden[1:] else ""
        warnings.append(
            f"{hidden[0]}{more}: not a client property that is known; the text is not shown, for it may be a secret"
            " (where a value goes on in the next line, its line has to end with a backslash)"
        )
    return warnings


def is_shown(properties: Properties, key: str) -> bool:
    """Whether a key is no part of a secret: it is known, or another spelling of one that is, such as ``Client_ID``."""
    spelled = key.lower().replace("_", ".").replace("-", ".")
    return not properties.may_hold_secret(key) or is_known(key) or spelled in KEYS or spelled in OWN


def _tls(properties: Properties, warnings: list[str]) -> Tls:
    from kshell.client.tls import Tls

    return Tls.of(properties, warnings)


def _sasl(properties: Properties) -> Sasl:
    from kshell.client.sasl.mechanisms import sasl_of

    return sasl_of(properties)


def _allowed_hosts(properties: Properties) -> AllowedHosts | None:
    if "allowed.hosts" not in properties:
        return None
    from kshell.client.allowed_hosts import AllowedHosts  # late: few set it

    return AllowedHosts.of(properties)


def _positive(properties: Properties, key: str, default: float) -> float:
    value = properties.seconds(key, default)
    if value <= 0:
        raise properties.fault(key, "must be more than 0 ms")
    return value


def _dialects(properties: Properties) -> frozenset[str]:
    names = frozenset(properties.entries("dialect"))
    if not names:
        return names
    from kshell.protocol.messages.drafts import DIALECTS  # late: hardly anybody names one

    if unknown := sorted(names - DIALECTS.keys()):
        raise properties.fault("dialect", f"there is no {', '.join(unknown)}", hint=f"dialects: {', '.join(DIALECTS)}")
    return names


def _excluded(properties: Properties) -> dict[str, frozenset[int]]:
    """Read ``api.versions.exclude``, such as ``Fetch:18,DescribeQuorum:1-2``: API name -> versions."""
    key = "api.versions.exclude"
    excluded: dict[str, frozenset[int]] = {}
    for entry in properties.entries(key):
        name, _, versions = entry.partition(":")
        low, dash, high = versions.partition("-")
        first, last = _version(low), _version(high if dash else low)
        if not (name.isascii() and name.isalnum()) or first is None or last is None or last < first:
            raise properties.fault(
                key, f"{entry} is not NAME:VERSION or NAME:LOW-HIGH", hint="Fetch:18,DescribeQuorum:1-2"
            )
        excluded[name] = excluded.get(name, frozenset()) | frozenset(range(first, last + 1))
    return excluded


def _version(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= _LARGEST_KEY else None


# --- keys that are known ----------------------------------------------------------------------------------------------


KEYS = frozenset(
    """
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset batch.size
    bootstrap.controllers bootstrap.resolve.timeout.ms bootstrap.servers buffer.memory buffer.memory.allocation.strategy
    check.crcs client.dns.lookup client.id client.rack compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms delivery.timeout.ms
    enable.auto.commit enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size metadata.cluster.check.enable
    metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys partitioner.rack.aware receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.deserializer value.serializer
    """.split()
)
OWN = frozenset(
    """
    allowed.hosts api.versions.exclude broker.version.fallback cluster.id dialect sasl.oauthbearer.token.command
    sasl.oauthbearer.token.file sasl.plain.allow.plaintext
    """.split()
)
"""Keys that only kshell has. ``broker.version.fallback`` has the name of librdkafka's property."""


def is_known(key: str) -> bool:
    """Whether a key is in :data:`KEYS` or :data:`OWN`, or begins with a prefix after which any name may follow."""
    if key in KEYS or key in OWN or key.startswith(("config.providers.", "metrics.context.")):
        return True
    # Kafka's console tools pass these on to their formatters and deserializers.
    return key.startswith(("key.deserializer.", "value.deserializer.", "key.serializer.", "value.serializer."))
