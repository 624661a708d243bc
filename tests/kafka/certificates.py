"""An authority and certificates for servers and clients: good ones, and ones that a client or server must refuse.

PEM by ``cryptography``; JKS, and PKCS12 to trust, by Java's own ``keytool``: what reads them meets the real thing.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.kafka import jars

PASSWORD = "change it, please"
"""Of every store, and of every key in one."""
_DAY = datetime.timedelta(days=1)


class Pair(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        """The certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The key in PEM (PKCS 8), encrypted with a password if there is one."""
        how: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()


class Authority:
    """Issues certificates."""

    def __init__(self, name: str = "kshell test authority") -> None:
        self.pair = _issue(name, None, hosts=(), client=False, age=_DAY, lifetime=30 * _DAY)

    @property
    def pem(self) -> str:
        """Its certificate in PEM."""
        return self.pair.pem

    def server(self, *hosts: str, expired: bool = False) -> Pair:
        """A server's certificate for names and addresses; without any, for localhost and 127.0.0.1."""
        age, lifetime = (30 * _DAY, 29 * _DAY) if expired else (_DAY, 20 * _DAY)
        names = hosts or ("localhost", "127.0.0.1")
        return _issue("server", self.pair, hosts=names, client=False, age=age, lifetime=lifetime)

    def client(self, name: str = "alice", *, expired: bool = False) -> Pair:
        """A client's certificate; Kafka's principal for it is ``User:CN=<name>``."""
        age, lifetime = (30 * _DAY, 29 * _DAY) if expired else (_DAY, 20 * _DAY)
        return _issue(name, self.pair, hosts=(), client=True, age=age, lifetime=lifetime)


def _issue(
    name: str,
    issuer: Pair | None,
    *,
    hosts: tuple[str, ...],
    client: bool,
    age: datetime.timedelta,
    lifetime: datetime.timedelta,
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime.now(datetime.UTC) - age
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + lifetime)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(above, critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
    return Pair(builder.sign((issuer.key if issuer else key), hashes.SHA256()), key)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def identity_pem(pair: Pair, authority: Authority, path: Path, *, password: str | None = None) -> Path:
    """Writes key, certificate and authority into one PEM file, as ``ssl.keystore.type=PEM`` takes it."""
    path.write_text(pair.key_pem(password) + pair.pem + authority.pem)
    return path


def identity_pkcs12(pair: Pair, authority: Authority, path: Path, *, password: str = PASSWORD) -> Path:
    """Writes a PKCS12 key store."""
    how = BestAvailableEncryption(password.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"me", pair.key, pair.certificate, [authority.pair[0]], how))
    return path


def identity_jks(
    pair: Pair, authority: Authority, path: Path, *, password: str = PASSWORD, key_password: str = PASSWORD
) -> Path:
    """Makes a JKS key store of a PKCS12 one with keytool; JKS keys may have a password of their own."""
    source = identity_pkcs12(pair, authority, path.with_suffix(".source.p12"), password=password)
    keytool(
        "-importkeystore", "-srckeystore", str(source), "-srcstoretype", "PKCS12", "-destkeystore", str(path),
        "-deststoretype", "JKS", "-srcalias", "me", "-destalias", "me",
        srcstorepass=password, deststorepass=password, srckeypass=password, destkeypass=key_password,
    )  # fmt: skip
    source.unlink()
    return path


def trust_store(authority: Authority, path: Path, kind: str, *, password: str = PASSWORD, legacy: bool = False) -> Path:
    """Makes a trust store with keytool; ``kind``: ``JKS`` or ``PKCS12``. ``legacy``: as Java 8 enciphers PKCS12."""
    pem = path.with_suffix(".source.pem")
    pem.write_text(authority.pem)
    flags = ["-J-Dkeystore.pkcs12.legacy"] if legacy else []
    keytool(
        *flags, "-importcert", "-noprompt", "-alias", "authority", "-file", str(pem), "-keystore", str(path),
        "-storetype", kind, storepass=password,
    )  # fmt: skip
    pem.unlink()
    return path


def keytool(*words: str, **passwords: str) -> None:
    """Runs keytool. Passwords go through its environment, not its command line."""
    environment = {f"KSHELL_{name.upper()}": value for name, value in passwords.items()}
    flags = [word for name in passwords for word in (f"-{name}:env", f"KSHELL_{name.upper()}")]
    command = [jars.program("keytool"), "-J-Dsun.jnu.encoding=UTF-8", "-J-Dfile.encoding=UTF-8", *words, *flags]
    done = subprocess.run(
        command, env={**os.environ, "LC_ALL": "C.UTF-8", **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"keytool: {done.stdout}{done.stderr}")
