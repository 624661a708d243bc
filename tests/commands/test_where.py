"""Conditions on rows: what they mean, what is refused and where, and what an unfinished one may become."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kshell.engine.execution import deadline
from kshell.engine.usage import CONDITIONS
from kshell.errors import EXIT_USAGE, CommandError, UsageError
from kshell.tables import where_checks, where_grammar
from kshell.tables.where import ExpressionError, compile_where, complete_where
from kshell.tables.where_checks import repeats_without_end
from kshell.tables.where_kinds import FieldType, fields_of

FIELDS: Mapping[str, FieldType] = {
    "name": str,
    "partitions": int,
    "isr": [int],
    "replicas": [int],
    "state": str,
    "leader": int,
    "fenced": bool,
    "rack": str,
    "listeners": [{"name": str, "port": int}],
    "supportedFeatures": {"*": {"min": int, "max": int}},
    "value": object,
}
ROW: dict[str, Any] = {
    "name": "orders",
    "partitions": 9007199254740993,
    "isr": [1, 2],
    "replicas": [1, 2, 3],
    "state": "offline",
    "leader": 1,
    "fenced": False,
    "rack": None,
    "listeners": [{"name": "PLAIN", "port": 9092}, {"name": "TLS", "port": 9093}],
    "supportedFeatures": {"metadata.version": {"min": 1, "max": 20}},
    "value": {"leader": 4, "deep": [{"x": None}]},
}


def holds(text: str, row: Mapping[str, Any] = ROW, fields: Mapping[str, FieldType] | None = FIELDS) -> bool:
    return compile_where(text, fields)(row)


@pytest.mark.parametrize("declared", [FIELDS, None, fields_of([ROW])], ids=["declared", "unknown", "seen"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("partitions == 9007199254740993", True),
        ("partitions = 9007199254740992", False),
        ("partitions > 9007199254740992", True),
        ("leader >= 1.0", True),
        ("leader==1 and not leader<1", True),
        ("leader == -1 or name != orders", False),
        ("fenced", False),
        ("not fenced", True),
        ("not not not fenced", True),
        ("fenced == false", True),
        ("FENCED_ or 1 == 1", None),
        ("name == 'orders'", True),
        ('name == "orders"', True),
        ("name == orders", True),
        ("name < p", True),
        ("name ~ '^ord'", True),
        ("name ~ ^x", None),
        ("name !~ '^ord'", False),
        (r"name ~ '\w{6}$'", True),
        ("state in [offline, 'under-replicated']", True),
        ("state not in [offline]", False),
        ("leader in [1, 2]", True),
        ("leader in []", False),
        ("3 in isr", False),
        ("3 in replicas and not 3 in isr", True),
        ("leader not in isr", False),
        ("rde in name", True),
        ("'rde' in name", True),
        ("len(isr) < len(replicas)", True),
        ("len(name) == 6", True),
        ("isr == [1, 2]", True),
        ("isr == replicas", False),
        ("isr.0 == 1 and isr[1] == 2 and isr[-1] == 2", True),
        ("isr[2] == null", True),
        ("all(isr, it in replicas)", True),
        ("any(replicas, not it in isr)", True),
        ("any(isr, it == leader)", True),
        ("all([], it == 1)", True),
        ("any(listeners, port == 9093 and name in [TLS, SSL])", True),
        ("all(listeners, port > 9092 or name == PLAIN)", True),
        ("any(listeners, it.port == 1)", False),
        ("any(listeners, any(isr, it == 2 and port == 9092))", True),
        ("listeners.0.port == 9092", True),
        ("supportedFeatures.metadata.version.max >= 20", True),
        ('supportedFeatures["metadata.version"].max == 20', True),
        ("'metadata.version' in supportedFeatures", True),
        ("value.leader == 4", True),
        ("value.nothing == null", True),
        ("value.deep[0].x == null", True),
        ("it.leader == 1", True),
        ("(fenced == false) == true", True),
        ("rack == null", True),
        ("rack != null", False),
        ("rack == a", False),
        ("rack != a", True),
        ("rack < a or rack > a or rack <= a or rack ~ a or rack in [a]", False),
        ("rack in [null]", True),
        ("null == null", True),
        ("len(rack) >= 0", False),
        ("leader in [true] or true == 1", None),
    ],
)
def test_means(text: str, expected: bool | None, declared: Mapping[str, FieldType] | None) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            compile_where(text, FIELDS)
    else:
        assert holds(text, fields=declared) is expected


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 0, "no condition"),
        ("leader ==", 9, "a value is missing"),
        ("leader == 1 2", 12, "only `and` or `or` can follow"),
        ("1 < leader < 3", 11, "only `and` or `or` can follow"),
        ("name == 'x", 8, "not closed"),
        ("name == a && fenced", 10, "means nothing"),
        ("(fenced", 7, r"\) is missing"),
        ("leader in [1 2]", 13, ", is missing"),
        ("partitons > 3", 0, "no field partitons"),
        ("fenced or isr.x == 1", 10, "it has no x"),
        ("leader == preferred", 10, "no field preferred"),
        ("any(listeners, prt == 1)", 15, "no field prt"),
        ("supportedFeatures['a'].mix == 1", 0, r"no field supportedFeatures\.a\.mix"),
        ("partitions > '3'", 13, "partitions is a number, and '3' is a string"),
        ("name == 3", 8, "name is a string, and 3 is a number"),
        ("fenced == 0", 10, "cannot be compared"),
        ("isr < replicas", 0, "no order"),
        ("fenced < true", 0, "no order"),
        ("name and fenced", 0, "not a condition"),
        ("any(name, it == a)", 4, "not a list"),
        ("leader in partitions", 10, "`in` cannot search that"),
        ("leader in [1, a]", 14, "no field a"),
        ("leader in [1, 'a']", 14, "a number is needed"),
        ("'a' in isr", 0, "what isr holds is a number"),
        ("len(leader) > 1", 4, "no length"),
        ("leader ~ 'x'", 0, "searches in text"),
        ("name ~ 3", 7, "regular expression is missing"),
        ("name ~ 'ab('", 10, "not a regular expression"),
        ("name ~ '(a+)+$'", 7, "for ever"),
        ("(" * 100 + "fenced", 40, "nested in one another"),
        ("[" * 100, 39, "nested in one another"),
        ("leader == " + "9" * 200, 10, "digits"),
        ("leader == 1e999", 10, "too large"),
        ("name == " + "x" * 5000, 4000, "longer than"),
    ],
)
def test_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError, match=message) as raised:
        compile_where(text, FIELDS)
    assert raised.value.column == column
    assert raised.value.text == text[:4000]
    assert raised.value.exit_code == EXIT_USAGE


def test_hints() -> None:
    with pytest.raises(UsageError) as raised:
        compile_where("partitons > 3", FIELDS)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("did you mean partitions? fields: name, partitions, isr")
    with pytest.raises(UsageError) as raised:
        compile_where("isr < replicas", FIELDS)
    assert raised.value.hint == "len(isr) counts"


def test_kinds_that_are_seen() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": None, "c": [], "d": {"x": 1}},
        {"a": "x", "b": None, "c": [2.5], "d": {"x": 2, "y": 1}},
    ]
    kinds = fields_of(rows, ["e"])
    expected = {"a": "any", "b": "any", "c": "list", "d": "object", "e": "any"}
    assert {name: kind.name for name, kind in kinds.items()} == expected
    assert kinds["c"].element.name == "number"
    assert [holds("a == x and b == null and e == null and d.z == null", row, kinds) for row in rows] == [False, True]
    with pytest.raises(UsageError, match=r"d\.x is a number"):
        compile_where("d.x == '1'", kinds)


def test_a_field_that_a_row_lacks_is_null() -> None:
    assert holds("rack == null and not fenced", {})


SAID: Mapping[str, FieldType] = {
    "name": str, "partitions": int, "state": str, "rack": str, "release": str, "value": str, "isr": [int],
    "replicas": [int], "elr": [int], "listeners": [{"port": int}], "fenced": bool, "a": int, "b": int, "c": int,
    "configs": {"*": str}, "nodes": {"*": {"min": int, "max": int}},
}  # fmt: skip
NULLS = dict.fromkeys(SAID)
_MARKS = {"-o json", "it", "not", "and", "or", "=", *where_grammar.COMPARISONS}


def conditions_said() -> list[str]:
    return [one for one in re.findall("`([^`]+)`", CONDITIONS) if one not in _MARKS]


@pytest.mark.parametrize("text", conditions_said())
def test_what_people_are_told_is_a_condition(text: str) -> None:
    fields: Mapping[str, FieldType] = {
        name: kind for name, kind in SAID.items() if "rack" not in text or name == "rack"
    }
    compile_where(text, fields)


def test_what_people_are_told_of_null() -> None:
    """The last paragraph, of a row in which everything is null."""
    for text in conditions_said()[-6:]:
        kinds: Mapping[str, FieldType] = {"rack": str, "elr": [int]}
        expected = text in ("rack == null", "rack != a", "not rack ~ b")
        assert compile_where(text, kinds)(NULLS) is expected, text
    assert not compile_where("any(isr, it == 1) or all(isr, it == 1)", SAID)(NULLS)
    assert compile_where("all(isr, it == 1)", SAID)({"isr": []})
    assert compile_where("nodes.3000.max == null", SAID)(NULLS)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("name == 4.3", "put text that looks like a number in quotes: '4.3'"),
        ("4.3 != name", "put text that looks like a number in quotes: '4.3'"),
        ("name in [a, 2]", "put text that looks like a number in quotes: '2'"),
        ("leader == '2'", "write a number without quotes: 2"),
        ("leader in ['-1']", "write a number without quotes: -1"),
        ("leader == 'two'", None),
        ("name == true", None),
    ],
)
def test_quotes_that_make_the_difference_are_named(text: str, hint: str | None) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_where(text, FIELDS)
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("text", "risky"),
    [
        ("(a+)+", True),
        ("(a*)*b", True),
        (r"(\w+\s*)+$", True),
        ("(?:x|a*)*", True),
        ("((a+))+", True),
        ("(a{1,5}){20}", True),
        ("^(a+$)*", True),
        (r"(\w+\.)*\w+", False),
        ("(ab|cd)+", False),
        ("(a+)?", False),
        ("[(+)*]+", False),
        (r"\(a+\)+", False),
        ("a+b*c{2,}", False),
        ("(?=a+)x", False),
        ("(?P<name>a+b)+", False),
    ],
)
def test_patterns_that_take_for_ever(text: str, risky: bool) -> None:
    re.compile(text)
    assert repeats_without_end(text) is risky


@pytest.mark.parametrize(
    "pattern", ["(a|aa)+$", "(a|a)*c", ".*.*.*.*.*.*x", "(.a|a.)+x", "(?:a*){9}x", "a{1,99}a{1,99}a{1,99}a{1,99}x"]
)
def test_a_pattern_that_slips_through_is_given_up(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a deadline of ``--timeout``, which another timer keeps."""
    monkeypatch.setattr(where_checks, "SECONDS", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    started = time.monotonic()
    with deadline(60), pytest.raises(CommandError) as raised:
        compile_where(f"name ~ '{pattern}'", FIELDS)({"name": "a" * 249 + "b"})
    assert time.monotonic() - started < 5
    assert pattern in raised.value.message
    assert "249" not in raised.value.message and "250 characters" in raised.value.message
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_pattern_is_searched_outside_of_the_main_thread_too() -> None:
    """No timer rings there."""
    test = compile_where("name ~ '^a+b+$'", FIELDS)
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.map(test, [{"name": "aab"}, {"name": "ba"}])) == [True, False]


