"""TLS as Java client properties describe it (``DefaultSslEngineFactory``), with Python's ``ssl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.client.properties import Properties
from kshell.client.secret import Secret
from kshell.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from kshell.client.settings import Settings
    from kshell.errors import TlsError

_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_DEFAULT_VERSIONS = ("TLSv1.2", "TLSv1.3")
_PASSED_OVER = (
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
    "security.providers",
)
"""Keys that choose among Java's own implementations. Only the engine's and the providers' may change an outcome."""

_STORES = ("JKS", "PKCS12", "PEM")


class Tls(NamedTuple):
    """What ``ssl.*`` keys say. Nothing is read from files before a context is made of it."""

    truststore_location: str | None
    truststore_password: Secret | None
    truststore_certificates: str | None
    keystore_location: str | None
    keystore_password: Secret | None
    keystore_certificate_chain: str | None
    keystore_key: Secret | None
    key_password: Secret | None
    versions: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    checks_name: bool
    places: Mapping[str, str]

    @classmethod
    def of(cls, properties: Properties, warnings: list[str]) -> Tls:
        """From the keys; what cannot be honoured is added to ``warnings``, keys only. Raises UsageError."""
        checks = _checks_hostname(properties)
        if not checks:
            warnings.append(
                "ssl.endpoint.identification.algorithm is empty: the names in server certificates are NOT checked,"
                " so any server with a trusted certificate can pretend to be this one"
            )
        for key in ("ssl.truststore.type", "ssl.keystore.type"):
            if (properties.filled(key) or "PEM").upper() not in _STORES:
                raise properties.fault(key, "is no kind of store that is known", hint=f"one of {', '.join(_STORES)}")
        for key in _PASSED_OVER:
            if properties.filled(key) and (key.startswith("ssl.engine") or key.startswith("security")):
                warnings.append(f"{key} names Java classes and has no effect here")
        return cls(
            truststore_location=properties.filled("ssl.truststore.location"),
            truststore_password=_password(properties, "ssl.truststore.password"),
            truststore_certificates=properties.filled("ssl.truststore.certificates"),
            keystore_location=properties.filled("ssl.keystore.location"),
            keystore_password=_password(properties, "ssl.keystore.password"),
            keystore_certificate_chain=properties.filled("ssl.keystore.certificate.chain"),
            keystore_key=_password(properties, "ssl.keystore.key"),
            key_password=_password(properties, "ssl.key.password"),
            versions=_enabled_versions(properties, warnings),
            cipher_suites=_cipher_suites(properties, warnings),
            checks_name=checks,
            places=properties.places,
        )

    @property
    def presents(self) -> bool:
        """Whether the client has a certificate of its own to present."""
        return self.keystore_location is not None or self.keystore_key is not None

    def fault(self, key: str, reason: str, *, hint: str | None = None) -> UsageError:
        """The error of one key, with its place."""
        return Properties(places=self.places).fault(key, reason, hint=hint)


def _password(properties: Properties, key: str) -> Secret | None:
    found = properties.secret(key)
    return found if found is not None and found.value else None


def _checks_hostname(properties: Properties) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    value = properties.text(key)
    if value is None or value.upper() == "HTTPS":
        return True
    if value:
        raise properties.fault(key, "is neither https nor empty")
    return False


def _enabled_versions(properties: Properties, warnings: list[str]) -> tuple[str, ...]:
    key = "ssl.enabled.protocols"
    given = properties.words(key) or _DEFAULT_VERSIONS
    known = tuple(version for version in _VERSIONS if version in given)
    if not known:
        raise properties.fault(key, "names no TLS version", hint=f"versions: {', '.join(_VERSIONS)}")
    unknown = [version for version in given if version not in _VERSIONS]
    if unknown:
        warnings.append(f"{key}: {', '.join(unknown)} cannot be offered here")
    first, last = _VERSIONS.index(known[0]), _VERSIONS.index(known[-1])
    if last - first + 1 != len(known):
        warnings.append(f"{key}: every version between {known[0]} and {known[-1]} is offered")
    if first < 2:
        warnings.append(f"{key}: {known[0]} is not safe, and OpenSSL may refuse to speak it")
    return known


