"""No secret leaves without ``--show-secrets``: canaries in every secret place, every command, every format."""

from __future__ import annotations

import traceback
import zipfile
from pathlib import Path

import pytest

from kshell.engine import registry
from kshell.engine.execution import prepare
from kshell.engine.result import Nothing
from kshell.engine.session import Session
from kshell.render import render
from tests import builders
from tests.canaries.planted import Canaries, config, scram, secret_values, write_small
from tests.commands.shell import FORMATS, opened

LINES = (
    "ls -lR /",
    "cat /",
    "cat /image /log",
    "cat /image/scram/SCRAM-SHA-256/alice",
    "cat /image/configs/BROKER:1/ssl.keystore.password",
    "tree --values /",
    "find / --values",
    "find /",
    "grep . /",
    "grep -v zzz /",
    "stat /image/configs/BROKER:1/ssl.keystore.password",
    "stat /image/configs/BROKER:1/*",
    "info",
    "dump",
    "dump --type CONFIG_RECORD",
    "dump --snapshot 3-1",
    "brokers",
    "timeline --all",
    "when configs --where 'value != x'",
    "configs",
    "configs BROKER:1",
    "controllers",
    "follow --since 3 --count 17 --noop",
    "quorum",
    "as-of",
    "mark",
    "log --noop",
    "log /image/configs",
    "diff 2 now",
    "diff 2 now --json-patch",
    "blame /image",
    "blame /image/scram/SCRAM-SHA-256/alice",
    "acls",
    "can User:alice READ TOPIC:orders",
    "explain 4",
    "explain 1 --snapshot 3-1",
    "features",
    "hash",
    "health",
    "partitions",
    "plan-restore",
    "plan-restore --show-secrets",
    "quotas",
    "registrations",
    "skew",
    "sql 'SELECT * FROM configs'",
    "status",
    "tokens",
    "topics",
    "users",
    "verify --deep",
)
"""Every command that shows data, at data that holds secrets."""


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def directory(tmp_path: Path, canaries: Canaries) -> Path:
    return write_small(tmp_path / "d", canaries)


def shown(session: Session, line: str, fmt: str) -> str:
    """What a line prints; what it raises is shown, too."""
    call = prepare(session, line)
    assert call is not None
    result = call.run()
    if isinstance(result, Nothing):
        return ""
    said = [*call.session.problems(), *call.session.notes()]
    return "".join(render(result, fmt, width=None)) + "\n".join(said) + repr(result)


@pytest.mark.parametrize("fmt", FORMATS)
def test_nothing_is_seen(directory: Path, canaries: Canaries, fmt: str) -> None:
    session = opened(directory)
    for line in LINES:
        assert canaries.seen_in(shown(session, line, fmt)) == set(), line


@pytest.mark.parametrize("fmt", FORMATS)
def test_everything_is_seen_when_asked_for(directory: Path, canaries: Canaries, fmt: str) -> None:
    session = opened(directory)
    dumped = shown(session, "dump --show-secrets", fmt) + shown(session, "dump --snapshot 3-1 --show-secrets", fmt)
    assert canaries.seen_in(dumped) == set(canaries.made.values())
    # The next answer hides again.
    assert canaries.seen_in(shown(session, "dump", fmt)) == set()


@pytest.mark.parametrize("fmt", FORMATS)
def test_records_in_which_copies_differ_hide_theirs(
    directory: Path, tmp_path: Path, canaries: Canaries, fmt: str
) -> None:
    other = tmp_path / "other"
    builders.write_snapshot(other, builders.snapshot(secret_values(canaries, "other snapshot")), end_offset=3)
    later = builders.batch(secret_values(canaries, "other log"), 4)
    builders.write_log(other, builders.control_batch([builders.leader_change()], 3), later, base_offset=3)
    line = f"compare-logs {directory} {other}"
    assert "diverged" in shown(opened(directory), line, fmt)
    assert canaries.seen_in(shown(opened(directory), line, fmt)) == set()


