"""Texts that Kafka 4.4 takes for ranges of addresses; ``tests/live/test_authorizer.py`` asks Kafka about many more."""

from __future__ import annotations

import pytest

from kshell.metadata.authorizer import host_range

ONE = "0:0:0:0:0:0:0:1"


@pytest.mark.parametrize(
    ("text", "within", "beyond"),
    [
        ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
        ("10.1.2.3/16", "10.1.0.0", "10.0.255.255"),
        ("010.001.000.0/16", "10.1.0.0", "8.1.0.0"),
        ("10.1.2.2/31", "10.1.2.3", "10.1.2.4"),
        ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
        ("0.0.0.0/0", "255.255.255.255", ONE),
        ("0.0.0.0/0", "0.0.0.1", "0.0.0.0"),  # commons-net holds that one for no address
        ("::/0", "0:0:0:0:0:0:0:0", "10.1.2.3"),
        ("FD00::/+8", "fdff:0:0:0:0:0:0:1", "fe00:0:0:0:0:0:0:0"),
        ("::10.1.2.3/112", "0:0:0:0:0:0:a01:ffff", "10.1.2.3"),
        ("[::1]/128", ONE, "0:0:0:0:0:0:0:2"),
        ("::00001/128", ONE, "0:0:0:0:0:0:0:2"),
        ("fe80::%1/10", "febf:0:0:0:0:0:0:1%3", "fec0:0:0:0:0:0:0:0"),
        ("1:2:3:4:5:6:7::/112", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:8:0"),
    ],
)
def test_a_range_and_its_bounds(text: str, within: str, beyond: str) -> None:
    addresses = host_range(text)
    assert addresses is not None
    assert addresses.covers(within)
    assert not addresses.covers(beyond)


@pytest.mark.parametrize(
    "text",
    [
        "*", "", "10.1.2.3", "::1", "/", "10.1.0.0/", "/16", "10.1/16", "10.1.0.0/33", "10.1.0.0/016", "10.1.0.0/-1",
        "10.1.0.0/255.255.0.0", "256.1.0.0/16", "10.1.0.0/16 ", " 10.1.0.0/16", "10.1.0.0/16/16", "localhost/8",
        "\uff11\uff10.1.0.0/16", "::/129", "::/-1", "::/", "::/ 8", "::/1_0", "::1/64/2", ":::/8", "1::2::3/8", "g::/8",
        "::10000/16", "[::1/128", "fe80::%/64", "fe80::% 1/64", "::ffff:10.1.0.0/112", "::ffff:a01:0/112", "host:1/8",
        "::1.2.3.256/8", "::1.2.3/8", "1:2:3:4:5:6:7:8::/16", "::/" + "9" * 5000, "0" * 5000 + "::/8" + "x",
    ],
)  # fmt: skip
def test_no_range(text: str) -> None:
    assert host_range(text) is None


@pytest.mark.parametrize("address", ["", "host", "1:2", "10.1.2", "999.1.1.1", 5, None])
def test_what_is_no_address_is_in_no_range(address: object) -> None:
    assert all(address not in (host_range(text) or ()) for text in ("::/0", "0.0.0.0/0"))
