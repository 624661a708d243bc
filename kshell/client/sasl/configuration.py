"""What client properties say about SASL: the mechanism, and whom to be (JAAS or, for OAUTHBEARER, other keys).

``sasl.jaas.config`` is one login module with its options, read as Kafka's ``JaasConfig`` reads it: Kafka hands the text
to ``java.io.StreamTokenizer``, whose rules are these: a word begins with a letter, ``_``, ``$`` or any character from
U+00A0 up, and goes on with digits, ``.`` and ``-``; a value that begins with a digit must be quoted; ``'`` and ``"``
quote up to the end of the line, with C's escapes; ``//``, ``/* */`` and a single ``/`` begin comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.properties import Properties, Secret
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


class TokenCache:
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
    token_cache: TokenCache
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
        if mechanism == "OAUTHBEARER" and any(properties.filled(token_key) for token_key in _TOKEN_KEYS):
            return {}
        raise UsageError(
            f"{_JAAS} is not set, and sasl.mechanism={mechanism} needs it",
            hint=f"a JAAS file (java.security.auth.login.config) is not read; set {_JAAS}={_EXAMPLES[mechanism]}",
        )
    try:
        entries = parse_jaas(properties[key])
    except JaasError as error:
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
    sources = [key for key in _TOKEN_KEYS if properties.filled(key)] + (["unsecuredLogin… in JAAS"] if claims else [])
    if len(sources) != 1:
        problem = (
            f"{' and '.join(sources)} are two sources of a token"
            if sources
            else "nothing says where the token comes from"
        )
        raise UsageError(f"OAUTHBEARER: {problem}", hint=f"set one of {', '.join(_TOKEN_KEYS)}")
    retriever = properties.filled("sasl.oauthbearer.jwt.retriever.class") or ""
    if retriever.endswith("JwtBearerJwtRetriever"):
        raise properties.fault(
            "sasl.oauthbearer.jwt.retriever.class",
            "the JWT bearer grant is not supported",
            hint=f"use client credentials, or have another program fetch the token ({_COMMAND})",
        )
    # What is named client id, secret and scope moved from JAAS to properties of their own in 4.1 (KIP-1139).
    oauth = OAuth(
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
        token_cache=TokenCache(),
        tls=_endpoint_tls(properties, options),
    )
    _check_endpoint(properties, oauth)
    return oauth


def _text(options: Mapping[str, Secret], name: str) -> str | None:
    return options[name].value.strip() or None if name in options else None


def _endpoint_tls(properties: Properties, options: Mapping[str, Secret]) -> Tls:
    from kshell.client.tls import Tls

    own = {name: value.value for name, value in options.items() if name.startswith("ssl.")}
    tls = Tls.of(Properties(own, dict.fromkeys(own, _JAAS)) if own else properties, [])
    # A token endpoint is a web server: its name is checked whatever is said about Kafka's.
    return tls._replace(checks_name=True)


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


# --- the text of sasl.jaas.config -------------------------------------------------------------------------------------


_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_NUMBER = "0123456789.-"
_TEXT, _NUMBER_KIND, _END = "word", "number", "end"


class JaasError(ValueError):
    """The text is not a JAAS entry. ``column`` is the 1-based character of the fault; the message quotes no value."""

    def __init__(self, reason: str, column: int) -> None:
        super().__init__(f"character {column}: {reason}")
        self.column = column


class LoginModule(NamedTuple):
    """An entry: the class, the control flag in lower case, and the options, all of them kept as secrets."""

    name: str
    flag: str
    options: Mapping[str, Secret]

    @property
    def short_name(self) -> str:
        """The class without its package (which may be a relocated one)."""
        return self.name.rpartition(".")[2]


class JaasToken(NamedTuple):
    """A token: its kind (``word``, ``number``, ``end`` or the character itself), text (``word`` only) and column."""

    kind: str
    text: str | None
    column: int


def parse_jaas(text: str) -> list[LoginModule]:
    """The entries of a JAAS text, at least one. Raises JaasError."""
    tokens = tokens_of(text)
    entries = []
    while (token := next(tokens)).kind != _END:
        entries.append(_login_module(token, tokens))
    if not entries:
        raise JaasError("there is no login module", 1)
    return entries


def _login_module(first: JaasToken, tokens: Iterator[JaasToken]) -> LoginModule:
    if not first.text:
        raise JaasError("the class of a login module is expected", first.column)
    flag = next(tokens)
    if flag.text is None or flag.text.lower() not in _FLAGS:
        raise JaasError(f"one of {', '.join(_FLAGS)} is expected after the login module", flag.column)
    options: dict[str, Secret] = {}
    while (key := next(tokens)).kind != ";":
        if key.kind == _END:
            raise JaasError("the entry does not end with a semicolon", key.column)
        if key.text is None:
            raise JaasError("the name of an option or a semicolon is expected", key.column)
        _equals(next(tokens))
        value = next(tokens)
        if value.text is None:
            why = "begins with a digit, dot or dash: quote it" if value.kind in (_NUMBER_KIND, "-") else "is missing"
            raise JaasError(f"the option's value {why}", value.column)
        options[key.text] = Secret(value.text)
    return LoginModule(first.text, flag.text.lower(), options)


def _equals(token: JaasToken) -> None:
    if token.kind != "=":
        raise JaasError("= is expected after an option's name", token.column)


def tokens_of(text: str) -> Iterator[JaasToken]:
    """The tokens, the last one an ``end``."""
    at = 0
    while at < len(text):
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            at = _after_comment(text, at)
        elif char in "\"'":
            value, end = _quoted(text, at)
            yield JaasToken(_TEXT, value, at + 1)
            at = end
        elif char in _NUMBER:
            end = _after_number(text, at)
            yield JaasToken(_NUMBER_KIND if end > at + 1 or char != "-" else char, None, at + 1)
            at = end
        elif _begins_word(char):
            end = at + 1
            while end < len(text) and (_begins_word(text[end]) or text[end] in _NUMBER):
                end += 1
            yield JaasToken(_TEXT, text[at:end], at + 1)
            at = end
        else:
            yield JaasToken(char, None, at + 1)
            at += 1
    while True:
        yield JaasToken(_END, None, len(text) + 1)


def _begins_word(char: str) -> bool:
    return ("a" <= char.lower() <= "z" and char.isascii()) or char in "_$" or char >= "\xa0"


def _after_comment(text: str, at: int) -> int:
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    # Java swallows the character after a single slash, whatever it is.
    ends = [end for terminator in "\r\n" if (end := text.find(terminator, at + 2)) >= 0]
    return min(ends, default=len(text))


def _after_number(text: str, at: int) -> int:
    end = at + 1 if text[at] == "-" else at
    if end > at and text[end : end + 1] not in (*"0123456789.",):
        return end  # a dash alone
    dots = 0
    while end < len(text) and ((text[end].isascii() and text[end].isdigit()) or (text[end] == "." and not dots)):
        dots += text[end] == "."
        end += 1
    return end


def _quoted(text: str, at: int) -> tuple[str, int]:
    """(what the quotes hold, the place after them). A line's end closes them, as in Java."""
    quote, chars, at = text[at], [], at + 1
    while at < len(text) and text[at] not in (quote, "\r", "\n"):
        if text[at] != "\\":
            chars.append(text[at])
            at += 1
            continue
        at += 1
        char = text[at : at + 1]
        if char and char in _OCTAL:
            most = 3 if char <= "3" else 2
            end = at + 1
            while end < at + most and text[end : end + 1] and text[end] in _OCTAL:
                end += 1
            chars.append(chr(int(text[at:end], 8)))
            at = end
        else:
            chars.append(_ESCAPES.get(char, char))
            at += 1
    return "".join(chars), at + 1 if text[at : at + 1] == quote else at
