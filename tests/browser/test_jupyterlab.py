"""``%kafka`` in JupyterLab, as somebody with a browser uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.needed import is_required

if not is_required():
    pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, expect

from tests import builders
from tests.browser.desk import LIMIT, TROUBLE, Desk, desk
from tests.browser.lab import Lab
from tests.canaries.planted import IMAGE, hostile_values

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CONNECT = "%load_ext kshell\n%kafka connect --demo"


def rows(output: Locator) -> Locator:
    """The lines of a table's body."""
    return output.locator("tbody tr")


def calm(found: Desk) -> None:
    """No cell failed or warned, nothing ran that came from an output, and nobody outside was asked."""
    assert found.cells.locator(TROUBLE).all_inner_texts() == []
    assert found.cells.locator(".jp-OutputArea-output script").count() == 0
    assert found.errors == []
    assert {address for address in found.asked if not re.match(r"(http://127\.0\.0\.1:|data:|blob:)", address)} == set()


def contrast(output: Locator) -> float:
    """How far the ink of an element is from the page below it, as WCAG counts: 1 to 21."""
    found: float = output.evaluate(
        """element => {
            const parts = color => color.match(/[\\d.]+/g).map(
                (part, place) => color.startsWith("color(") && place < 3 ? part * 255 : Number(part));
            let below = element;
            while (below && (parts(getComputedStyle(below).backgroundColor)[3] ?? 1) === 0) below = below.parentElement;
            const light = ([...rgb]) => rgb.slice(0, 3).map(part => part / 255)
                .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
                .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
            const both = [getComputedStyle(element).color, getComputedStyle(below ?? document.body).backgroundColor];
            const [low, high] = both.map(parts).map(light).sort((a, b) => a - b);
            return (high + 0.05) / (low + 0.05);
        }"""
    )
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_tour(chromium: Browser, lab: Lab, theme: str) -> None:
    name = f"tour-{theme}.ipynb"
    lab.add_own("tour.ipynb", name)
    cells: list[dict[str, Any]] = json.loads(lab.saved(name))["cells"]
    topics = next(number for number, cell in enumerate(cells) if "".join(cell["source"]).startswith("topics = %kafka"))
    with desk(chromium, lab, name, theme) as tour:
        assert tour.evaluate("() => document.body.dataset.jpThemeLight") == str(theme == "light").lower()
        tour.run_all()
        calm(tour)
        ran = [tour.number(number) for number, cell in enumerate(cells) if cell["cell_type"] == "code"]
        assert ran == [f"[{number}]:" for number in range(1, len(ran) + 1)]
        assert rows(tour.outputs(topics)).count() == 12
        expect(rows(tour.outputs(topics)).nth(6)).to_contain_text("legacy-import")
        assert contrast(rows(tour.outputs(topics)).nth(6).locator("td").first) > 4.5
        pictures = tour.cells.locator(".jp-OutputArea-output img")
        assert pictures.count() > 0
        assert all(pictures.evaluate_all("pictures => pictures.map(one => one.complete && one.naturalWidth > 500)"))
        tour.save()
    saved = lab.saved(name)
    assert "legacy-import" in saved and "<script" not in saved


def test_tab_completes(chromium: Browser, lab: Lab) -> None:
    lab.add("complete.ipynb", [CONNECT, ""])
    with desk(chromium, lab, "complete.ipynb") as found:
        found.run_all()
        for typed, completed in (
            ("%kafka ls /image/to", "%kafka ls /image/topics/"),
            ("%kafka timel", "%kafka timeline"),
            ("x = %kafka topics --wh", "x = %kafka topics --where"),
        ):
            found.type(typed)
            found.page.keyboard.press("Tab")
            expect(found.candidates).to_have_count(1, timeout=LIMIT)
            found.page.keyboard.press("Tab")  # JupyterLab shows what it would insert first, even the only one
            expect(found.candidates).to_have_count(0, timeout=LIMIT)
            assert found.typed() == completed
        calm(found)


def test_the_menu_has_several_candidates(chromium: Browser, lab: Lab) -> None:
    lab.add("menu.ipynb", [CONNECT, ""])
    with desk(chromium, lab, "menu.ipynb") as found:
        found.run_all()
        found.type("%kafka con")
        found.page.keyboard.press("Tab")
        expect(found.candidates).to_have_count(4, timeout=LIMIT)
        words = found.candidates.locator(".jp-Completer-match")
        assert words.all_inner_texts() == ["configs", "connect", "context", "controllers"]
        # What stands beside a word is a word, too: JupyterLab draws sentences over each other.
        kinds = found.candidates.locator(".jp-Completer-typeExtended").all_inner_texts()
        assert all(re.fullmatch(r"\w+", kind) for kind in kinds), kinds
        found.page.keyboard.press("ArrowDown")
        found.page.keyboard.press("Enter")
        expect(found.candidates).to_have_count(0, timeout=LIMIT)
        assert found.typed() == "%kafka connect"


