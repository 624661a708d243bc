"""What client properties say about SASL: the mechanism, and whom to be (JAAS or, for OAUTHBEARER, other keys)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client import jaas
from kshell.client.properties import Properties
from kshell.client.secret import Secret
from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.client.tls import Tls

_JAAS = "sasl.jaas.config"
_MODULES = {
    "PLAIN": ("PlainLoginModule", "ScramLoginModule"),
    "SCRAM-SHA-256": ("ScramLoginModule",),
    "SCRAM-SHA-512": ("ScramLoginModule",),
    "OAUTHBEARER": ("OAuthBearerLoginModule",),
}
"""The login modules that Kafka's mechanism takes its name and password from (PLAIN is Java's own: from either)."""
_EXAMPLES = {
    "PLAIN": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
    "SCRAM-SHA-256": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";',
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
}
_EXAMPLES["SCRAM-SHA-512"] = _EXAMPLES["SCRAM-SHA-256"]


class Kept:
    """A token that may be presented again; ``until`` is by the monotonic clock, in seconds."""

    def __init__(self) -> None:
        self.token: Secret | None = None
        self.until = 0.0


class OAuth(NamedTuple):
    """Where an OAUTHBEARER token comes from: a URL (https, file), a file, a command, or claims for an unsecured one."""

    endpoint: str | None
    client_id: str | None
    client_secret: Secret | None
    scope: str | None
    encode_header: bool
    connect_timeout: float
    read_timeout: float
    token_file: str | None
    token_command: str | None
    claims: Mapping[str, Secret]
    """``unsecuredLogin…`` options, without that prefix."""
    extensions: Mapping[str, Secret]
    kept: Kept
    tls: Tls
    """For the token endpoint: the ``ssl.*`` options of the JAAS entry, as in Java, or else those of the client."""

    @property
    def is_secret(self) -> bool:
        """Whether the token proves something; an unsecured one does not."""
        return not self.claims


class Sasl(NamedTuple):
    """The mechanism's name and who the client is."""

    mechanism: str
    username: Secret | None = None
    password: Secret | None = None
    token_auth: bool = False
    """SCRAM with a delegation token: its id and HMAC stand for name and password (KIP-48)."""
    oauth: OAuth | None = None

    @classmethod
    def of(cls, properties: Properties) -> Sasl:
        """From ``sasl.mechanism`` (Kafka's default is GSSAPI), ``sasl.jaas.config``, ``sasl.oauthbearer.*``.

        Raises UsageError.
        """
        name = (properties.filled("sasl.mechanism") or "GSSAPI").upper()
        if name == "GSSAPI":
            raise properties.fault(
                "sasl.mechanism",
                "GSSAPI (Kerberos), which is also the default, is not supported",
                hint=f"kshell speaks {', '.join(_MODULES)}: ask for a listener that offers one of them",
            )
        if name not in _MODULES:
            raise properties.fault(
                "sasl.mechanism", f"{name} is not supported", hint=f"kshell speaks {', '.join(_MODULES)}"
            )
        options = _login_options(properties, name)
        if name == "OAUTHBEARER":
            return cls(name, oauth=_oauth(properties, options))
        username, password = options.get("username"), options.get("password")
        if username is None or password is None or not username.value or not password.value:
            missing = "username" if username is None or not username.value else "password"
            raise properties.fault(_JAAS, f"the option {missing} is missing", hint=_EXAMPLES[name])
        token_auth = "tokenauth" in options and options["tokenauth"].value.lower() == "true"
        return cls(name, username, password, token_auth=token_auth)


def _login_options(properties: Properties, mechanism: str) -> Mapping[str, Secret]:
    key = _JAAS
    if not properties.filled(key):
        if mechanism == "OAUTHBEARER" and any(properties.filled(one) for one in _TOKEN_KEYS):
            return {}
        raise UsageError(
            f"{_JAAS} is not set, and sasl.mechanism={mechanism} needs it",
            hint=f"a JAAS file (java.security.auth.login.config) is not read; set {_JAAS}={_EXAMPLES[mechanism]}",
        )
    try:
        entries = jaas.parse(properties[key])
    except jaas.JaasError as error:
        raise properties.fault(key, str(error), hint=f"for example {_EXAMPLES[mechanism]}") from None
    if len(entries) > 1:
        raise properties.fault(key, f"{len(entries)} login modules, where Kafka takes one")
    module = entries[0].short_name
    if module == "Krb5LoginModule":
        raise properties.fault(
            key, "Krb5LoginModule: GSSAPI (Kerberos) is not supported", hint=f"kshell speaks {', '.join(_MODULES)}"
        )
    if module not in _MODULES[mechanism]:
        raise properties.fault(
            key, f"sasl.mechanism={mechanism} needs another login module", hint=f"for example {_EXAMPLES[mechanism]}"
        )
    return entries[0].options


