"""The file of contexts: what it keeps, how it is written, and what is in the way."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from kshell.client import contexts
from kshell.client.contexts import CONTROLLERS, SERVERS, Context
from kshell.errors import CommandError, UsageError


def environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder)}


def test_where_the_file_is() -> None:
    assert contexts.file_path({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == "/c/kshell/contexts.json"
    assert contexts.file_path({"XDG_CONFIG_HOME": "c", "HOME": "/h"}) == "/h/.config/kshell/contexts.json"
    assert contexts.file_path({"HOME": "/h"}) == "/h/.config/kshell/contexts.json"
    assert contexts.file_path({}) is None


def test_there_and_back(tmp_path: Path) -> None:
    known = contexts.load(environment(tmp_path / "config"))
    assert (known.current, known.named) == (None, {})
    prod, dev = Context("prod", CONTROLLERS, "a:1", "/c.properties"), Context("dev", None, None, "/d.properties")
    known.add(prod)
    known.add(dev)
    known.use("prod")
    known.save()
    again = contexts.load(environment(tmp_path / "config"))
    assert (again.current, again.named) == ("prod", {"prod": prod, "dev": dev})
    again.remove("prod")
    again.save()
    last = contexts.load(environment(tmp_path / "config"))
    assert (last.current, list(last.named)) == (None, ["dev"])
    path = tmp_path / "config" / "kshell" / "contexts.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["contexts.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = contexts.load(environment(tmp_path))
    known.add(Context("a", SERVERS, "a:1", None))
    known.save()
    known.add(Context("b", SERVERS, "b:1", None))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CommandError, match="No space left"):
        known.save()
    assert list(contexts.load(environment(tmp_path)).named) == ["a"]
    assert os.listdir(tmp_path / "kshell") == ["contexts.json"]


def test_names(tmp_path: Path) -> None:
    known = contexts.load(environment(tmp_path))
    for name in ("", "-x", "a b", "a/b", "a\n"):
        with pytest.raises(UsageError, match="cannot be a context's name"):
            known.add(Context(name, SERVERS, "a:1", None))
    known.add(Context("prod", SERVERS, "a:1", None))
    with pytest.raises(UsageError, match="there is a context of that name"):
        known.add(Context("prod", SERVERS, "a:1", None))
    with pytest.raises(UsageError, match="no such context") as raised:
        known.get("prd")
    assert raised.value.hint == "did you mean prod?"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 100_000, '{"version": 2, "contexts": {}}', '{"version": 1, "contexts": {"a": 1}}',
     '{"version": 1, "contexts": {"a": {"config": 1}}}'],
)  # fmt: skip
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "kshell").mkdir()
    (tmp_path / "kshell" / "contexts.json").write_text(text)
    with pytest.raises(UsageError, match=r"contexts\.json: not a file of contexts"):
        contexts.load(environment(tmp_path))


def test_a_default_that_is_gone_is_none(tmp_path: Path) -> None:
    (tmp_path / "kshell").mkdir()
    stored = {"version": 1, "current": "x", "contexts": {"a": {"bootstrapServers": "a:1"}}}
    (tmp_path / "kshell" / "contexts.json").write_text(json.dumps(stored))
    known = contexts.load(environment(tmp_path))
    assert known.current is None
    assert known.named == {"a": Context("a", SERVERS, "a:1", None)}


@pytest.mark.timeout(20)
def test_a_pipe_in_the_files_place_holds_nobody(tmp_path: Path) -> None:
    (tmp_path / "kshell").mkdir()
    os.mkfifo(tmp_path / "kshell" / "contexts.json")
    with pytest.raises(UsageError, match=r"contexts\.json: not a file of contexts"):
        contexts.load(environment(tmp_path))
