"""Settings from client properties, and bootstrap lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies

from kshell.client.address import addresses
from kshell.client.properties import Properties, read
from kshell.client.settings import KEYS, OWN, Settings, is_known, source_of
from kshell.errors import UsageError
from tests.kafka import comparison, jars

_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'
_SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="hunter2";'
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


class TestSettings:
    def test_defaults_are_those_of_java(self) -> None:
        made = Settings.of({})
        assert made.security_protocol == "PLAINTEXT"
        assert (made.tls, made.sasl, made.warnings, made.dialects, made.excluded) == (None, None, [], frozenset(), {})
        assert (made.client_id, made.request_timeout, made.connect_timeout, made.api_timeout) == ("kshell", 30, 10, 60)
        assert (made.reconnect_backoff, made.reconnect_backoff_max) == (0.05, 1)
        assert (made.retry_backoff, made.retry_backoff_max) == (0.1, 1)
        assert made.cluster_id is made.fallback_release is None
        assert made.allow_plaintext_password is False

    def test_what_is_given(self) -> None:
        made = Settings.of(
            {
                "security.protocol": "sasl_ssl", "sasl.mechanism": "scram-sha-512", "sasl.jaas.config": _SCRAM,
                "client.id": "me", "request.timeout.ms": "1500", "cluster.id": "abc",
                "dialect": "kip-885, kip-35-draft", "broker.version.fallback": "0.10.0",
                "api.versions.exclude": "Fetch:18,DescribeQuorum:1-2,Fetch:3", "sasl.plain.allow.plaintext": "true",
            }
        )  # fmt: skip
        assert made.security_protocol == "SASL_SSL"
        assert made.sasl is not None
        assert made.sasl.mechanism == "SCRAM-SHA-512"
        assert made.sasl.password is not None
        assert made.sasl.password.value == "hunter2"
        assert made.tls is not None
        assert made.tls.checks_name
        assert made.request_timeout == 1.5
        assert made.excluded == {"Fetch": frozenset({3, 18}), "DescribeQuorum": frozenset({1, 2})}
        assert made.dialects == {"kip-885", "kip-35-draft"}
        assert (made.cluster_id, made.fallback_release, made.client_id) == ("abc", "0.10.0", "me")
        assert made.allow_plaintext_password
        assert "hunter2" not in repr(made)

    def test_secrets_stay_out_of_reprs(self) -> None:
        names = ("ssl.truststore.password", "ssl.keystore.password", "ssl.key.password", "ssl.keystore.key")
        made = Settings.of({"security.protocol": "SSL"} | dict.fromkeys(names, "hunter2"))
        assert "hunter2" not in repr(made)
        assert made.tls is not None
        assert made.tls.key_password is not None
        assert made.tls.key_password.value == "hunter2"

    @pytest.mark.parametrize(
        ("properties", "reason"),
        [
            ({"security.protocol": "TLS"}, "security.protocol: is not one"),
            ({"dialect": "kip-1"}, "dialect: there is no kip-1"),
            ({"api.versions.exclude": "Fetch"}, "Fetch is not NAME:VERSION"),
            ({"api.versions.exclude": "Fetch:3-1"}, "Fetch:3-1 is not NAME:VERSION"),
            ({"api.versions.exclude": "Fetch:99999"}, "Fetch:99999 is not"),
            ({"request.timeout.ms": "0"}, "request.timeout.ms: must be more than 0"),
            ({"security.protocol": "SASL_SSL"}, "sasl.mechanism: GSSAPI"),
            ({"security.protocol": "SASL_SSL", "sasl.mechanism": "DIGEST-MD5"}, "DIGEST-MD5 is not supported"),
            ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is not set"),
            (
                {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": _PLAIN[:-1]},
                "sasl.jaas.config: character 101: the entry does not end with a semicolon",
            ),
            (
                {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": _PLAIN},
                "needs another login module",
            ),
            (
                {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": _PLAIN * 2},
                "2 login modules",
            ),
            (
                {
                    "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
                    "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
                },
                "Kerberos",
            ),
            (
                {
                    "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
                    "sasl.jaas.config": "x.PlainLoginModule required username=alice;",
                },
                "the option password is missing",
            ),
            ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv2"}, "names no TLS version"),
            ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, "neither https nor"),
        ],
    )  # fmt: skip
    def test_faults(self, properties: dict[str, str], reason: str) -> None:
        with pytest.raises(UsageError) as raised:
            Settings.of(Properties(properties, dict.fromkeys(properties, "c.properties: line 7")))
        assert reason in raised.value.message
        assert "hunter2" not in raised.value.message + str(raised.value.hint)
        if "is not set" not in reason:
            assert raised.value.message.startswith(("c.properties: line 7: ", "sasl.mechanism: "))

    def test_a_jaas_file_is_not_read_and_the_error_says_so(self) -> None:
        with pytest.raises(UsageError) as raised:
            Settings.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"})
        assert "java.security.auth.login.config" in str(raised.value.hint)


class TestOAuth:
    def of(self, jaas: str = _OAUTH + ";", **keys: str) -> Settings:
        properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": jaas}
        return Settings.of(properties | {f"sasl.oauthbearer.{k.replace('_', '.')}": v for k, v in keys.items()})

    def test_credentials_from_jaas_and_from_keys_of_their_own(self) -> None:
        jaas = f'{_OAUTH} clientId="me" clientSecret="hunter2" scope="a b" extension_tenant="t";'
        made = self.of(jaas, token_endpoint_url="https://example.com/token").sasl
        assert made is not None
        assert made.oauth is not None
        assert (made.oauth.client_id, made.oauth.scope) == ("me", "a b")
        assert made.oauth.client_secret is not None
        assert made.oauth.client_secret.value == "hunter2"
        assert list(made.oauth.extensions) == ["tenant"]
        assert "hunter2" not in repr(made)
        own = self.of(
            token_endpoint_url="https://example.com/token",
            client_credentials_client_id="you", client_credentials_client_secret="hunter3", scope="c",
        ).sasl  # fmt: skip
        assert own is not None
        assert own.oauth is not None
        assert (own.oauth.client_id, own.oauth.scope) == ("you", "c")

    @pytest.mark.parametrize(
        ("keys", "reason"),
        [
            ({}, "nothing says where the token comes from"),
            ({"token_file": "/t", "token_command": "x"}, "are two sources of a token"),
            ({"token_endpoint_url": "http://example.com/token"}, "is no https or file URL"),
            ({"token_endpoint_url": "https://example.com/token"}, "needs a client id"),
            ({"token_file": "/t", "jwt_retriever_class": "org.x.JwtBearerJwtRetriever"}, "JWT bearer grant"),
        ],
    )
    def test_faults(self, keys: dict[str, str], reason: str) -> None:
        with pytest.raises(UsageError, match=reason):
            self.of(**keys)

    def test_a_token_over_plaintext_is_warned_about_unless_it_is_no_secret(self) -> None:
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        (warning,) = Settings.of(given | {"sasl.oauthbearer.token.file": "/t"}).warnings
        assert "can take the token" in warning
        jaas = f'{_OAUTH} unsecuredLoginStringClaim_sub="me";'
        assert Settings.of(given | {"sasl.jaas.config": jaas}).warnings == []


class TestWarnings:
    def test_unknown_keys_with_their_place_and_without_values(self) -> None:
        given = Properties({"sasl.jaas.confg": "hunter2", "group.id": "x"}, {"sasl.jaas.confg": "c: line 3"})
        assert Settings.of(given).warnings == ["c: line 3: sasl.jaas.confg is not a client property that is known"]

    def test_lines_of_a_key_that_is_not_continued_are_not_shown(self, tmp_path: Path) -> None:
        """Without backslashes, each line of a PEM key is a key of its own; so is a password below its key."""
        path = tmp_path / "client.properties"
        pem = (
            "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEG\nhRANCAAQ/+8aB2c9dEf==\n-----END PRIVATE KEY-----\n"
        )
        path.write_text(f"my.key=1\nssl.keystore.key={pem}my.password=\nhunter2\nacks=all\n")
        properties = read(str(path))
        assert Settings.of(properties).warnings == [
            f"{path}: line 1: my.key is not a client property that is known",
            f"{path}: line 3 and 4 more: not a client property that is known; the text is not shown, for it may be a"
            " secret (where a value goes on in the next line, its line has to end with a backslash)",
        ]
        assert repr(properties) == "Properties(my.key, ssl.keystore.key)"

    def test_another_spelling_of_a_name_is_shown(self, tmp_path: Path) -> None:
        """It is no secret, and kshell goes on without the property: with ``Security.Protocol``, in plaintext."""
        path = tmp_path / "client.properties"
        path.write_text("hunter2\nSecurity.Protocol=SSL\nclient_id=x\nssl-key-password=\n")
        properties = read(str(path))
        assert Settings.of(properties).warnings[:3] == [
            f"{path}: line 2: Security.Protocol is not a client property that is known",
            f"{path}: line 3: client_id is not a client property that is known",
            f"{path}: line 4: ssl-key-password is not a client property that is known",
        ]
        assert "hunter2" not in str(Settings.of(properties).warnings)

    def test_no_hostname_check_is_loud(self) -> None:
        made = Settings.of({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
        assert made.tls is not None
        assert not made.tls.checks_name
        assert "NOT checked" in made.warnings[0]

    def test_what_openssl_cannot_do(self) -> None:
        given = {
            "security.protocol": "SSL",
            "ssl.enabled.protocols": "TLSv1.1,TLSv1.3,SSLv3",
            "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_KRB5_WITH_RC4_128_MD5",
            "ssl.engine.factory.class": "com.example.Engine",
        }
        said = "\n".join(Settings.of(given).warnings)
        assert "SSLv3 cannot be offered" in said
        assert "every version between TLSv1.1 and TLSv1.3" in said
        assert "TLS_KRB5_WITH_RC4_128_MD5 cannot be offered" in said
        assert "ssl.engine.factory.class" in said

    def test_every_key_of_ours_is_known(self) -> None:
        assert all(is_known(key) for key in KEYS | OWN)
        assert is_known("config.providers.e.class")
        assert not is_known("bootstrap.server")

    @pytest.mark.live
    def test_every_key_of_javas_clients_is_known(self) -> None:
        """Kafka's own ``configNames()`` of the newest release."""
        jars.require()
        assert list(comparison.client_keys(comparison.declared(), jars.LATEST)) == []


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a:1", [("a", 1)]),
            (" a:1 ,b:65535,, a:1,", [("a", 1), ("b", 65535)]),
            ("[::1]:9093,127.0.0.1:9", [("::1", 9093), ("127.0.0.1", 9)]),
            ("controller_1.example.:09", [("controller_1.example.", 9)]),
        ],
    )
    def test_lists(self, text: str, expected: list[tuple[str, int]]) -> None:
        assert addresses(text) == expected

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "empty"),
            (" , ", "empty"),
            ("a", "character 2: the port is missing"),
            ("a:1,b", "character 6: the port is missing"),
            ("a:1, b:", "character 8: the port is missing"),
            ("a:x", "character 3: the port is not a number"),
            ("a:0", "character 3: the port is not a number"),
            ("a:65536", "character 3: the port is not a number"),
            ("a:99999999999999999999", "character 3: the port is not a number"),
            ("a:٣", "character 3: the port is not a number"),
            (":1", "character 1: the host is missing"),
            ("::1:9093", "character 1: an IPv6 address must be in brackets"),
            ("[::1", "character 1: the bracket is not closed"),
            ("[::1]", "character 6: the port is missing"),
            ("[a]:1", "character 1: brackets are for IPv6"),
            ("SSL://a:1", "character 1: SSL:// has no place here"),
            ("a b:1", "character 1: is not a host name"),
        ],
    )
    def test_faults_name_the_character(self, text: str, reason: str) -> None:
        with pytest.raises(UsageError) as raised:
            addresses(text)
        assert reason in raised.value.message

    @given(strategies.text(alphabet="ab:[]1.,/ \t٣"))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            found = addresses(text)
        except UsageError:
            return
        assert found == list(dict.fromkeys(found))
        assert all(host and 0 < port < 65536 for host, port in found)


class TestSourceOf:
    def test_one_or_none(self) -> None:
        assert source_of(Settings.of({})) is None
        assert source_of(Settings.of({"bootstrap.controllers": "a:1"})) == ("bootstrap_controllers", "a:1")
        assert source_of(Settings.of({"bootstrap.servers": "a:1"})) == ("bootstrap_servers", "a:1")

    def test_both_are_an_error_as_kip_919_has_it(self) -> None:
        with pytest.raises(UsageError, match=r"bootstrap\.controllers and bootstrap\.servers"):
            source_of(Settings.of({"bootstrap.controllers": "a:1", "bootstrap.servers": "b:1"}))