def _cipher_suites(properties: Properties, warnings: list[str]) -> tuple[str, ...]:
    suites = properties.words("ssl.cipher.suites")
    if suites:
        from kshell.client.ciphers import openssl_names

        if unknown := openssl_names(suites)[2]:
            warnings.append(f"ssl.cipher.suites: {', '.join(unknown)} cannot be offered here")
    return suites


def context(settings: Settings) -> ssl.SSLContext:
    """The context for the connections of these settings. Raises UsageError for stores that cannot be used."""
    if settings.tls is None:
        raise UsageError(f"security.protocol={settings.security_protocol} uses no TLS")
    return context_of(settings.tls)


def context_of(tls: Tls) -> ssl.SSLContext:
    """The same for what ``ssl.*`` keys say, wherever they came from."""
    import ssl

    from kshell.client import stores

    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # With 3.13 and older this is the default only of create_default_context; and Java, too, needs no strictness here.
    made.check_hostname = tls.checks_name
    made.verify_mode = ssl.CERT_REQUIRED
    # A certificate in a trust store is trusted by itself, also one that is not a root: so Java has it.
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusted = stores.trusted(tls)
    if trusted is None:
        made.load_default_certs()
    else:
        _trust(made, tls, trusted)
    identity = stores.identity(tls)
    if identity is not None:
        from kshell.client.identity import load

        load(made, tls, identity)
    _limit(made, tls)
    return made


def _trust(made: ssl.SSLContext, tls: Tls, trusted: list[bytes]) -> None:
    import ssl

    key = "ssl.truststore.location" if tls.truststore_location else "ssl.truststore.certificates"
    for certificate in trusted:
        try:
            made.load_verify_locations(cadata=certificate)
        except (ssl.SSLError, ValueError):
            raise tls.fault(key, "a certificate in it cannot be read") from None


def _limit(made: ssl.SSLContext, tls: Tls) -> None:
    import ssl

    names = {"TLSv1": "TLSv1", "TLSv1.1": "TLSv1_1", "TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}
    low, high = tls.versions[0], tls.versions[-1]
    if tls.cipher_suites:
        from kshell.client.ciphers import openssl_names

        older, newer, _ = openssl_names(tls.cipher_suites)
        if older:
            try:
                made.set_ciphers(":".join(older))
            except ssl.SSLError:
                older = []
        if not older and not newer:
            raise tls.fault("ssl.cipher.suites", "names no cipher suite that OpenSSL has")
        # The suites of TLS 1.3 cannot be chosen one by one from Python before 3.15; leaving the version out can.
        low = low if older else "TLSv1.3"
        high = high if newer else min(high, "TLSv1.2")
        if low > high or low not in tls.versions or high not in tls.versions:
            raise tls.fault("ssl.cipher.suites", "fits none of the versions in ssl.enabled.protocols")
    import warnings

    with warnings.catch_warnings():
        # Python deprecates TLS 1.0 and 1.1; the person asked for them, and was told.
        warnings.simplefilter("ignore", DeprecationWarning)
        made.minimum_version = getattr(ssl.TLSVersion, names[low])
        made.maximum_version = getattr(ssl.TLSVersion, names[high])


def explain(error: BaseException, node: str, **known: Any) -> TlsError:
    """What went wrong with TLS as a typed error: :func:`kshell.client.tls_errors.explain`, imported only then."""
    from kshell.client import tls_errors

    return tls_errors.explain(error, node, **known)


def server_name(host: str) -> str:
    """What goes into ``wrap_socket(server_hostname=…)``: a name without its root dot, an address without its scope."""
    return host.partition("%")[0] if ":" in host else host.removesuffix(".")