def test_a_support_bundle_holds_none(directory: Path, tmp_path: Path, canaries: Canaries) -> None:
    assert "alice" in bundled(directory, tmp_path / "bundle.zip")
    assert canaries.seen_in(bundled(directory, tmp_path / "bundle.zip --force")) == set()


def bundled(directory: Path, arguments: Path) -> str:
    """Every byte of a bundle's files, as text."""
    shown(opened(directory), f"support-bundle {arguments}", "json")
    with zipfile.ZipFile(str(arguments).removesuffix(" --force")) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def test_a_report_holds_none(directory: Path, tmp_path: Path, canaries: Canaries) -> None:
    shown(opened(directory), f"report --to {tmp_path / 'report.html'}", "json")
    page = (tmp_path / "report.html").read_text()
    assert "alice" in page
    assert canaries.seen_in(page) == set()


def test_values_are_seen_in_the_tree_when_asked_for(directory: Path, canaries: Canaries) -> None:
    seen = canaries.seen_in(shown(opened(directory), "find / --values --show-secrets", "json"))
    assert {"snapshot scram salt", "log scram serverKey", "log sensitive key", "log unknown topic key"} <= seen
    assert {"log malformed scram", "snapshot higher version of a config"} <= seen


def test_grep_is_no_oracle(directory: Path, canaries: Canaries) -> None:
    session = opened(directory)
    for canary in canaries.made:
        for form in (canary, canary[:7], canary.encode().hex(), canary.upper()):
            assert shown_rows(session, f"grep -i {form} /") == 0
            assert shown_rows(session, f"log --grep '(?i){form}'") == 0
    asked = sum(shown_rows(session, f"grep -F {canary} / --show-secrets") for canary in canaries.made)
    assert asked > 0


def shown_rows(session: Session, line: str) -> int:
    call = prepare(session, line)
    assert call is not None
    return len(list(call.run()))  # type: ignore[call-overload]  # Rows


def test_no_error_tells_a_secret(tmp_path: Path, canaries: Canaries) -> None:
    """A record that cannot be decoded, at every byte that it can be cut at."""
    whole = [scram(canaries, "scram", "alice"), config(4, "1", "ssl.key.password", canaries.text("key"))]
    for number, value in enumerate(whole):
        for end in range(len(value)):
            folder = tmp_path / f"{number}-{end}"
            builders.write_log(
                folder, builders.control_batch([builders.leader_change()]), builders.batch([value[:end]], 1)
            )
            session = opened(folder)
            try:
                text = "".join(shown(session, line, "json") for line in ("find / --values", "dump", "info"))
            except Exception:
                text = traceback.format_exc()
            assert canaries.seen_in(text) == set(), (number, end)


def test_every_command_that_shows_data_is_tried() -> None:
    # Of one node, asked by itself: tests of their own.
    live = {"api-versions", "compat", "loggers"}
    silent = {
        "alias",
        "cd",
        "clear",
        "completion",
        "context",
        "exit",
        "help",
        "history",
        "man",
        "pwd",
        "quit",
        "reload",
        "set",
    }
    silent |= {"source", "unalias", "version"}
    # What these give, tests of their own look at; watch shows the answers of other commands.
    silent |= live | {"compare-logs", "drain-check", "export", "recover", "report", "save", "strays", "support-bundle"}
    silent |= {"mcp", "top", "watch", "what-if", "why"}
    looked_at = {line.split()[0] for line in LINES} | silent
    assert looked_at == set(registry.names()), "give LINES a line of the command, or `silent` its name"


def test_a_secret_field_of_a_record_is_secret_in_the_tree_as_well() -> None:
    """The field says so for records, the family for leaves: both must name the same fields."""
    from kshell.metadata.image import families
    from kshell.metadata.records import record_types

    in_records = {
        name for kind in record_types().values() for name, how in kind.schema.secrets.items() if how == "secret"
    }
    in_leaves = {name for family in families().values() for name in family.secret}
    assert in_records == in_leaves != set()
