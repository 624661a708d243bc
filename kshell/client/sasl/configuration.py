"""Read the SASL properties: the mechanism and the client's credentials (from JAAS or, for OAUTHBEARER, other keys).

``sasl.jaas.config`` is one login module with its options, parsed as by Kafka's ``JaasConfig``, which uses
``java.io.StreamTokenizer``. Its rules are: a word begins with a letter, ``_``, ``$`` or any character from U+00A0 up,
and may go on with digits, ``.`` and ``-``; a value that begins with a digit must be quoted; ``'`` and ``"`` quote up to
the end of the line, with the escapes of C; ``//``, ``/* */`` and a single ``/`` begin comments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.properties import Properties, Secret
from kshell.errors import UsageError

if TYPE_CHECKING:
    from kshell.client.tls import Tls


JAAS = "sasl.jaas.config"
Options = Mapping[str, Secret]
"""The options of a login module; all values are treated as secrets."""


class TokenCache:
    """A token that connections may use again before ``until``, a value of ``time.monotonic()``."""

    def __init__(self) -> None:
        self.token: Secret | None = None
        self.until = 0.0


class OAuth(NamedTuple):
    """Where an OAUTHBEARER token comes from: an endpoint (https or file URL), a file, a command, or JAAS claims."""

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
    """The ``unsecuredLogin…`` options without that prefix; they make a token that is not signed, for tests."""
    extensions: Mapping[str, Secret]
    """SASL extensions (KIP-342): name -> value, which the client sends with the token."""
    token_cache: TokenCache
    tls: Tls
    """TLS for the token endpoint: the ``ssl.*`` options of the JAAS entry; without them the system's certificates.

    Source: ``org.apache.kafka.common.security.oauthbearer.internals.secured.JaasOptionsUtils``. Besides the system's,
    the client's own trust store counts, for an endpoint that the private authority of Kafka's nodes has signed. Its key
    store does not: an identity provider is not to see the certificate that is for Kafka's nodes.
    """

    @property
    def is_secret(self) -> bool:
        """Whether the token must be kept secret; an unsecured one proves nothing."""
        return not self.claims


class Sasl(NamedTuple):
    """The name of the mechanism and the client's credentials."""

    mechanism: str
    username: Secret | None = None
    password: Secret | None = None
    token_auth: bool = False
    """Whether name and password are the id and HMAC of a delegation token (KIP-48); SCRAM only."""
    oauth: OAuth | None = None


def login_options(properties: Properties, mechanism: str, login_modules: Collection[str], example: str) -> Options:
    """Return the options of the login module in ``sasl.jaas.config``.

    Args:
        properties: the client's properties.
        mechanism: the mechanism's name, for errors.
        login_modules: class names, without package, of the login modules that the mechanism accepts.
        example: a value of ``sasl.jaas.config``, for hints.

    Raises:
        UsageError: the property is not set, or is not one JAAS entry with such a login module.
    """
    if not properties.filled(JAAS):
        raise UsageError(
            f"{JAAS} is not set, and sasl.mechanism={mechanism} needs it",
            hint=f"a JAAS file (java.security.auth.login.config) is not read; set {JAAS}={example}",
        )
    try:
        entries = parse_jaas(properties[JAAS])
    except JaasError as error:
        raise properties.fault(JAAS, str(error), hint=f"for example {example}") from None
    if len(entries) > 1:
        raise properties.fault(JAAS, f"{len(entries)} login modules, where Kafka takes one")
    module = entries[0].short_name
    if module == "Krb5LoginModule":
        raise properties.fault(
            JAAS, "Krb5LoginModule: GSSAPI (Kerberos) is not supported", hint=f"for example {example}"
        )
    if module not in login_modules:
        raise properties.fault(
            JAAS, f"sasl.mechanism={mechanism} needs another login module", hint=f"for example {example}"
        )
    return entries[0].options


def password_login(properties: Properties, mechanism: str, options: Options, example: str) -> Sasl:
    """Make the credentials of a login by name and password. Raises UsageError if one of them is missing."""
    username, password = options.get("username"), options.get("password")
    if username is None or password is None or not username.value or not password.value:
        missing = "username" if username is None or not username.value else "password"
        raise properties.fault(JAAS, f"the option {missing} is missing", hint=example)
    token_auth = "tokenauth" in options and options["tokenauth"].value.lower() == "true"
    return Sasl(mechanism, username, password, token_auth=token_auth)


def token_login(properties: Properties, mechanism: str, options: Options, example: str) -> Sasl:
    """Make the credentials of a login by token. Raises UsageError if the properties name no source of it, or two."""
    return Sasl(mechanism, oauth=_oauth(properties, options))


def names_token(properties: Properties) -> bool:
    """Whether the properties name a source of the token; then ``sasl.jaas.config`` is not needed."""
    return any(properties.filled(key) for key in _TOKEN_KEYS)


_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_FILE, _COMMAND = "sasl.oauthbearer.token.file", "sasl.oauthbearer.token.command"
_TOKEN_KEYS = (_ENDPOINT, _FILE, _COMMAND)
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
_UNSECURED, _EXTENSION = "unsecuredLogin", "extension_"


def _oauth(properties: Properties, options: Options) -> OAuth:
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
    # In 4.1, client id, client secret and scope got properties of their own (KIP-1139); before, they were JAAS options.
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
    if own:
        tls = Tls.of(Properties(own, dict.fromkeys(own, JAAS)), [])
    else:
        tls = Tls.of(properties, [])._replace(
            keystore_location=None, keystore_certificate_chain=None, keystore_key=None, trusts_system=True
        )
    # A token endpoint is a web server: its name is verified even if that is switched off for Kafka's nodes.
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
    """The text is not a JAAS entry. ``column`` is the 1-based character at fault; the message contains no value."""

    def __init__(self, reason: str, column: int) -> None:
        super().__init__(f"character {column}: {reason}")
        self.column = column


class LoginModule(NamedTuple):
    """A JAAS entry: the class of the login module, the control flag in lower case, and the options."""

    name: str
    flag: str
    options: Mapping[str, Secret]

    @property
    def short_name(self) -> str:
        """The name of the class without its package, which differs where Kafka's classes were relocated (shaded)."""
        return self.name.rpartition(".")[2]


class JaasToken(NamedTuple):
    """A token: its kind (``word``, ``number``, ``end`` or the character itself), text (words only), 1-based column."""

    kind: str
    text: str | None
    column: int


def parse_jaas(text: str) -> list[LoginModule]:
    """Parse a JAAS text into its entries, at least one. Raises JaasError."""
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
    """Yield the tokens of a JAAS text, then ``end`` tokens without limit."""
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
    """Return (text in the quotes that begin at ``at``, index after them). The end of a line closes them, as in Java."""
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
