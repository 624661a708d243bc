"""A client certificate into an ``SSLContext``, which takes it from a file only.

The key is on no disk in the clear: the file lives in memory where the system has that (Linux), else in a file that only
this user may read and that is gone at once; either way the key in it is encrypted under a password made for it.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from kshell.client.stores import Identity
from kshell.client.tls import Tls


def load(context: ssl.SSLContext, tls: Tls, identity: Identity) -> None:
    """Makes the context present the identity. Raises UsageError where key and certificate do not belong together."""
    password = secrets.token_hex(32)
    with _file(_pem(identity, password.encode())) as path:
        try:
            context.load_cert_chain(path, password=password)
        except (ssl.SSLError, ValueError) as error:
            key = "ssl.keystore.location" if tls.keystore_location else "ssl.keystore.key"
            fits = getattr(error, "reason", None) != "KEY_VALUES_MISMATCH"
            why = "OpenSSL cannot use the certificate or the key" if fits else "the key is not the certificate's"
            raise tls.fault(key, why) from None


def _pem(identity: Identity, password: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    return key + b"".join(ssl.DER_cert_to_PEM_cert(one).encode() for one in identity.chain)


@contextmanager
def _file(data: bytes) -> Iterator[str]:
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
