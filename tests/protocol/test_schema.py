"""Declarations: what a line may say, and what is refused."""

from __future__ import annotations

import pytest

from kshell.protocol.schema import Field, Schema, Versions, parse_fields

EVERYTHING = """
  endPoints              []BrokerEndpoint
    name                 string
    port                 uint16
  rack                   string?
  inControlledShutdown   bool            1+
  logDirs                []uuid?         3+  tag 0 = null
  leader                 int32           tag 1 = -2
  kind                   string          0-2 = plain
  fenced                 bool            = true
  salt                   bytes           secret
  value                  string?         secret:config
  last                   Pair
    low                  int16
"""


def test_every_part_of_a_line_is_read() -> None:
    fields = {field.name: field for field in parse_fields(EVERYTHING)}
    assert list(fields) == "endPoints rack inControlledShutdown logDirs leader kind fenced salt value last".split()
    assert fields["endPoints"].array
    assert fields["endPoints"].is_struct
    assert [field.name for field in fields["endPoints"].fields] == ["name", "port"]
    assert fields["endPoints"].default == ()
    assert fields["rack"].nullable
    assert fields["rack"].default == ""
    assert fields["inControlledShutdown"].versions == Versions(1, None)
    assert fields["inControlledShutdown"].default is False
    assert fields["logDirs"] == Field("logDirs", "uuid", True, True, Versions(3, None), 0, None, True)
    assert (fields["leader"].tag, fields["leader"].default, fields["leader"].has_default) == (1, -2, True)
    assert (fields["kind"].versions, fields["kind"].default) == (Versions(0, 2), "plain")
    assert fields["fenced"].default is True
    assert not fields["salt"].has_default
    assert [field.name for field in fields["last"].fields] == ["low"]


def test_secrecy_is_part_of_the_declaration() -> None:
    assert Schema("Any", "0", EVERYTHING).secrets == {"salt": "secret", "value": "secret:config"}


def test_fields_have_versions() -> None:
    schema = Schema("Any", "0-4", EVERYTHING)
    names = {version: [field.name for field in schema.fields if version in field.versions] for version in (0, 1, 3)}
    assert "inControlledShutdown" not in names[0]
    assert "inControlledShutdown" in names[1]
    assert "kind" in names[1]
    assert "kind" not in names[3]
    assert "logDirs" in names[3]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  name", "name"),
        ("  name string extra words", "name string extra words"),
        ("  name string tag x", "name string tag x"),
        ("  na-me string", "na-me string"),
        ("  good int8\n  bad []\n", "bad []"),
    ],
)
def test_a_line_that_is_no_declaration_is_named(text: str, line: str) -> None:
    with pytest.raises(ValueError, match="not a field declaration") as caught:
        parse_fields(text)
    assert repr(line) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("    deep int8\n  shallow int8\n", "shallow int8"),  # less than the first line
        ("  outer Pair\n      low int8\n    high int8\n", "high int8"),  # between the levels
        ("  number int32\n    low int8\n", "low int8"),  # below a field that is no struct
    ],
)
def test_wrong_indentation_is_named(text: str, line: str) -> None:
    with pytest.raises(ValueError, match="wrong indentation") as caught:
        parse_fields(text)
    assert repr(line) in str(caught.value)


@pytest.mark.parametrize("text", ["  size int46\n", "  inner Pair\n", "  rows []Pair\n  other int8\n"])
def test_a_type_that_is_neither_primitive_nor_spelt_out_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no fields"):
        parse_fields(text)


def test_no_text_is_no_fields() -> None:
    assert parse_fields("\n   \n") == ()


@pytest.mark.parametrize(
    ("text", "inside", "outside", "shown"),
    [("2", [2], [1, 3], "2-2"), ("0-3", [0, 3], [4, -1], "0-3"), ("1+", [1, 99], [0], "1+")],
)
def test_versions(text: str, inside: list[int], outside: list[int], shown: str) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert not versions.__contains__("1")
    assert str(versions) == shown


def test_only_fields_of_the_record_itself_can_be_secret() -> None:
    with pytest.raises(ValueError, match="token: only a field of the record itself"):
        parse_fields("inner  []Inner\n  token  bytes  secret\n")
