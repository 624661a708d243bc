"""Key and trust stores: JKS and PKCS12 made by keytool, PEM; wrong passwords, cut files, hostile lengths."""

from __future__ import annotations

import contextlib
import hashlib
import os
import ssl
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from hypothesis import given, strategies

from kshell.client import key_stores
from kshell.client.properties import Properties, Secret
from kshell.client.tls import Tls, _present
from kshell.errors import UsageError
from tests.kafka import certificates, jars
from tests.kafka.certificates import PASSWORD, Authority

AUTHORITY = Authority()
CLIENT = AUTHORITY.client()
TRUSTED = [AUTHORITY.pair.certificate.public_bytes(Encoding.DER)]
CHAIN = [CLIENT.certificate.public_bytes(Encoding.DER), *TRUSTED]


def tls(**keys: str | Path) -> Tls:
    """``truststore_location`` -> ``ssl.truststore.location``, each set at line 7 of a file."""
    given = {f"ssl.{key.replace('_', '.')}": str(value) for key, value in keys.items()}
    return Tls.of(Properties(given, dict.fromkeys(given, "c.properties: line 7")), [])


def is_the_client(found: key_stores.Identity | None) -> bool:
    assert found is not None
    assert found.chain == CHAIN
    return found.key.public_key() == CLIENT.key.public_key()


def jks_of(*entries: bytes, password: str = PASSWORD, count: int | None = None) -> bytes:
    """A store of bytes, with the right digest."""
    body = struct.pack(">III", 0xFEEDFEED, 2, len(entries) if count is None else count) + b"".join(entries)
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def entry_of(certificate: bytes, alias: bytes = b"a", kind: bytes = b"X.509") -> bytes:
    head = struct.pack(">IH", 2, len(alias)) + alias + bytes(8) + struct.pack(">H", len(kind)) + kind
    return head + struct.pack(">I", len(certificate)) + certificate


@pytest.mark.live
class TestKeytool:
    @pytest.mark.parametrize("legacy", [False, True])
    @pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
    def test_trust_stores(self, tmp_path: Path, kind: str, legacy: bool) -> None:
        jars.require()
        path = certificates.trust_store(AUTHORITY, tmp_path / "trust", kind, legacy=legacy)
        # The type says nothing: Java reads either under the other's name.
        assert key_stores.trusted(tls(truststore_location=path, truststore_password=PASSWORD)) == TRUSTED
        with pytest.raises(UsageError, match="the password is wrong") as raised:
            key_stores.trusted(tls(truststore_location=path, truststore_password="hunter2"))
        assert raised.value.message.startswith(f"c.properties: line 7: ssl.truststore.location: {path}")
        assert raised.value.hint == "check ssl.truststore.password"
        assert "hunter2" not in raised.value.message
        if kind == "JKS":  # its certificates are readable without one
            assert key_stores.trusted(tls(truststore_location=path)) == TRUSTED
        else:
            with pytest.raises(UsageError, match="needs a password"):
                key_stores.trusted(tls(truststore_location=path))
        with pytest.raises(UsageError, match="holds no private key"):
            key_stores.identity(tls(keystore_location=path, keystore_password=PASSWORD))

    def test_a_jks_key_store(self, tmp_path: Path) -> None:
        jars.require()
        path = certificates.identity_jks(CLIENT, AUTHORITY, tmp_path / "k.jks", key_password="another")
        given: dict[str, str | Path] = {"keystore_location": path, "keystore_password": PASSWORD}
        assert is_the_client(key_stores.identity(tls(**given, key_password="another")))
        with pytest.raises(UsageError, match="the password of the key is wrong") as raised:
            key_stores.identity(tls(**given))
        assert raised.value.hint == "check ssl.key.password"
        with pytest.raises(UsageError, match="the password is wrong") as raised:
            key_stores.identity(tls(keystore_location=path, keystore_password="hunter2"))
        assert raised.value.hint == "check ssl.keystore.password"
        with pytest.raises(UsageError, match="needs a password"):
            key_stores.identity(tls(keystore_location=path))

    def test_every_cut_of_a_jks_store_is_said_to_be_one(self, tmp_path: Path) -> None:
        jars.require()
        whole = certificates.identity_jks(CLIENT, AUTHORITY, tmp_path / "k.jks").read_bytes()
        assert key_stores.read_jks(whole, Secret(PASSWORD)).keys
        for size in range(0, len(whole), 7):
            with pytest.raises(key_stores.JksError) as raised:
                key_stores.read_jks(whole[:size], Secret(PASSWORD))
            assert not isinstance(raised.value, key_stores.WrongPasswordError) or size > len(whole) - 20

    def test_every_flipped_byte_of_a_jks_store_is_seen(self, tmp_path: Path) -> None:
        jars.require()
        whole = bytearray(certificates.trust_store(AUTHORITY, tmp_path / "t.jks", "JKS").read_bytes())
        for at in range(0, len(whole), 5):
            whole[at] ^= 0x10
            with pytest.raises(key_stores.JksError):
                key_stores.read_jks(bytes(whole), Secret(PASSWORD))
            whole[at] ^= 0x10