# --- any text, and a naive evaluator ---------------------------------------------------------------------------------

_BITS = st.sampled_from(
    "and or not in any( all( len( ) ( [ ] , == = != < > <= >= ~ !~ 'a' \"b\" 1 -2.5 true null it . leader isr name x"
    " listeners.0.port fenced '( [0] ['k'] !".split(" ")
)


@given(st.one_of(st.text(), st.lists(_BITS).map(" ".join), st.lists(_BITS).map("".join)))
@example("it.it.it == [")
@example("name ~ '[[a]'")
@example("name ~ 'a{9999999999}'")
@example("isr[99999999999999999999] == 1")
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    for fields in (FIELDS, None):
        try:
            predicate = compile_where(text, fields)
        except ExpressionError as error:
            assert error.column is not None
            assert 0 <= error.column <= len(text)
            continue
        assert predicate(ROW) in (True, False)
        assert predicate({}) in (True, False)
    for candidate in complete_where(text, FIELDS):
        assert candidate.startswith(text.rstrip() if text.endswith(" ") else "")


NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
ROWS = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.integers(-3, 3), NUMBERS),
        "m": st.one_of(st.none(), st.integers(-3, 3)),
        "s": st.one_of(st.none(), st.text("ab'\"\\", max_size=3)),
        "b": st.one_of(st.none(), st.booleans()),
        "l": st.one_of(st.none(), st.lists(st.integers(-3, 3), max_size=3)),
    }
)
DECLARED: Mapping[str, FieldType] = {"n": float, "m": int, "s": str, "b": bool, "l": [int]}


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def written(number: float) -> str:
    return repr(number)


