"""What a notebook, a page and a file get."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CommandError, UsageError
from kshell.plots import draw
from kshell.plots.picture import Plot
from tests.plots.answers import answer, rows


@pytest.fixture(scope="module")
def plot() -> Plot:
    return draw(answer("skew"))


def test_in_a_notebook(plot: Plot) -> None:
    data, about = plot._repr_mimebundle_()
    image = base64.b64decode(data["image/png"])
    assert image == plot.png()
    width, height = struct.unpack(">II", image[16:24])
    assert about["image/png"] == {"width": width // 2, "height": height // 2, "alt": plot.alt}
    assert data["text/plain"] == plot.alt == repr(plot)


@pytest.mark.parametrize(
    ("include", "exclude", "kinds"),
    [
        (["text/plain"], None, ["text/plain"]),
        (None, ["image/png"], ["text/plain"]),
        (["image/png"], [], ["image/png"]),
        (["text/html"], None, []),
    ],
)
def test_only_what_is_asked_for(
    plot: Plot, include: list[str] | None, exclude: list[str] | None, kinds: list[str]
) -> None:
    data, about = plot._repr_mimebundle_(include, exclude)
    assert list(data) == kinds
    assert list(about) == [kind for kind in kinds if kind == "image/png"]


def test_in_a_page() -> None:
    page = draw(rows("name partitions underReplicated offline", ('"><script>', 1, 0, 1))).to_html()
    assert page.startswith('<img src="data:image/png;base64,')
    assert "&quot;&gt;&lt;script&gt;" in page
    assert 'width="880"' in page


def test_there_is_no_background(plot: Plot) -> None:
    import io

    from matplotlib.image import imread

    pixels = imread(io.BytesIO(plot.png()))
    assert pixels[0, 0, 3] == 0
    assert (pixels[..., 3] == 0).mean() > 0.5


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_files_are_the_same_each_time(ending: str, tmp_path: Path) -> None:
    one, two = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
    for path in (one, two):
        draw(answer("skew")).save(path)
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size > 1000


def test_files_that_cannot_be(plot: Plot, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be saved as docx") as caught:
        plot.save(tmp_path / "a.docx")
    assert "png" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="without an ending"):
        plot.save(tmp_path / "a")
    with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
        plot.save(tmp_path / "nowhere" / "a.png")


def test_a_persons_own_settings_change_nothing_and_stay() -> None:
    import matplotlib

    before = draw(answer("skew")).png()
    mine: Any = {"font.family": ["serif"], "axes.facecolor": "red", "figure.dpi": 33, "savefig.facecolor": "black"}
    with matplotlib.rc_context(mine):
        assert draw(answer("skew")).png() == before
        assert matplotlib.rcParams["axes.facecolor"] == "red"
        assert matplotlib.rcParams["font.family"] == ["serif"]