class TestPkcs12:
    def test_a_key_store(self, tmp_path: Path) -> None:
        path = certificates.identity_pkcs12(CLIENT, AUTHORITY, tmp_path / "k")
        assert is_the_client(key_stores.identity(tls(keystore_location=path, keystore_password=PASSWORD)))
        with pytest.raises(UsageError, match="the password is wrong"):
            key_stores.identity(tls(keystore_location=path, keystore_password="hunter2"))

    def test_every_cut_is_refused(self, tmp_path: Path) -> None:
        path = certificates.identity_pkcs12(CLIENT, AUTHORITY, tmp_path / "k")
        whole = path.read_bytes()
        for size in range(0, len(whole), 41):
            path.write_bytes(whole[:size])
            with pytest.raises(UsageError) as raised:
                key_stores.identity(tls(keystore_location=path, keystore_password=PASSWORD))
            assert str(path) in raised.value.message


class TestJks:
    def test_a_password_beyond_ascii(self) -> None:
        assert key_stores.read_jks(jks_of(entry_of(b"x"), password="pässwörd😀"), Secret("pässwörd😀")).trusted == [
            b"x"
        ]

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (jks_of(count=0xFFFFFFFF), "byte 12: the file is truncated"),
            (jks_of(struct.pack(">IH", 2, 0xFFFF)), "byte 18: the file is truncated"),
            (jks_of(struct.pack(">IH", 1, 0) + bytes(8) + b"\xff\xff\xff\xff"), "byte 30: the file is truncated"),
            (jks_of(struct.pack(">IH", 3, 0) + bytes(20)), "unknown kind 3"),
            (jks_of(entry_of(b"x", kind=b"PGP")), "not X.509"),
            (jks_of(entry_of(b"x"), count=2), "the file is truncated"),
            (jks_of(entry_of(b"x"), b"more", count=1), "bytes after the last entry"),
            (b"", "byte 0: the file is truncated"),
            (b"\xfe\xed\xfe\xed", "byte 0: the file is truncated"),
        ],
    )
    def test_hostile_lengths_are_refused_at_once(self, data: bytes, reason: str) -> None:
        with pytest.raises(key_stores.JksError, match=reason):
            key_stores.read_jks(data, None)
        with pytest.raises(key_stores.JksError, match=reason):
            key_stores.read_jks(data, Secret(PASSWORD))

    @given(strategies.binary())
    def test_any_protected_key_is_read_or_refused(self, data: bytes) -> None:
        with pytest.raises(key_stores.JksError):
            key_stores.decrypt_key(data, Secret("x"))

    @given(strategies.binary())
    def test_any_store_is_read_or_refused(self, data: bytes) -> None:
        with contextlib.suppress(key_stores.JksError):
            key_stores.read_jks(b"\xfe\xed\xfe\xed\0\0\0\x02" + data, None)


