"""JAAS lines as Kafka reads them, and faults that name a place and no value."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies

from kshell.client.sasl.configuration import JaasError, parse_jaas
from tests.client.java_oracle import judge
from tests.kafka import jars

_PIECES = (
    "a.b.C", "required", "optional", "k", "=", '"', "'", "v1", " ", ";", "\n", "//", "/*", "*/", "/", '\\"', "\\101",
    "\\7", "\\n", "1", "-", "1.5", "-x", "$", "_", "é", "x-y", 'k="v"', "k='v'", "\x85", "#", ",", "k=v",
)  # fmt: skip


def options(text: str) -> dict[str, str]:
    (entry,) = parse_jaas(text)
    return {name: value.value for name, value in entry.options.items()}


def test_a_line_as_the_documentation_has_it() -> None:
    (entry,) = parse_jaas(
        'org.apache.kafka.common.security.scram.ScramLoginModule REQUIRED username="alice" password="a;b=c";'
    )
    assert entry.short_name == "ScramLoginModule"
    assert entry.flag == "required"
    assert {name: value.value for name, value in entry.options.items()} == {"username": "alice", "password": "a;b=c"}
    assert "a;b=c" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M required a='x\"y' b=\"x'y\";", {"a": 'x"y', "b": "x'y"}),
        (r'M required a="\"\\\n\101\t";', {"a": '"\\\nA\t'}),
        ("M required // no\n a=b /* c=d; */ e=f-g.1;", {"a": "b", "e": "f-g.1"}),
        ('M required "a b"="c" a="1" a="2";', {"a b": "c", "a": "2"}),
        ("M required;", {}),
    ],
)
def test_quotes_escapes_and_comments(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "there is no login module"),
        ("M", 2, "one of required"),
        ("M needed;", 3, "one of required"),
        ("M required password=hunter2", 28, "semicolon"),
        ("M required password hunter2;", 21, "= is expected"),
        ("M required password=1hunter2;", 21, "quote it"),
        ("M required password=;", 21, "is missing"),
        ('M required password="hunter2;', 30, "semicolon"),
        ("M required =hunter2;", 12, "the name of an option"),
    ],
)
def test_faults_name_the_place_and_no_value(text: str, column: int, reason: str) -> None:
    with pytest.raises(JaasError, match=f"character {column}: .*{reason}") as raised:
        parse_jaas(text)
    assert raised.value.column == column
    assert "hunter2" not in str(raised.value)


@pytest.mark.live
def test_kafka_reads_the_same() -> None:
    """Thousands of texts, each read by Kafka's JaasContext too."""
    jars.require()
    source = random.Random(48)
    texts = []
    for _ in range(8000):
        words = ["Mod required "] if source.random() < 0.8 else []
        words += [source.choice(_PIECES) for _ in range(source.randrange(10))]
        texts.append("".join(words) + (";" if source.random() < 0.8 else ""))
    read = 0
    for text, judged in zip(texts, judge("jaas", [text.encode() for text in texts]), strict=True):
        found: dict[str, str] | None = None
        expected = judged
        if judged and "null" in judged:
            expected = None  # an option whose name is no word is one without a name to Java; here it is a fault
        try:
            entries = parse_jaas(text)
        except JaasError:
            entries = []
        if len(entries) == 1:
            read += 1
            found = {"@class": entries[0].name, "@flag": f"LoginModuleControlFlag: {entries[0].flag}"}
            found |= {name: value.value for name, value in entries[0].options.items()}
        assert found == expected, text
    assert read > 500


@given(strategies.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(text)
    except JaasError as error:
        assert 1 <= error.column <= len(text) + 1
