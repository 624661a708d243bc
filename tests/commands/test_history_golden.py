"""What the commands of the history print on the sample, in three formats: compared with the files under ``golden/``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.engine.session import Session
from kshell.render import render
from tests import goldens
from tests.commands.shell import run

GOLDEN = Path(__file__).parent / "golden"
FORMATS = ("text", "csv", "jsonl")
LINES = {
    "as-of": ("as-of 160",),
    "mark": ("mark before-import 158", "mark now", "mark"),
    "log": ("log /image/topics/byName/legacy-import",),
    "log-stat": ("log --stat",),
    "diff": ("diff 160 now /image/topics/byName/legacy-import",),
    "diff-stat": ("diff 160 now --stat",),
    "blame": ("blame /image/topics/byName/legacy-import/0",),
    "blame-directory": ("blame /image/configs/TOPIC:orders",),
    "why": ("why legacy-import-0",),
    "why-broker": ("why broker-3",),
    "why-controller": ("why controller-3000",),
    "why-topic": ("why orders",),
    "timeline": ("timeline orders --since 100",),
    "when": ("when brokers --where fenced",),
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", LINES)
def test_is_as_it_was(sample: Session, name: str, fmt: str) -> None:
    """``KSHELL_UPDATE_GOLDEN=1`` writes the files anew."""
    text = ""
    for line in LINES[name]:
        text = "".join(render(run(sample, line), fmt, width=120))
    file = GOLDEN / f"{name}.{fmt}"
    if goldens.are_written():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.read_bytes().decode("utf-8") == text, goldens.differs(file)