class TestPem:
    def test_a_trust_store_file_and_inline(self, tmp_path: Path) -> None:
        path = tmp_path / "ca.pem"
        path.write_text("Bag Attributes\n  x: y\n" + AUTHORITY.pem + "\r\n" + CLIENT.pem.replace("\n", "\r\n"))
        assert key_stores.trusted(tls(truststore_location=path)) == [*TRUSTED, CHAIN[0]]
        # In one line, as a properties file without continuations holds it.
        assert key_stores.trusted(tls(truststore_certificates=AUTHORITY.pem.replace("\n", " "))) == TRUSTED

    @pytest.mark.parametrize("password", [None, "hunter2"])
    def test_a_key_store_file_and_inline(self, tmp_path: Path, password: str | None) -> None:
        path = certificates.identity_pem(CLIENT, AUTHORITY, tmp_path / "k.pem", password=password)
        more = {"key_password": password} if password else {}
        assert is_the_client(key_stores.identity(tls(keystore_location=path, **more)))
        inline = {
            "keystore_key": CLIENT.key_pem(password),
            "keystore_certificate_chain": CLIENT.pem + AUTHORITY.pem,
        }
        assert is_the_client(key_stores.identity(tls(**inline, **more)))

    def test_a_key_in_one_line(self) -> None:
        """As a properties file without continuations holds it."""
        inline = {"keystore_key": CLIENT.key_pem("hunter2"), "keystore_certificate_chain": CLIENT.pem + AUTHORITY.pem}
        one_line = {name: text.replace("\n", " ") for name, text in inline.items()}
        assert is_the_client(key_stores.identity(tls(**one_line, key_password="hunter2")))

    def test_openssls_own_encryption(self) -> None:
        """``-----BEGIN EC PRIVATE KEY-----`` with Proc-Type and DEK-Info, as ``openssl ec -aes256`` writes it."""
        how = BestAvailableEncryption(b"hunter2")
        pem = CLIENT.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, how).decode()
        assert "Proc-Type" in pem
        given = {"keystore_key": pem, "keystore_certificate_chain": CLIENT.pem + AUTHORITY.pem}
        assert is_the_client(key_stores.identity(tls(**given, key_password="hunter2")))

    def test_faults(self, tmp_path: Path) -> None:
        path = certificates.identity_pem(CLIENT, AUTHORITY, tmp_path / "k.pem", password="hunter2")
        with pytest.raises(UsageError, match="the private key is encrypted"):
            key_stores.identity(tls(keystore_location=path))
        with pytest.raises(UsageError, match="the private key cannot be read") as raised:
            key_stores.identity(tls(keystore_location=path, key_password="hunter3"))
        assert raised.value.hint == "check ssl.key.password"
        assert "hunter" not in raised.value.message
        (tmp_path / "ca.pem").write_text(AUTHORITY.pem)
        with pytest.raises(UsageError, match="no private key in it"):
            key_stores.identity(tls(keystore_location=tmp_path / "ca.pem"))
        with pytest.raises(UsageError, match="no PEM certificate in it"):
            key_stores.identity(tls(keystore_certificate_chain="x", keystore_key=CLIENT.key_pem()))
        with pytest.raises(UsageError, match="one is missing"):
            key_stores.identity(tls(keystore_key=CLIENT.key_pem()))
        with pytest.raises(UsageError, match="two key stores"):
            key_stores.identity(tls(keystore_key=CLIENT.key_pem(), keystore_location=path))
        with pytest.raises(UsageError, match="two trust stores"):
            key_stores.trusted(tls(truststore_certificates=AUTHORITY.pem, truststore_location=path))


class TestFiles:
    def test_nothing_given(self) -> None:
        assert key_stores.trusted(tls()) is None
        assert key_stores.identity(tls()) is None

    def test_a_password_without_a_store(self) -> None:
        with pytest.raises(UsageError, match=r"ssl\.truststore\.location is not"):
            key_stores.trusted(tls(truststore_password="x"))
        with pytest.raises(UsageError, match=r"ssl\.keystore\.location is not"):
            key_stores.identity(tls(keystore_password="x"))

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (None, "No such file"),
            (b"", "neither JKS nor PKCS12 nor PEM"),
            (b"hello", "neither JKS nor PKCS12 nor PEM"),
            (b"\xce\xce\xce\xce", "JCEKS"),
            (b"\x30\x03abc", "cannot be read as PKCS12"),
            (jks_of(), "holds no certificate"),
            (b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", "is not valid base64"),
        ],
    )
    def test_what_is_no_store(self, tmp_path: Path, data: bytes | None, reason: str) -> None:
        path = tmp_path / "trust"
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(UsageError, match=reason) as raised:
            key_stores.trusted(tls(truststore_location=path, truststore_password=PASSWORD))
        assert raised.value.message.startswith("c.properties: line 7: ssl.truststore.location: ")


class TestIdentity:
    @pytest.mark.parametrize("has_memory_files", [True, False])
    def test_the_key_reaches_openssl_and_no_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_memory_files: bool
    ) -> None:
        """Whatever is written anywhere is encrypted, 0600, and gone afterwards."""
        seen = []

        class Watching(ssl.SSLContext):
            def load_cert_chain(self, certfile: object, keyfile: object = None, password: object = None) -> None:
                text = Path(str(certfile)).read_text()
                seen.append((text, os.stat(str(certfile)).st_mode & 0o077))
                super().load_cert_chain(str(certfile), None, str(password))

        if not has_memory_files:
            monkeypatch.delattr(os, "memfd_create", raising=False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        found = key_stores.identity(tls(keystore_certificate_chain=CLIENT.pem, keystore_key=CLIENT.key_pem()))
        assert found is not None
        _present(Watching(ssl.PROTOCOL_TLS_CLIENT), tls(), found)
        ((text, open_to_others),) = seen
        assert "BEGIN ENCRYPTED PRIVATE KEY" in text
        assert "BEGIN PRIVATE KEY" not in text
        assert has_memory_files or not open_to_others
        assert list(tmp_path.iterdir()) == []

    def test_a_key_of_another_certificate(self) -> None:
        other = AUTHORITY.client("other")
        found = key_stores.identity(tls(keystore_certificate_chain=other.pem, keystore_key=CLIENT.key_pem()))
        assert found is not None
        with pytest.raises(UsageError, match="the key is not the certificate's"):
            _present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), tls(), found)
