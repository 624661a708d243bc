"""Java's (IANA's) names of cipher suites as OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NEWER = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_OLDER = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|ECDH_ECDSA|ECDH_RSA|DHE_RSA|DHE_DSS|RSA)_WITH_"
    r"(?:(?P<aes>AES_(?:128|256))_(?P<mode>GCM|CBC|CCM(?:_8)?)|(?P<chacha>CHACHA20_POLY1305)|(?P<des>3DES_EDE_CBC))"
    r"(?:_(?P<hash>SHA|SHA256|SHA384))?\Z"
)


def openssl_names(suites: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """(names for TLS 1.2 and older, suites of TLS 1.3, suites that are neither)."""
    older, newer, unknown = list[str](), list[str](), list[str]()
    for suite in suites:
        found = _OLDER.match(suite)
        if suite in _NEWER:
            newer.append(suite)
        elif found is None:
            unknown.append(suite)
        else:
            older.append(_older(found))
    return older, newer, unknown


def _older(found: re.Match[str]) -> str:
    exchange = "" if found["exchange"] == "RSA" else found["exchange"].replace("_", "-") + "-"
    if found["chacha"]:
        return exchange + "CHACHA20-POLY1305"
    if found["des"]:
        return exchange + "DES-CBC3-SHA"
    cipher = found["aes"].replace("AES_", "AES")
    mode = "" if found["mode"] == "CBC" else "-" + found["mode"].replace("CCM_8", "CCM8")
    # CCM suites have their hash in the name of neither side.
    return exchange + cipher + mode + (f"-{found['hash']}" if found["hash"] else "")