def test_follow_draws_in_its_place_until_the_stop_button(chromium: Browser, lab: Lab, tmp_path: Path) -> None:
    log = builders.write_log(tmp_path / "data", builders.control_batch([builders.leader_change()]))
    lab.add("follow.ipynb", [f"%load_ext kshell\n%kafka connect -d {tmp_path / 'data'}", ""])
    with desk(chromium, lab, "follow.ipynb") as found:
        found.run_all()
        found.start("x = %kafka follow")
        output = found.outputs()
        expect(output).to_contain_text("0 records, following", timeout=LIMIT)
        for number in (1, 2):
            topic = builders.value("TOPIC", name=f"came-{number}", topicId=builders.uuid(number))
            with log.open("ab") as end:
                end.write(builders.batch([topic], number))
            said = f"{number} record{'s' * (number > 1)}, following"
            expect(output).to_contain_text(said, timeout=LIMIT)  # of one output: a second would be an error
            assert rows(output).count() == number
        assert found.number() == "[*]:"
        found.interrupt()
        expect(output).to_contain_text("2 records, interrupted", timeout=LIMIT)
        # The kernel may say that it is idle before the page has read its answer, which has the number.
        expect(found.prompt()).to_have_text(re.compile(r"^\[\d+\]:$"), timeout=LIMIT)
        found.wait_until_idle()
        expect(rows(output)).to_have_count(2)
        expect(output).to_contain_text("came-2")
        found.run("len(x), x.exit_code")
        expect(output).to_have_text(re.compile(r"^\s*\(2, 130\)\s*$"))
        calm(found)


def test_an_error_is_short(chromium: Browser, lab: Lab) -> None:
    lab.add("error.ipynb", [CONNECT, "%kafka ls /image/nowhere", "1"])
    with desk(chromium, lab, "error.ipynb") as found:
        found.run_all()
        with pytest.raises(AssertionError):
            calm(found)
        said = found.outputs(1).inner_text().strip().split("\n")
        assert "/image/nowhere" in said[0] and len(said) < 5, said
        assert found.errors == [] and found.number(2) == "[ ]:"


def test_branches_fold_without_a_script(chromium: Browser, lab: Lab) -> None:
    lab.add("tree.ipynb", [CONNECT, "%kafka tree /image/cluster"])
    with desk(chromium, lab, "tree.ipynb") as found:
        found.run_all()
        root = found.outputs().locator("details").first
        inner = root.locator("details").first
        expect(inner).to_be_visible()
        root.locator("> summary").click()
        expect(inner).to_be_hidden()
        root.locator("> summary").click()
        expect(inner).to_be_visible()
        calm(found)


def test_a_timeline_is_zoomed_and_pointed_at(chromium: Browser, lab: Lab) -> None:
    cell = "x = %kafka timeline /image/topics/byName/orders\nx.plot(interactive=True)"
    lab.add("zoom.ipynb", [CONNECT, cell])
    with desk(chromium, lab, "zoom.ipynb") as found:
        found.run_all()
        drawn = found.outputs(1).locator("canvas, svg").first
        expect(drawn).to_be_visible(timeout=LIMIT)
        drawn.hover(position={"x": 200, "y": 60})
        expect(found.page.locator("#vg-tooltip-element")).to_contain_text("2026-11-21T15:11", timeout=LIMIT)
        before = drawn.screenshot()
        found.page.mouse.wheel(0, -400)
        found.page.wait_for_timeout(300)
        assert drawn.screenshot() != before
        calm(found)
        found.save()
    assert "<script" not in lab.saved("zoom.ipynb") and "image/png" in lab.saved("zoom.ipynb")


def test_a_notebook_of_somebody_else_looks_the_same(chromium: Browser, lab: Lab) -> None:
    """JupyterLab takes a lot out of outputs that did not come from its own kernel."""
    lab.add("mine.ipynb", [CONNECT, "%kafka tree /image/cluster", "%kafka diff 165 206 /image/cluster"])
    with desk(chromium, lab, "mine.ipynb") as found:
        found.run_all()
        calm(found)
        mine = [look(found, cell) for cell in range(3)]
        found.save()
    theirs = json.loads(lab.saved("mine.ipynb"))
    theirs["cells"][0]["source"] += "\n# signed by nobody"
    lab.write("theirs.ipynb", theirs)
    with desk(chromium, lab, "theirs.ipynb") as found:
        assert found.cells.locator(".jp-OutputArea-output.jp-mod-trusted").count() == 0
        assert [look(found, cell) for cell in range(3)] == mine
        calm(found)


def look(found: Desk, cell: int) -> list[list[str]]:
    """What can be seen of an output's elements: name, size, colours."""
    looks: list[list[str]] = found.outputs(cell).evaluate_all(
        """outputs => outputs.flatMap(output => [...output.querySelectorAll("*")]).map(element => {
            const style = getComputedStyle(element);
            const box = element.getBoundingClientRect();
            const size = [box.width, box.height].map(Math.round).join(" x ");
            return [element.tagName, size, style.color, style.backgroundColor, style.textAlign];
        })"""
    )
    assert looks
    return looks


def test_names_that_are_markup_stay_text(chromium: Browser, lab: Lab, tmp_path: Path) -> None:
    batches = builders.control_batch([builders.leader_change()]), builders.batch(hostile_values(), 1)
    builders.write_log(tmp_path / "data", *batches)
    lines = ["topics", "partitions", "tree /image", "cat /image", "brokers", "acls", "quotas", "configs", "log", "dump"]
    lines += ["diff 0 now", "health", "stat /image/topics/byName", "follow --since 0 --count 20"]
    cells = [f"%load_ext kshell\n%kafka connect -d {tmp_path / 'data'}", *(f"%kafka {line}" for line in lines)]
    lab.add("names.ipynb", [*cells, "x = %kafka timeline --all\nx.plot()"])
    with desk(chromium, lab, "names.ipynb") as found:
        found.run_all()
        calm(found)
        expect(found.outputs(1)).to_contain_text(IMAGE)
        assert found.cells.locator(".jp-OutputArea-output [onerror], .jp-OutputArea-output [onmouseover]").count() == 0
        assert found.cells.locator(".jp-OutputArea-output img[src='x']").count() == 0
