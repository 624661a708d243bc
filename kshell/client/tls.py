"""TLS as Java client properties configure it (``DefaultSslEngineFactory``), with Python's ``ssl``.

In: ``ssl.*`` properties. Out: their values (:class:`Tls`), an ``SSLContext`` for connections (:func:`context_of`), and
for each failure a TlsError with a hint (:func:`explain`).
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from kshell.client import key_stores
from kshell.client.key_stores import Identity
from kshell.client.properties import Properties, Secret
from kshell.errors import TlsError, UsageError

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
"""Keys that name Java implementations and have no effect here. Users are warned about the last two only, because the
others choose among equivalent implementations."""

_STORES = ("JKS", "PKCS12", "PEM")


class Tls(NamedTuple):
    """The values of ``ssl.*`` properties. Their files are read only when :func:`context_of` makes a context."""

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
    trusts_system: bool = False
    """Whether the system's certificates count besides those of a trust store; without a trust store they always do."""

    @classmethod
    def of(cls, properties: Properties, warnings: list[str]) -> Tls:
        """Read the properties. What has no effect here, or is unsafe, is added to ``warnings``. Raises UsageError."""
        checks = _checks_hostname(properties)
        if not checks:
            warnings.append(
                "ssl.endpoint.identification.algorithm is empty: the names in server certificates are NOT checked,"
                " so any server with a trusted certificate can pretend to be this one"
            )
        for key in ("ssl.truststore.type", "ssl.keystore.type"):
            if (properties.filled(key) or "PEM").upper() not in _STORES:
                raise properties.fault(key, "is not a known type of store", hint=f"one of {', '.join(_STORES)}")
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
        """Return an error about a key, with the place where it was set."""
        return Properties(places=self.places).fault(key, reason, hint=hint)


def _password(properties: Properties, key: str) -> Secret | None:
    secret = properties.secret(key)
    return secret if secret is not None and secret.value else None


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
    names = properties.entries(key) or _DEFAULT_VERSIONS
    versions = tuple(version for version in _VERSIONS if version in names)
    if not versions:
        raise properties.fault(key, "names no TLS version", hint=f"versions: {', '.join(_VERSIONS)}")
    unknown = [version for version in names if version not in _VERSIONS]
    if unknown:
        warnings.append(f"{key}: {', '.join(unknown)} cannot be offered here")
    first, last = _VERSIONS.index(versions[0]), _VERSIONS.index(versions[-1])
    if last - first + 1 != len(versions):
        warnings.append(f"{key}: every version between {versions[0]} and {versions[-1]} is offered")
    if first < 2:
        warnings.append(f"{key}: {versions[0]} is not safe, and OpenSSL may refuse to speak it")
    return versions


def _cipher_suites(properties: Properties, warnings: list[str]) -> tuple[str, ...]:
    suites = properties.entries("ssl.cipher.suites")
    if unknown := openssl_names(suites)[2]:
        warnings.append(f"ssl.cipher.suites: {', '.join(unknown)} cannot be offered here")
    return suites


def context_of(tls: Tls) -> ssl.SSLContext:
    """Make the context for TLS connections. Raises UsageError if a store, a key or a cipher suite cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Not create_default_context(): from Python 3.13 on it sets VERIFY_X509_STRICT, and Java is not that strict.
    context.check_hostname = tls.checks_name
    context.verify_mode = ssl.CERT_REQUIRED
    # As in Java, a certificate in a trust store is trusted by itself, even if it is not a root certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusted = key_stores.trusted(tls)
    if trusted is None or tls.trusts_system:
        context.load_default_certs()
    if trusted is not None:
        _trust(context, tls, trusted)
    identity = key_stores.identity(tls)
    if identity is not None:
        _present(context, tls, identity)
    _limit(context, tls)
    return context


def _trust(context: ssl.SSLContext, tls: Tls, trusted: list[bytes]) -> None:
    key = "ssl.truststore.location" if tls.truststore_location else "ssl.truststore.certificates"
    for certificate in trusted:
        try:
            context.load_verify_locations(cadata=certificate)
        except (ssl.SSLError, ValueError):
            raise tls.fault(key, "a certificate in it cannot be read") from None


def _limit(context: ssl.SSLContext, tls: Tls) -> None:
    names = {"TLSv1": "TLSv1", "TLSv1.1": "TLSv1_1", "TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}
    low, high = tls.versions[0], tls.versions[-1]
    if tls.cipher_suites:
        older, newer, _ = openssl_names(tls.cipher_suites)
        if older:
            try:
                context.set_ciphers(":".join(older))
            except ssl.SSLError:
                older = []
        if not older and not newer:
            raise tls.fault("ssl.cipher.suites", "names no cipher suite that OpenSSL has")
        # The suites of TLS 1.3 cannot be chosen one by one from Python before 3.15; leaving the version out can.
        low = low if older else "TLSv1.3"
        high = high if newer else min(high, "TLSv1.2")
        if low > high or low not in tls.versions or high not in tls.versions:
            raise tls.fault("ssl.cipher.suites", "fits none of the versions in ssl.enabled.protocols")
    with warnings.catch_warnings():
        # Python deprecates TLS 1.0 and 1.1; the user asked for them, and was warned.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = getattr(ssl.TLSVersion, names[low])
        context.maximum_version = getattr(ssl.TLSVersion, names[high])


def server_name(host: str) -> str:
    """Return the ``server_hostname`` for ``wrap_socket``: a name without final dot, an IPv6 address without scope."""
    return host.partition("%")[0] if ":" in host else host.removesuffix(".")


# --- Java's names of cipher suites ------------------------------------------------------------------------------------


_NEWER = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_OLDER = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|ECDH_ECDSA|ECDH_RSA|DHE_RSA|DHE_DSS|RSA)_WITH_"
    r"(?:(?P<aes>AES_(?:128|256))_(?P<mode>GCM|CBC|CCM(?:_8)?)|(?P<chacha>CHACHA20_POLY1305)|(?P<des>3DES_EDE_CBC))"
    r"(?:_(?P<hash>SHA|SHA256|SHA384))?\Z"
)


def openssl_names(suites: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Sort Java's cipher suites: (OpenSSL's names for TLS 1.2 and older, suites of TLS 1.3, unknown ones)."""
    older, newer, unknown = list[str](), list[str](), list[str]()
    for suite in suites:
        match = _OLDER.match(suite)
        if suite in _NEWER:
            newer.append(suite)
        elif match is None:
            unknown.append(suite)
        else:
            older.append(_older(match))
    return older, newer, unknown