_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_FILE, _COMMAND = "sasl.oauthbearer.token.file", "sasl.oauthbearer.token.command"
_TOKEN_KEYS = (_ENDPOINT, _FILE, _COMMAND)
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
_UNSECURED, _EXTENSION = "unsecuredLogin", "extension_"


def _oauth(properties: Properties, options: Mapping[str, Secret]) -> OAuth:
    claims = {name[len(_UNSECURED) :]: value for name, value in options.items() if name.startswith(_UNSECURED)}
    extensions = {name[len(_EXTENSION) :]: value for name, value in options.items() if name.startswith(_EXTENSION)}
    extensions |= {name[10:]: value for name, value in claims.items() if name.lower().startswith(_EXTENSION)}
    claims = {name: value for name, value in claims.items() if not name.lower().startswith(_EXTENSION)}
    given = [key for key in _TOKEN_KEYS if properties.filled(key)] + (["unsecuredLogin… in JAAS"] if claims else [])
    if len(given) != 1:
        said = (
            f"{' and '.join(given)} are two sources of a token" if given else "nothing says where the token comes from"
        )
        raise UsageError(f"OAUTHBEARER: {said}", hint=f"set one of {', '.join(_TOKEN_KEYS)}")
    retriever = properties.filled("sasl.oauthbearer.jwt.retriever.class") or ""
    if retriever.endswith("JwtBearerJwtRetriever"):
        raise properties.fault(
            "sasl.oauthbearer.jwt.retriever.class",
            "the JWT bearer grant is not supported",
            hint=f"use client credentials, or have another program fetch the token ({_COMMAND})",
        )
    # What is named client id, secret and scope moved from JAAS to properties of their own in 4.1 (KIP-1139).
    made = OAuth(
        endpoint=properties.filled(_ENDPOINT),
        client_id=properties.filled(_CREDENTIALS + "id") or _text(options, "clientId"),
        client_secret=properties.secret(_CREDENTIALS + "secret") or options.get("clientSecret"),
        scope=properties.filled("sasl.oauthbearer.scope") or _text(options, "scope"),
        encode_header=properties.switch("sasl.oauthbearer.header.urlencode"),
        connect_timeout=properties.seconds("sasl.login.connect.timeout.ms", 10),
        read_timeout=properties.seconds("sasl.login.read.timeout.ms", 10),
        token_file=properties.filled(_FILE),
        token_command=properties.filled(_COMMAND),
        claims=claims,
        extensions=extensions,
        kept=Kept(),
        tls=_endpoint_tls(properties, options),
    )
    _check_endpoint(properties, made)
    return made


def _text(options: Mapping[str, Secret], name: str) -> str | None:
    return options[name].value.strip() or None if name in options else None


def _endpoint_tls(properties: Properties, options: Mapping[str, Secret]) -> Tls:
    from kshell.client.tls import Tls

    own = {name: value.value for name, value in options.items() if name.startswith("ssl.")}
    made = Tls.of(Properties(own, dict.fromkeys(own, _JAAS)) if own else properties, [])
    # A token endpoint is a web server: its name is checked whatever is said about Kafka's.
    return made._replace(checks_name=True)


def _check_endpoint(properties: Properties, oauth: OAuth) -> None:
    if oauth.endpoint is None or oauth.endpoint.lower().startswith("file:"):
        return
    if not oauth.endpoint.lower().startswith("https://"):
        raise properties.fault(
            _ENDPOINT,
            "is no https or file URL: a client secret and a token are not sent without TLS",
            hint=f"to fetch a token in another way, set {_COMMAND} or {_FILE}",
        )
    if not oauth.client_id or oauth.client_secret is None or not oauth.client_secret.value.strip():
        missing = "id" if not oauth.client_id else "secret"
        raise properties.fault(_ENDPOINT, f"needs a client {missing}", hint=f"set {_CREDENTIALS}{missing}")