_NUMBER = st.one_of(
    st.sampled_from([("field", "n"), ("field", "m"), ("len",)]), NUMBERS.map(lambda number: ("constant", number))
)
_STRING = st.one_of(st.just(("field", "s")), st.text("ab'\"\\", max_size=3).map(lambda text: ("constant", text)))
_ORDER = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_LEAF = st.one_of(
    st.tuples(st.just("compare"), _ORDER, _NUMBER, _NUMBER),
    st.tuples(st.just("compare"), _ORDER, _STRING, _STRING),
    st.tuples(st.just("compare"), st.just("=="), _NUMBER, st.just(("constant", None))),
    st.tuples(st.just("in"), _NUMBER, st.lists(NUMBERS, max_size=3)),
    st.tuples(st.sampled_from(["any", "all"]), _ORDER, _NUMBER),
    st.just(("bool",)),
)
TREES = st.recursive(
    _LEAF,
    lambda below: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), st.lists(below, min_size=1, max_size=4)),
        st.tuples(st.just("not"), below),
    ),
    max_leaves=8,
)


def text_of(tree: Any) -> str:
    match tree:
        case ("field", name):
            return str(name)
        case ("len",):
            return "len(l)"
        case ("constant", None):
            return "null"
        case ("constant", str() as text):
            return quoted(text)
        case ("constant", number):
            return written(number)
        case ("compare", sign, one, other):
            return f"{text_of(one)} {sign} {text_of(other)}"
        case ("in", one, numbers):
            return f"{text_of(one)} in [{', '.join(map(written, numbers))}]"
        case ("any" | "all" as word, sign, one):
            return f"{word}(l, it {sign} {text_of(one)})"
        case ("bool",):
            return "b"
        case ("not", part):
            return f"not ({text_of(part)})"
        case (word, parts):
            return f" {word} ".join(f"({text_of(part)})" for part in parts)
    raise AssertionError(tree)


