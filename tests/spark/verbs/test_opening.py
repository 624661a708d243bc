"""The session of a verb: which settings it has from its start, and which a step with few rows adds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kshell.spark.session import FOR_FEW_ROWS
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.verbs.warehouse.opening import open_warehouse


class Conf(dict[str, str]):
    """The settings of a session."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        del self[name]


def session(**settings: str) -> Any:
    return SimpleNamespace(conf=Conf(settings), sql=None)


def test_a_step_with_few_rows_has_settings_of_its_own(tmp_path: Path) -> None:
    spark = session(a="0")
    warehouse = Warehouse(spark, str(tmp_path))
    with warehouse.writing():
        warehouse.begin(few=True)
        with warehouse.settings_for_step():
            assert spark.conf == {"a": "0"}  # a session of somebody else
        warehouse.settings_for_few_rows = {"a": "1", "b": "2"}
        with pytest.raises(KeyError), warehouse.settings_for_step():
            assert spark.conf == {"a": "1", "b": "2"}
            raise KeyError
        assert spark.conf == {"a": "0"}
        warehouse.begin(few=False)
        with warehouse.settings_for_step():
            assert spark.conf == {"a": "0"}


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize(("master", "is_own"), [(None, True), ("local[1]", True), ("spark://host:7077", False)])
def test_what_the_user_sets_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str | None, is_own: bool, is_brief: bool
) -> None:
    started: list[Mapping[str, str]] = []

    @contextlib.contextmanager
    def running(
        master: str | None, *, settings: Mapping[str, str], brief: bool, log_level: str
    ) -> Iterator[SimpleNamespace]:
        started.append(settings)
        assert brief == (is_brief and is_own)
        yield session()

    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("kshell.spark.session.running", running)
    monkeypatch.setattr("kshell.spark.session.active", lambda: None)
    mine = {"spark.sql.adaptive.enabled": "true", "x": "y"}
    args: Any = SimpleNamespace(out=str(tmp_path), master=master, conf=list(mine.items()), spark_log="error")
    with open_warehouse(args) as place:
        place.is_brief = is_brief
        assert place.warehouse.spark is not None
        added = {name: value for name, value in FOR_FEW_ROWS.items() if name not in mine} if is_own else {}
        assert place.warehouse.settings_for_few_rows == added
        assert started == [(added if is_brief else {}) | mine]
    assert started and "spark.sql.adaptive.enabled" in FOR_FEW_ROWS


def test_a_session_of_somebody_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = session()
    monkeypatch.setattr("kshell.spark.session.active", lambda: theirs)
    args: Any = SimpleNamespace(out=str(tmp_path), master=None, conf=None, spark_log="error")
    with open_warehouse(args) as place:
        assert place.warehouse.spark is theirs
        assert place.warehouse.settings_for_few_rows == {}
