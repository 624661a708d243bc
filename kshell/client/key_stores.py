"""Read the key stores and trust stores of Java clients: JKS, PKCS12 or PEM files, or PEM text in the properties.

In: ``ssl.*`` properties (:class:`~.tls.Tls`). Out: certificates to trust (:func:`trusted`), and the client's own
certificate with its key (:func:`identity`). The content of a file decides its format, not ``ssl.*.type``: Java, too,
reads JKS and PKCS12 under either name.

JKS is Java's own format (``sun.security.provider.JavaKeyStore``): magic, version, number of entries; then for each
entry its tag (1: a private key with its certificate chain, 2: a trusted certificate), alias, creation time and content;
at the end a SHA-1 digest over the password, a constant salt, and all bytes before. Private keys are encrypted by
``sun.security.provider.KeyProtector``. Both methods are weak, but they are what Java uses.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.properties import Secret, hides_locals
from kshell.errors import UsageError
from kshell.extras import require

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    from kshell.client.tls import Tls


_LARGEST = 16 << 20
_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_PEM = b"-----BEGIN"
_CERTIFICATE = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----\s(.*?)-----END ", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----\s(.*?)-----END \1-----", re.DOTALL)


class Identity(NamedTuple):
    """The client's certificate chain (DER, its own certificate first) and its private key."""

    chain: list[bytes]
    key: PrivateKeyTypes

    def __repr__(self) -> str:
        return f"Identity({len(self.chain)} certificates)"


def trusted(tls: Tls) -> list[bytes] | None:
    """Return the certificates (DER) to trust; ``None`` if no trust store is configured. Raises UsageError."""
    inline, path, password = tls.truststore_certificates, tls.truststore_location, tls.truststore_password
    if inline is not None and path is not None:
        raise tls.fault("ssl.truststore.certificates", "and ssl.truststore.location are two trust stores: give one")
    if inline is not None:
        return _certificates(tls, "ssl.truststore.certificates", inline)
    if path is None:
        if password is not None:
            raise tls.fault("ssl.truststore.password", "is set, but ssl.truststore.location is not")
        return None
    key = "ssl.truststore.location"
    data = _read(tls, key, path)
    if data.startswith(_JKS):
        certificates = _jks(tls, key, path, data, password).trusted
    elif _PEM in data:
        certificates = _certificates(tls, key, data.decode("latin-1"))
    else:
        certificates = _pkcs12_certificates(tls, path, data, password)
    if not certificates:
        raise tls.fault(key, f"{path} holds no certificate to trust")
    return certificates


def identity(tls: Tls) -> Identity | None:
    """Return the client's own certificate and key; ``None`` if no key store is configured. Raises UsageError."""
    chain, inline, path = tls.keystore_certificate_chain, tls.keystore_key, tls.keystore_location
    if inline is not None or chain is not None:
        if path is not None:
            raise tls.fault("ssl.keystore.key", "and ssl.keystore.location are two key stores: give one")
        if inline is None or chain is None:
            raise tls.fault("ssl.keystore.certificate.chain", "and ssl.keystore.key go together, and one is missing")
        certificates = _certificates(tls, "ssl.keystore.certificate.chain", chain)
        return Identity(certificates, _pem_key(tls, "ssl.keystore.key", inline.value))
    if path is None:
        if tls.keystore_password is not None:
            raise tls.fault("ssl.keystore.password", "is set, but ssl.keystore.location is not")
        return None
    key = "ssl.keystore.location"
    data = _read(tls, key, path)
    if data.startswith(_JKS):
        return _jks_identity(tls, path, data)
    if _PEM in data:
        text = data.decode("latin-1")
        return Identity(_certificates(tls, key, text), _pem_key(tls, key, text))
    return _pkcs12_identity(tls, path, data)