def naive(tree: Any, row: dict[str, Any]) -> Any:
    match tree:
        case ("field", name):
            return row[name]
        case ("len",):
            return None if row["l"] is None else len(row["l"])
        case ("constant", value):
            return value
        case ("compare", sign, one, other):
            return compared(naive(one, row), sign, naive(other, row))
        case ("in", one, numbers):
            return any(naive(one, row) == number for number in numbers)
        case ("any" | "all" as word, sign, one):
            if row["l"] is None:
                return False
            results = [compared(it, sign, naive(one, row)) for it in row["l"]]
            return any(results) if word == "any" else all(results)
        case ("bool",):
            return row["b"] is True
        case ("not", part):
            return not naive(part, row)
        case ("and", parts):
            return all(naive(part, row) for part in parts)
        case ("or", parts):
            return any(naive(part, row) for part in parts)
    raise AssertionError(tree)


def compared(one: Any, sign: str, other: Any) -> bool:
    if sign in ("==", "!="):
        return bool(one == other) == (sign == "==")
    if one is None or other is None:
        return False
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign])


@given(TREES, ROWS)
def test_agrees_with_a_naive_evaluator(tree: Any, row: dict[str, Any]) -> None:
    text = text_of(tree)
    expected = naive(tree, row)
    assert holds(text, row, DECLARED) is expected
    assert holds(text, row, None) is expected
    assert holds(text, row, fields_of([row])) is expected


# --- completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("par", ["partitions"]),
        ("fenced or par", ["fenced or partitions"]),
        ("leader ", ["leader ==", "leader !=", "leader <", "leader <=", "leader >", "leader >=", "leader in"]),
        ("fenced == ", ["fenced == true", "fenced == false", "fenced == null", "fenced == fenced", "fenced == value"]),
        ("leader <", ["leader < null", "leader < leader", "leader < partitions", "leader < value"]),
        ("leader > 3 ", ["leader > 3 and", "leader > 3 or"]),
        ("leader in i", ["leader in isr"]),
        ("any(", ["any(isr", "any(replicas", "any(listeners", "any(value"]),
        ("any(listeners, po", ["any(listeners, port"]),
        ("any(isr, i", ["any(isr, isr", "any(isr, it"]),
        ("any(listeners, port == 1) and po", []),
        ("name ~ ", []),
        ("name == 'x", []),
    ],
)
def test_completion(text: str, expected: list[str]) -> None:
    assert complete_where(text, FIELDS) == expected


def test_completion_begins_with_every_field() -> None:
    assert set(complete_where("", FIELDS)) == {*FIELDS, "not", "len(", "any(", "all("}


@pytest.mark.parametrize("text", ["configs.retention.ms == 3", "configs.retention >= 3", "configs['a.b'] == 3"])
def test_a_key_with_dots_has_a_value_of_its_columns_type(text: str) -> None:
    with pytest.raises(ExpressionError, match="is a string, and 3 is a number"):
        compile_where(text, {"configs": {"*": str}})
    assert compile_where(text.replace("3", "'3'"), {"configs": {"*": str}})({"configs": {"a": "1"}}) is False
