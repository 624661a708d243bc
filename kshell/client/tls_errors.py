"""What went wrong with TLS, in words: the reason, and what to do about it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import TlsError

if TYPE_CHECKING:
    from kshell.client.settings import Settings

_ENDED = (
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
    EOFError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)
_NAME, _ADDRESS = 62, 64
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
    _NAME: _Case("the server's certificate is for another name", ""),
    _ADDRESS: _Case("the server's certificate is for another address", ""),
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
        "the server found nothing to agree on: versions, cipher suites, or a client certificate",
        "see ssl.enabled.protocols, ssl.cipher.suites and ssl.keystore.location",
    ),
    "NO_SHARED_CIPHER": _Case("no cipher suite in common with the server", "see ssl.cipher.suites"),
    "NO_CIPHERS_AVAILABLE": _Case("no cipher suite is left to offer", "see ssl.cipher.suites"),
}


def explain(
    error: BaseException,
    node: str,
    *,
    names: Iterable[str] = (),
    presents: bool | None = None,
    handshake: bool = True,
) -> TlsError:
    """An error while TLS was agreed on, or (``handshake=False``) at a read or write later, as a typed one.

    In TLS 1.3 a server refuses a client (certificate missing, not trusted) after the client's side of the handshake is
    complete: that shows at the first read. So whoever reads first passes an SSLError, or an end of the stream (as
    EOFError), to this function as well. ``names`` are what the certificate is for (:func:`presented_names`).
    ``presents``: whether we have a certificate of our own (``Tls.presents``); ``None`` where that is not known.
    """
    reason, hint = _case(error, presents, handshake=handshake)
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in (_NAME, _ADDRESS):
        shown = list(names)
        reason += f": it names {', '.join(shown)}" if shown else ""
        hint = (
            "connect by a name that is in the certificate, or have one made that holds this name;"
            " ssl.endpoint.identification.algorithm= (empty) turns the check off, and with it the proof who answers"
        )
    return TlsError(node, f"TLS: {reason}", hint=hint)


def _case(error: BaseException, presents: bool | None, *, handshake: bool) -> _Case:
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _VERIFY.get(error.verify_code)
        return known or _Case(f"the server's certificate: {error.verify_message}", _TRUST)
    if isinstance(error, _ENDED):
        return _ended(presents, handshake=handshake)
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    known = _ALERTS.get(reason)
    if known is _REFUSED and not presents:
        # Where a certificate is missing, servers say that it is bad: all before TLS 1.3, Java's after it, too.
        return _NO_CLIENT if presents is False else _CLIENT
    if known is not None:
        return known
    what = reason.replace("_", " ").lower() if reason else getattr(error, "strerror", None) or type(error).__name__
    return _Case(str(what), "does the server speak TLS at this port, and what does its own log say?")


def _ended(presents: bool | None, *, handshake: bool) -> _Case:
    if handshake:
        return _Case("the server ended the connection instead of agreeing on TLS", _NOT_TLS.hint)
    if presents:
        return _Case("the server ended the connection right after the handshake", _REFUSED.hint)
    return _Case(
        "the server ended the connection right after the handshake; it may want a client certificate", _NO_CLIENT.hint
    )


def presented_names(host: str, port: int, settings: Settings, timeout: float) -> list[str]:
    """What a server's certificate is for, asked of it once more for the sake of the message; empty when that fails.

    The certificate must still be from a trusted authority; nothing is sent over the connection.
    """
    from kshell.client.tls import context, server_name

    try:
        unchecked = context(settings)
        unchecked.check_hostname = False
        with (
            socket.create_connection((host, port), timeout) as plain,
            unchecked.wrap_socket(plain, server_hostname=server_name(host)) as wrapped,
        ):
            return names_in(wrapped.getpeercert() or {})
    except OSError:
        return []


def names_in(certificate: object) -> list[str]:
    """The names and addresses in what ``getpeercert()`` gives: subject alternative names, else the common name."""
    assert isinstance(certificate, dict)
    found = [str(value) for _, value in certificate.get("subjectAltName", ())]
    subject = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    return (found or [str(value) for value in subject])[:_MOST_NAMES]


_MOST_NAMES = 20
