"""Java's own key store format, JKS (``sun.security.provider.JavaKeyStore``): trusted certificates and private keys.

The layout: magic, version, count; then each entry: its tag (1 a private key with its chain, 2 a trusted certificate),
alias, creation time, and what it holds; at the end a SHA-1 digest over the password, a salt that is always the same,
and everything before. Private keys are enciphered by ``sun.security.provider.KeyProtector``. Both are weak, and Java's.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from kshell.client.secret import Secret

_MAGIC = 0xFEEDFEED
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1, in DER."""


class JksError(ValueError):
    """The bytes are not a JKS store; the message says where they end to be one."""


class WrongPasswordError(JksError):
    """The digest does not fit: another password, or damage."""


class KeyEntry(NamedTuple):
    """A private key, still enciphered (``EncryptedPrivateKeyInfo``), and its certificates (DER), its own first."""

    alias: str
    protected: bytes
    chain: list[bytes]


class Store(NamedTuple):
    """What a store holds: certificates to trust (DER) and keys, in the file's order."""

    trusted: list[bytes]
    keys: list[KeyEntry]


def read(data: bytes, password: Secret | None) -> Store:
    """Reads a store; without a password the digest is not checked, as in Java. Raises JksError."""
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _WHITENER + data[:-_DIGEST], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST:]):
            # A cut file is no matter of passwords: its own lengths tell.
            _Reader(data).store()
            raise WrongPasswordError("the digest at the end does not fit the password")
    return _Reader(data).store()


def unprotect(protected: bytes, password: Secret) -> bytes:
    """The private key (PKCS 8, DER) in an ``EncryptedPrivateKeyInfo``. Raises JksError."""
    body = _Der(protected).enter(0x30)
    algorithm = body.take(0x30)
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise JksError("a private key in it is enciphered in a way that JKS does not have")
    sealed = body.take(0x04)
    if len(sealed) < 2 * _DIGEST:
        raise JksError("a private key in it is cut")
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
    """Java hashes the chars of a password, two bytes each."""
    return password.value.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Reads what a store holds; every length is held against what is left before anything is taken."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._end = len(data) - _DIGEST

    def store(self) -> Store:
        if self._number(4) != _MAGIC:
            raise JksError("not a JKS store")
        version = self._number(4)
        if version not in (1, 2):
            raise JksError(f"JKS version {version} is not known")
        made = Store([], [])
        for _ in range(self._number(4)):
            self._entry(made, version)
        if self._at != self._end:
            raise JksError("there are bytes after the last entry")
        return made

    def _entry(self, made: Store, version: int) -> None:
        tag = self._number(4)
        alias = self._take(self._number(2)).decode("utf-8", "replace")
        self._take(8)  # when it was made
        if tag == 1:
            protected = self._take(self._number(4))
            made.keys.append(KeyEntry(alias, protected, [self._certificate(version) for _ in range(self._number(4))]))
        elif tag == 2:
            made.trusted.append(self._certificate(version))
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
            raise JksError(f"byte {max(self._at, 0)}: the file is cut, or damaged")
        self._at += size
        return self._data[self._at - size : self._at]


class _Der:
    """As much of DER as an ``EncryptedPrivateKeyInfo`` has."""

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
            raise JksError("a private key in it is cut")
        self._at = start + size
        return self._data[start : self._at]
