"""Pictures of notebooks for docs/images: ``python -m tests.browser.screenshots [TARGET]``. Whoever makes them looks."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Locator, expect

from tests.browser.desk import LIMIT, TROUBLE, Desk, browser, desk
from tests.browser.lab import THEMES, Lab, serve
from tests.notebooks.running import ROOT

TARGET = ROOT / "docs" / "images"
LARGEST = 150_000
"""Bytes of a picture."""
_SHADOW = 4
"""CSS pixels below a menu."""
CELLS = {
    "tree": "%kafka cat /image/cluster",
    "table": "%kafka topics --sort -underReplicated --columns name,partitions,underReplicated,configs",
    "diff": "%kafka diff 150 now /image/topics/byName/orders",
    "health": "%kafka health",
    "plot": "orders = %kafka timeline /image/topics/byName/orders\norders.plot()",
}
_CONNECT = "%load_ext kshell\n%kafka connect --demo"
_COMPLETED = "%kafka con"
_SMALLER = {"viewport": {"width": 1000, "height": 1600}, "device_scale_factor": 1.5}


def take(started: Browser, lab: Lab, theme: str, target: Path) -> list[Path]:
    """All pictures of a theme."""
    name = f"pictures-{theme}.ipynb"
    lab.add(name, [_CONNECT, *CELLS.values(), ""])
    taken = []
    with desk(started, lab, name, theme, **_SMALLER) as found:
        found.run_all()
        assert found.cells.locator(TROUBLE).all_inner_texts() == []
        found.page.mouse.move(0, 0)
        for number, shown in enumerate(CELLS, 1):
            taken.append(_kept(_shot(found, [found.cells.nth(number)]), target / f"notebook-{shown}-{theme}.png"))
        found.type(_COMPLETED)
        found.page.keyboard.press("Tab")
        expect(found.candidates.nth(1)).to_be_visible(timeout=LIMIT)
        seen = [found.cells.last, found.page.locator(".jp-Completer")]
        taken.append(_kept(_shot(found, seen), target / f"notebook-completion-{theme}.png"))
    return taken


def _shot(found: Desk, seen: list[Locator]) -> bytes:
    """What holds all of these."""
    seen[0].scroll_into_view_if_needed()
    boxes = [box for one in seen if (box := one.bounding_box())]
    assert len(boxes) == len(seen)
    return found.page.screenshot(clip=_around(boxes), animations="disabled", caret="hide")


def _around(boxes: list[FloatRect]) -> FloatRect:
    left, top = (min(box[side] for box in boxes) for side in ("x", "y"))
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes) + _SHADOW * (len(boxes) > 1)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def _kept(picture: bytes, path: Path) -> Path:
    """Writes a picture with no more colours than it takes: letters on a plain page have few."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(io.BytesIO(picture)) as whole:
        few = whole.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
    assert path.stat().st_size < LARGEST, f"{path.name} has {path.stat().st_size} bytes"
    return path


def main(target: Path) -> None:
    """Every picture in every theme."""
    with tempfile.TemporaryDirectory() as place, serve(Path(place) / "work") as lab, browser() as started:
        for theme in THEMES:
            for path in take(started, lab, theme, target):
                print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else TARGET)