def _read(tls: Tls, key: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise tls.fault(key, f"{path}: {getattr(error, 'strerror', None) or 'cannot be a path'}") from None
    if len(data) > _LARGEST:
        raise tls.fault(key, f"{path} is too large to be a key store")
    if data.startswith(_JCEKS):
        raise tls.fault(key, f"{path} is a JCEKS store, which is not supported", hint=_CONVERT)
    if not data.startswith((_JKS, b"\x30")) and _PEM not in data:
        raise tls.fault(
            key, f"{path} is neither JKS nor PKCS12 nor PEM", hint="is the file truncated, or not a key store?"
        )
    return data


_CONVERT = "keytool -importkeystore -srckeystore … -destkeystore … -deststoretype PKCS12 makes one that is"


# --- PEM -------------------------------------------------------------------------------------------------------------


def _certificates(tls: Tls, key: str, text: str) -> list[bytes]:
    import base64

    try:
        certificates = [
            base64.b64decode("".join(encoded.split()), validate=True) for encoded in _CERTIFICATE.findall(text)
        ]
    except binascii.Error:
        raise tls.fault(key, "a certificate in it is not valid base64") from None
    if not certificates:
        raise tls.fault(key, "no PEM certificate in it", hint="-----BEGIN CERTIFICATE----- begins one")
    return certificates


@hides_locals
def _pem_key(tls: Tls, key: str, text: str) -> PrivateKeyTypes:
    require("a private key", "live", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    keys = _KEY.findall(text)
    if len(keys) != 1:
        raise tls.fault(key, f"{len(keys) or 'no'} private key{'s' if keys else ''} in it, where one is needed")
    kind, body = keys[0]
    password = tls.key_password
    encrypted = "ENCRYPTED" in kind + body
    if encrypted and password is None:
        raise tls.fault(key, "the private key is encrypted", hint="set ssl.key.password")
    if ":" not in body:  # unless it has OpenSSL's headers, the key may be on one line, as in a properties file
        body = "\n".join(body.split()) + "\n"
    pem = f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n".encode("latin-1", "replace")
    try:
        # The library refuses a password for a key that is not encrypted; Java ignores it.
        return load_pem_private_key(pem, password.utf8() if password and encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        hint = "check ssl.key.password" if encrypted else None
        raise tls.fault(key, "the private key cannot be read", hint=hint) from None


# --- PKCS12 ----------------------------------------------------------------------------------------------------------


def _pkcs12_certificates(tls: Tls, path: str, data: bytes, password: Secret | None) -> list[bytes]:
    require("a PKCS12 store", "live", "cryptography")
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    key = "ssl.truststore.location"
    try:
        store = pkcs12.load_pkcs12(data, password.utf8() if password else None)
    except Exception as error:
        raise _pkcs12_fault(tls, key, path, "ssl.truststore.password", password, error) from None
    # Java trusts only certificates with the attribute "trusted". All are taken here, because a store that OpenSSL made
    # has no such attributes, and a trust store has nothing else in it.
    entries = [bag for bag in (store.cert, *store.additional_certs) if bag is not None]
    return [entry.certificate.public_bytes(Encoding.DER) for entry in entries]


def _pkcs12_identity(tls: Tls, path: str, data: bytes) -> Identity:
    require("a PKCS12 store", "live", "cryptography")
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    key = "ssl.keystore.location"
    password = tls.keystore_password
    try:
        store = pkcs12.load_pkcs12(data, password.utf8() if password else None)
    except Exception as error:
        raise _pkcs12_fault(tls, key, path, "ssl.keystore.password", password, error) from None
    if store.key is None or store.cert is None:
        raise tls.fault(key, f"{path} holds no private key with its certificate", hint="is it a trust store?")
    chain = [store.cert, *store.additional_certs]
    return Identity([entry.certificate.public_bytes(Encoding.DER) for entry in chain], store.key)


def _pkcs12_fault(
    tls: Tls, key: str, path: str, password_key: str, password: Secret | None, error: Exception
) -> UsageError:
    """Return the error for a store that cannot be loaded; a wrong password and damage look much the same."""
    if password is None:
        return tls.fault(key, f"{path} is a PKCS12 store that needs a password", hint=f"set {password_key}")
    if "password" in str(error).lower():
        return tls.fault(key, f"{path}: the password is wrong, or the file is damaged", hint=f"check {password_key}")
    return tls.fault(
        key, f"{path} cannot be read as PKCS12", hint=f"is the file whole? {password_key} was not the problem so far"
    )


# --- JKS -------------------------------------------------------------------------------------------------------------


def _jks(tls: Tls, key: str, path: str, data: bytes, password: Secret | None) -> JksStore:
    try:
        return read_jks(data, password)
    except WrongPasswordError:
        hint = f"check {key.replace('location', 'password')}"
        raise tls.fault(key, f"{path}: the password is wrong, or the file is damaged", hint=hint) from None
    except JksError as error:
        raise tls.fault(key, f"{path}: {error}") from None


def _jks_identity(tls: Tls, path: str, data: bytes) -> Identity:
    require("a private key", "live", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    key = "ssl.keystore.location"
    password = tls.keystore_password
    if password is None:
        raise tls.fault(key, f"{path} is a JKS store that needs a password", hint="set ssl.keystore.password")
    store = _jks(tls, key, path, data, password)
    if not store.keys:
        raise tls.fault(key, f"{path} holds no private key", hint="is it a trust store?")
    entry = store.keys[0]
    try:
        plain = decrypt_key(entry.protected, tls.key_password or password)
        return Identity(entry.chain, load_der_private_key(plain, None))
    except WrongPasswordError:
        raise tls.fault(key, f"{path}: the password of the key is wrong", hint="check ssl.key.password") from None
    except (JksError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = str(error) if isinstance(error, JksError) else "the private key in it cannot be read"
        raise tls.fault(key, f"{path}: {reason}") from None


# --- the format JKS ---------------------------------------------------------------------------------------------------


_MAGIC = 0xFEEDFEED
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""The DER of the algorithm of KeyProtector, object identifier 1.3.6.1.4.1.42.2.17.1.1."""


class JksError(ValueError):
    """The bytes are not a JKS store that can be read; the message says why, mostly with the position."""


class WrongPasswordError(JksError):
    """The digest does not match: the password is wrong, or the store is damaged."""


class KeyEntry(NamedTuple):
    """A private key, still encrypted (``EncryptedPrivateKeyInfo``), and its certificate chain (DER), its own first."""

    alias: str
    protected: bytes
    chain: list[bytes]


class JksStore(NamedTuple):
    """The entries of a store, in the file's order: certificates to trust (DER), and private keys."""

    trusted: list[bytes]
    keys: list[KeyEntry]


def read_jks(data: bytes, password: Secret | None) -> JksStore:
    """Read a JKS store; without a password the digest is not checked, as in Java. Raises JksError."""
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _WHITENER + data[:-_DIGEST], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST:]):
            # Reading the entries raises a more precise JksError if the file is cut or malformed.
            _JksReader(data).store()
            raise WrongPasswordError("the digest at the end does not fit the password")
    return _JksReader(data).store()


def decrypt_key(protected: bytes, password: Secret) -> bytes:
    """Decrypt an ``EncryptedPrivateKeyInfo`` into the private key (PKCS 8, DER). Raises JksError."""
    body = _Der(protected).enter(0x30)
    algorithm = body.take(0x30)
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise JksError("a private key in it is enciphered in a way that JKS does not have")
    sealed = body.take(0x04)
    if len(sealed) < 2 * _DIGEST:
        raise JksError("a private key in it is truncated")
    salt, cipher, check = sealed[:_DIGEST], sealed[_DIGEST:-_DIGEST], sealed[-_DIGEST:]
    secret = _utf16(password)
    stream, block = bytearray(), salt
    while len(stream) < len(cipher):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    plain = bytes(a ^ b for a, b in zip(cipher, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise WrongPasswordError("the key's digest does not fit the password")
    return plain


def _utf16(password: Secret) -> bytes:
    """Return the password as Java hashes it: two bytes for each char."""
    return password.value.encode("utf-16-be", "surrogatepass")


class _JksReader:
    """Reads the entries of a JKS store; each length is checked against the bytes that are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._end = len(data) - _DIGEST

    def store(self) -> JksStore:
        if self._number(4) != _MAGIC:
            raise JksError("not a JKS store")
        version = self._number(4)
        if version not in (1, 2):
            raise JksError(f"JKS version {version} is not known")
        store = JksStore([], [])
        for _ in range(self._number(4)):
            self._entry(store, version)
        if self._at != self._end:
            raise JksError("there are bytes after the last entry")
        return store

    def _entry(self, store: JksStore, version: int) -> None:
        tag = self._number(4)
        alias = self._take(self._number(2)).decode("utf-8", "replace")
        self._take(8)  # when it was made
        if tag == 1:
            protected = self._take(self._number(4))
            store.keys.append(KeyEntry(alias, protected, [self._certificate(version) for _ in range(self._number(4))]))
        elif tag == 2:
            store.trusted.append(self._certificate(version))
        else:
            raise JksError(f"byte {self._at}: an entry of the unknown kind {tag}")

    def _certificate(self, version: int) -> bytes:
        kind = self._take(self._number(2)) if version == 2 else b"X.509"
        if kind != b"X.509":
            raise JksError(f"byte {self._at}: a certificate that is not X.509")
        return self._take(self._number(4))

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> bytes:
        if size > self._end - self._at:
            raise JksError(f"byte {max(self._at, 0)}: the file is truncated or damaged")
        self._at += size
        return self._data[self._at - size : self._at]


class _Der:
    """Reads DER values one after the other: as much of DER as an ``EncryptedPrivateKeyInfo`` needs."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def enter(self, tag: int) -> _Der:
        return _Der(self.take(tag))

    def take(self, tag: int) -> bytes:
        head = self._data[self._at : self._at + 2]
        if len(head) < 2 or head[0] != tag:
            raise JksError("a private key in it is not DER")
        size, start = head[1], self._at + 2
        if size >= 0x80:
            more = size - 0x80
            if not 0 < more <= 4:
                raise JksError("a private key in it is not DER")
            size, start = int.from_bytes(self._data[start : start + more], "big"), start + more
        if size > len(self._data) - start:
            raise JksError("a private key in it is truncated")
        self._at = start + size
        return self._data[start : self._at]