def _older(match: re.Match[str]) -> str:
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    if match["chacha"]:
        return exchange + "CHACHA20-POLY1305"
    if match["des"]:
        return exchange + "DES-CBC3-SHA"
    cipher = match["aes"].replace("AES_", "AES")
    mode = "" if match["mode"] == "CBC" else "-" + match["mode"].replace("CCM_8", "CCM8")
    # The names of CCM suites have no hash, neither Java's nor OpenSSL's.
    return exchange + cipher + mode + (f"-{match['hash']}" if match["hash"] else "")


# --- the client certificate -------------------------------------------------------------------------------------------


def _present(context: ssl.SSLContext, tls: Tls, identity: Identity) -> None:
    """Make the context present the client's certificate, which an ``SSLContext`` can only load from a file.

    The private key is never on disk unencrypted: the file has it under a random password. Raises UsageError if key and
    certificate do not belong together, or OpenSSL cannot use them.
    """
    password = secrets.token_hex(32)
    with _short_lived_file(_encrypted_pem(identity, password.encode())) as path:
        try:
            context.load_cert_chain(path, password=password)
        except (ssl.SSLError, ValueError) as error:
            key = "ssl.keystore.location" if tls.keystore_location else "ssl.keystore.key"
            fits = getattr(error, "reason", None) != "KEY_VALUES_MISMATCH"
            why = "OpenSSL cannot use the certificate or the key" if fits else "the key is not the certificate's"
            raise tls.fault(key, why) from None


