"""Errors as values: what they carry goes with them wherever they are taken."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from kshell import errors
from kshell.errors import CorruptDataError, KshellError, MissingCodecError, ServerError, UsageError, did_you_mean

for _module in ("kshell.tables.where_grammar", "kshell.sources.choose", "kshell.spark.java"):
    importlib.import_module(_module)  # those that stand elsewhere


def kinds(root: type[KshellError] = KshellError) -> Iterator[type[KshellError]]:
    """The whole tree below ``root``, itself included."""
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def made(kind: type[KshellError]) -> KshellError:
    """One with a value of its own for each parameter."""
    given: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(inspect.signature(kind).parameters.items()):
        given[name] = 1000 + number if "int" in str(parameter.annotation) else f"the {name}"
    return kind(**given)


def carried(error: KshellError) -> tuple[object, ...]:
    """All that can be told of an error."""
    return type(error), error.args, str(error), vars(error), error.exit_code


KINDS = sorted(set(kinds()), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling_and_copying(kind: type[KshellError]) -> None:
    error = made(kind)
    assert error.hint
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert carried(pickle.loads(pickle.dumps(error, protocol))) == carried(error)
    assert carried(copy.copy(error)) == carried(error)


def test_every_class_of_the_module_is_one_of_the_tree() -> None:
    classes = {one for _, one in inspect.getmembers(errors, inspect.isclass) if one.__module__ == errors.__name__}
    assert classes <= set(KINDS)


def test_what_is_carried_is_what_was_given() -> None:
    damage = pickle.loads(pickle.dumps(CorruptDataError("a.log", 7, "cut", hint="look")))
    assert (damage.file, damage.position, damage.reason, damage.hint) == ("a.log", 7, "cut", "look")
    assert str(damage) == damage.message == "a.log: byte 7: cut"
    refused = pickle.loads(pickle.dumps(ServerError("b:9092", 29, "no", api="FETCH")))
    assert (refused.node, refused.code, refused.api, str(refused)) == ("b:9092", 29, "FETCH", "b:9092: FETCH: no")
    assert pickle.loads(pickle.dumps(UsageError("what", column=3))).column == 3
    placed = pickle.loads(pickle.dumps(MissingCodecError("no zstd", hint="install").at("a.log", 7)))
    assert (str(placed), placed.hint) == ("a.log: byte 7: no zstd", "install")


def test_a_misspelled_name_is_answered_with_the_nearest_ones_and_an_odd_one_with_what_there_is() -> None:
    names = ["topics", "topic", "brokers"]
    assert did_you_mean("topcs", names) == "did you mean topics or topic?"
    assert did_you_mean("topcs", names, limit=1, write="@{}".format) == "did you mean @topics?"
    assert did_you_mean("xyzzy", names, "`help` lists them") == "`help` lists them"
    assert did_you_mean("xyzzy", names) is None
    assert did_you_mean("TOPCS", names, limit=1) == "did you mean topics?"
    assert did_you_mean("legacy", ["orders", "legacy-import-of-invoices"]) == "did you mean legacy-import-of-invoices?"
    assert did_you_mean("leaders", ["clear", "users"]) is None
