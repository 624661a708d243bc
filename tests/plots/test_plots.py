"""Which answers have a picture, and what is said where there is none."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kshell.engine.registry import commands
from kshell.engine.result import Column, Result, Rows
from kshell.errors import UsageError
from kshell.extras import install_command
from kshell.plots import declared_pictures, draw, picture_of
from kshell.plots.picture import DECLARED, Picture
from kshell.plots.picture import picture as declare_picture
from kshell.plots.theme import TROUBLE
from kshell.plots.vega import MIME
from tests.plots.answers import HOSTILE, answer, figure, quorum, replica, rows, stretches, texts


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("timeline --all", "leadership and ISR over time"),
        ("skew", "leaders and replicas by broker"),
        ("brokers --load", "leaders and replicas by broker"),
        ("skew --rack", "leaders and replicas by rack"),
        ("quorum", "lag of the quorum"),
        ("log", "records by type over time"),
        ("dump", "records by type over time"),
        ("follow --since 0 --count 3", "records by type over time"),
        ("topics", "partition states by topic"),
        ("partitions", "partitions by topic and state"),
    ],
)
def test_each_command_has_its_picture(line: str, name: str) -> None:
    found = picture_of(answer(line))
    assert found is not None
    assert found.name == name
    assert any(line.startswith(command) for command in found.commands)


@pytest.mark.parametrize("line", ["pwd", "ls /", "brokers", "blame /image/topics", "skew --columns leaders", "tree /"])
def test_others_have_none(line: str) -> None:
    result = answer(line)
    assert picture_of(result) is None
    with pytest.raises(UsageError, match="no picture") as caught:
        draw(result)
    for name in ("timeline", "skew", "skew --rack", "brokers --load", "quorum", "log", "dump", "topics"):
        assert name in (caught.value.hint or "")


def test_every_command_that_is_named_exists() -> None:
    names = {name.split()[0] for picture in declared_pictures() for name in picture.commands}
    assert names <= {command.name for command in commands()}


@pytest.mark.parametrize("picture", declared_pictures(), ids=lambda picture: str(picture.name))
def test_no_rows_is_an_error(picture: Picture) -> None:
    empty = Rows(tuple(map(Column, (*picture.needs, *picture.any_of[:1]))), [])
    with pytest.raises(UsageError, match=f"nothing to draw for {picture.name}: the answer has no rows"):
        draw(empty)


def test_a_name_is_that_of_one_picture() -> None:
    (name, *_) = (picture.name for picture in declared_pictures())
    with pytest.raises(ValueError, match="is declared twice"):
        declare_picture(name, needs=("a",))(lambda rows: pytest.fail("drawn"))
    assert all(picture.needs != ("a",) for picture in DECLARED.values())


def test_rows_that_are_made_while_they_are_read_are_kept() -> None:
    result = answer("dump")
    assert isinstance(result, Rows)
    draw(result)
    assert len(list(result.rows)) == len(list(result.rows)) > 200


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match="needs the package matplotlib") as caught:
        draw(answer("skew"))
    assert caught.value.hint == install_command("notebook")


def test_looking_for_a_picture_loads_no_matplotlib_and_drawing_no_pyplot() -> None:
    program = (
        "import sys, kshell.plots as plots\n"
        "from kshell.engine.result import Column, Rows\n"
        "row = {'broker': 1, 'leaders': 2, 'replicas': 3}\n"
        "found = Rows(tuple(map(Column, row)), [row])\n"
        "assert plots.picture_of(found)\n"
        "print('matplotlib' in sys.modules, plots.draw(found).png()[:4], 'matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == r"False b'\x89PNG' False", done.stderr


@pytest.mark.parametrize(
    "result",
    [
        rows(
            "topic partition fromTimeMs toTimeMs leader isrSize replicas",
            *stretches(HOSTILE, 0, (10, 1, 3), (5, -1, 0)),
        ),
        rows("rack leaders replicas soleRack", (HOSTILE, 3, 4, 1), (None, 2, 2, 0)),
        rows("broker rack fenced leaders replicas", (1, HOSTILE, False, 4, 6)),
        rows("name partitions underReplicated offline", (HOSTILE, 4, 2, 1)),
        rows("topic partition state", (HOSTILE, 0, "offline"), (HOSTILE, 1, HOSTILE)),
        rows("offset timestampMs type data", (1, 5, HOSTILE, {}), (2, 900, "A", {})),
        rows("offset timestampMs type data", (1, 5, HOSTILE, {})),
        quorum([replica(3000, 0), {**replica(1, 3), "id": HOSTILE}]),
    ],
    ids=["timeline", "racks", "brokers", "topics", "partitions", "records", "one record", "quorum"],
)
def test_names_are_text_and_nothing_else(result: Result) -> None:
    plot = draw(result)
    words = "".join(texts(plot)) + plot.alt
    assert words.isprintable()
    assert "\\x1b" in plot.alt + words
    page = plot.to_html()
    assert "<img src=x" not in page
    assert page.count("<") == 1
    for text in figure(plot).findobj(lambda artist: hasattr(artist, "get_parse_math")):
        assert not text.get_parse_math() or "$" not in text.get_text()
    assert plot.png().startswith(b"\x89PNG")  # letters that the font does not have would warn, and so fail


def test_a_timeline_to_zoom_has_every_stretch_as_text_beside_the_picture() -> None:
    names = ("<img src=x onerror=alert(1)>", "\x1b[31mred")
    stretches_of = [
        {"topic": name, "partition": 0, "fromTimeMs": 1_000, "toTimeMs": None if leader < 0 else 2_000,
         "leader": leader, "isrSize": 1, "isr": [1], "replicas": [1, 2]}
        for name in names for leader in (1, -1)
    ]  # fmt: skip
    result = Rows(tuple(map(Column, stretches_of[0])), stretches_of)
    forms, _ = draw(result, interactive=True)._repr_mimebundle_()
    spec = forms[MIME]
    assert forms.keys() == {MIME, "image/png", "text/plain"} and MIME not in draw(result)._repr_mimebundle_()[0]
    assert len(spec["data"]["values"]) == 4 and "\x1b" not in json.dumps(spec["data"], ensure_ascii=False)
    assert {value["fact1"] for value in spec["data"]["values"]} == {"1970-01-01T00:00:02.000Z", "now"}
    assert all(value["to"] > value["from"] for value in spec["data"]["values"])
    scale = spec["encoding"]["color"]["scale"]
    assert scale["domain"] == ["1", "nobody"] and scale["range"][1] == TROUBLE
    with pytest.raises(UsageError, match="no interactive picture"):
        draw(answer("skew"), interactive=True)


def test_the_same_rows_give_the_same_bytes() -> None:
    for line in ("timeline --all", "skew", "dump"):
        assert draw(answer(line)).png() == draw(answer(line)).png()