def _encrypted_pem(identity: Identity, password: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    return key + b"".join(ssl.DER_cert_to_PEM_cert(certificate).encode() for certificate in identity.chain)


@contextmanager
def _short_lived_file(data: bytes) -> Iterator[str]:
    """Provide a path with ``data`` while the context lasts: in memory on Linux, else a temporary file (0600)."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("kshell-identity")
        try:
            _write(number, data)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    number, path = tempfile.mkstemp(prefix="kshell-")  # 0600
    try:
        try:
            _write(number, data)
        finally:
            os.close(number)
        yield path
    finally:
        os.unlink(path)


def _write(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]


# --- what went wrong --------------------------------------------------------------------------------------------------


_ENDED = (
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
    EOFError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)
_NAME_MISMATCH, _ADDRESS_MISMATCH = 62, 64
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_TRUST = (
    "trust the authority that issued it: ssl.truststore.location (JKS, PKCS12 or PEM) or ssl.truststore.certificates"
)


class _Case(NamedTuple):
    reason: str
    hint: str


_VERIFY = {
    9: _Case("the server's certificate is not valid yet", "check the clocks of both machines"),
    10: _Case("the server's certificate has expired", "renew the certificate of that server"),
    18: _Case("the server's certificate is self-signed and not trusted", _TRUST),
    19: _Case("the server's certificate comes from an authority that is not trusted", _TRUST),
    20: _Case("the server's certificate comes from an authority that is not trusted", _TRUST),
    21: _Case("the server's certificate comes from an authority that is not trusted", _TRUST),
    23: _Case("the server's certificate was revoked", "renew the certificate of that server"),
    _NAME_MISMATCH: _Case("the server's certificate is for another name", ""),
    _ADDRESS_MISMATCH: _Case("the server's certificate is for another address", ""),
}
_NOT_TLS = _Case(
    "the server does not speak TLS there",
    "is it a PLAINTEXT or SASL_PLAINTEXT listener? Then set security.protocol so, or give the port of a TLS listener",
)
_NO_CLIENT = _Case(
    "the server wants a client certificate, and none was presented",
    "set ssl.keystore.location (or ssl.keystore.certificate.chain and ssl.keystore.key)",
)
_REFUSED = _Case(
    "the server refused the client's certificate",
    "its authority must be in the server's trust store, and it must be valid now: see ssl.keystore.location",
)
_CLIENT = _Case(
    "the server wants a client certificate: it got none, or refused the one it got",
    "see ssl.keystore.location; the certificate's authority must be in the server's trust store",
)
_VERSION = _Case("no TLS version in common with the server", "see ssl.enabled.protocols, on both sides")
_ALERTS = {
    "WRONG_VERSION_NUMBER": _NOT_TLS,
    "HTTP_REQUEST": _NOT_TLS,
    "PACKET_LENGTH_TOO_LONG": _NOT_TLS,
    "RECORD_LAYER_FAILURE": _NOT_TLS,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": _NO_CLIENT,
    "TLSV1_ALERT_CERTIFICATE_REQUIRED": _NO_CLIENT,
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": _REFUSED,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REFUSED,
    "TLSV1_ALERT_UNKNOWN_CA": _REFUSED,
    "TLSV1_ALERT_ACCESS_DENIED": _REFUSED,
    "TLSV1_ALERT_DECRYPT_ERROR": _REFUSED,
    "TLSV1_ALERT_PROTOCOL_VERSION": _VERSION,
    "UNSUPPORTED_PROTOCOL": _VERSION,
    "NO_PROTOCOLS_AVAILABLE": _VERSION,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _Case(
        "the server and kshell have no version or cipher suite in common, or the server wants a client certificate",
        "see ssl.enabled.protocols, ssl.cipher.suites and ssl.keystore.location",
    ),
    "NO_SHARED_CIPHER": _Case("no cipher suite in common with the server", "see ssl.cipher.suites"),
    "NO_CIPHERS_AVAILABLE": _Case("no cipher suite is left to offer", "see ssl.cipher.suites"),
}


def explain(
    error: BaseException,
    node: str,
    *,
    presents: bool | None = None,
    handshake: bool = True,
) -> TlsError:
    """Return a TlsError with reason and hint for an error of the TLS handshake, or of a later read or write.

    In TLS 1.3 a server refuses a client (certificate missing, or not trusted) after the client's side of the handshake
    is complete, so the client sees that at its first read. So pass an SSLError of the first read, or the end of the
    stream (as EOFError), to this function as well.

    Args:
        error: what ``ssl`` or the socket raised.
        node: the peer, ``host:port``.
        presents: whether the client has a certificate to present (``Tls.presents``); ``None`` if that is not known.
        handshake: whether the error came during the handshake.
    """
    reason, hint = _case(error, presents, handshake=handshake)
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in (_NAME_MISMATCH, _ADDRESS_MISMATCH):
        hint = (
            f"connect by a name that is in the certificate (`openssl s_client -connect {node}` shows it), or get a"
            " certificate that has this name; ssl.endpoint.identification.algorithm= (empty) turns the check off, but"
            " then nothing proves which server answers"
        )
    return TlsError(node, f"TLS: {reason}", hint=hint)


def _case(error: BaseException, presents: bool | None, *, handshake: bool) -> _Case:
    if isinstance(error, ssl.SSLCertVerificationError):
        case = _VERIFY.get(error.verify_code)
        return case or _Case(f"the server's certificate: {error.verify_message}", _TRUST)
    if isinstance(error, _ENDED):
        return _ended(presents, handshake=handshake)
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    case = _ALERTS.get(reason)
    if case is _REFUSED and not presents:
        # For a missing certificate, servers report a bad one: all servers before TLS 1.3, Java's also in TLS 1.3.
        return _NO_CLIENT if presents is False else _CLIENT
    if case is not None:
        return case
    detail = reason.replace("_", " ").lower() if reason else getattr(error, "strerror", None) or type(error).__name__
    return _Case(str(detail), "does the server speak TLS at this port, and what does its own log say?")


def _ended(presents: bool | None, *, handshake: bool) -> _Case:
    if handshake:
        return _Case("the server ended the connection instead of agreeing on TLS", _NOT_TLS.hint)
    if presents:
        return _Case("the server ended the connection right after the handshake", _REFUSED.hint)
    return _Case(
        "the server ended the connection right after the handshake; it may want a client certificate", _NO_CLIENT.hint
    )
