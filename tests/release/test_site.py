"""The documentation as a site: links that fit it, and (where mkdocs is installed) a build without a warning."""

from __future__ import annotations

import html.parser
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from kshell.engine import registry
from release.site import FROM_ROOT, decisions, for_site
from tests.needed import missing

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "text", "shown"),
    [
        ("README.md", "[live](docs/live.md#connecting)", "[live](live.md#connecting)"),
        (
            "README.md",
            "[all](docs/decisions/), [web](https://delta.io)",
            "[all](decisions/index.md), [web](https://delta.io)",
        ),
        ("docs/faq.md", "[home](../README.md#what-it-promises)", "[home](index.md#what-it-promises)"),
        ("docs/live.md", "[x](../tests/live/test_acls.py)", "x"),
        ("docs/decisions/0001-dependencies.md", "[`n`](../notebook.md) [here](#x)", "[`n`](../notebook.md) [here](#x)"),
        ("docs/notebook.md", "[five](../notebooks/README.md)", "[five](notebook.md)"),
        ("docs/live.md", "`[x](../y.md)`\n```\n[x](../y.md)\n```\n", "`[x](../y.md)`\n```\n[x](../y.md)\n```\n"),
        ("docs/notebook.md", "![a](images/a.png)", "![a](images/a.png)"),
    ],
)
def test_links_fit_the_site(source: str, text: str, shown: str) -> None:
    assert for_site(text, source) == shown


def test_every_decision_is_in_the_index() -> None:
    index = decisions()
    paths = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert re.findall(r"\]\(([^)]*)\)", index) == [path.name for path in paths]


def test_every_page_is_in_the_navigation() -> None:
    """Needs no mkdocs: whoever adds a page learns it here."""
    targets = re.findall(r"^ +- .*: (\S+(?:\.md|/))$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    known = {
        page
        for page in pages
        for target in targets
        if page == target or (target.endswith("/") and page.startswith(target))
    }
    assert pages - known == set()
    assert {target for target in targets if not target.endswith("/")} - pages == set(FROM_ROOT.values())


class Page(html.parser.HTMLParser):
    """What a page loads, what it links to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        elif tag == "link":
            self.loaded.append(values.get("href") or "")
        elif values.get("src"):
            self.loaded.append(values["src"] or "")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_loads_nothing_from_elsewhere_and_has_no_broken_link(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        missing("mkdocs is not installed (./dev docs --site DIR does that)")
    mkdocs = [sys.executable, "-I", "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(mkdocs, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = {path.relative_to(tmp_path).as_posix(): Page(path.read_text("utf-8")) for path in tmp_path.rglob("*.html")}
    names = {f"reference/commands/{command.name}.html" for command in registry.commands()}
    assert {*names, *(page.replace(".md", ".html") for page in FROM_ROOT.values()), "cookbook.html"} <= pages.keys()
    assert {address for page in pages.values() for address in page.loaded if urlsplit(address).netloc} == set()
    styles = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.css"))
    assert not re.search(r"@import|url\(['\"]?(https?:)?//", styles)
    broken = []
    for name, page in pages.items():
        if name == "404.html":  # its links are those of a server's root
            continue
        for link in [*page.links, *page.loaded]:
            scheme, host, path, _, anchor = urlsplit(link)
            if scheme or host:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), unquote(path))) if path else name
            is_there = (tmp_path / target).exists() and target != "."
            if not is_there or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                broken.append(f"{name}: {link}")
    assert broken == []
