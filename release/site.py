"""What mkdocs does not do by itself (a hook, see mkdocs.yml): pages from the checkout's root, and whole directories.

Links are written for whoever reads the repository. Here those between pages are made to fit the site, and those to
other files (sources, tests), which the site does not have, become plain text.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages of the site by their file in the checkout."""

INSTEAD = {"notebooks": "notebook.md", "notebooks/README.md": "notebook.md", "docs/decisions": "decisions/index.md"}
"""Pages for what is no page."""

_CODE = re.compile(r"(^ *```.*?^ *```+ *$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^]]*\]|!\[[^]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def for_site(text: str, source: str) -> str:
    """Return a page with the links of the site.

    Args:
        text: Markdown.
        source: the page's file, relative to the checkout.
    """
    page = FROM_ROOT.get(source, source.removeprefix("docs/"))

    def link(match: re.Match[str]) -> str:
        label, (target, mark, anchor) = match[1], match[2].partition("#")
        if re.match(r"[a-z]+:", match[2]) or not target:
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        found = FROM_ROOT.get(file) or INSTEAD.get(file)
        if found is None and file.startswith("docs/") and (ROOT / file).is_file():
            found = file.removeprefix("docs/")
        if found is None:
            return label
        return f"[{label}]({posixpath.relpath(found, posixpath.dirname(page) or '.')}{mark}{anchor})"

    # Labels may hold code, so code is kept out of the way only where a link could not begin or end in it.
    blocks: list[str] = []

    def keep(match: re.Match[str]) -> str:
        blocks.append(match[0])
        return f"\0{len(blocks) - 1}\0"

    linked = _LINK.sub(link, _CODE.sub(keep, text))
    return re.sub(r"\0(\d+)\0", lambda match: blocks[int(match[1])], linked)


def decisions() -> str:
    """The index of the decisions."""
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        number, _, title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        rows.append(f"| {number} | [{title}]({path.name}) |\n")
    return (
        f"# Decisions\n\nChoices that may be undone, with what was measured.\n\n| | |\n| --- | --- |\n{''.join(rows)}"
    )


def on_config(config: Any) -> Any:
    """Fill in the directories of the navigation."""
    config["nav"] = [_expanded(entry) for entry in config["nav"]]
    return config


def _expanded(entry: dict[str, Any]) -> dict[str, Any]:
    ((title, target),) = entry.items()
    if isinstance(target, list):
        return {title: [_expanded(child) for child in target]}
    if not target.endswith("/"):
        return entry
    index = [f"{target}index.md"] if target == "decisions/" else []
    return {title: [*index, *(f"{target}{path.name}" for path in sorted((ROOT / "docs" / target).glob("*.md")))]}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    pages = importlib.import_module("mkdocs.structure.files").File
    for name, page in FROM_ROOT.items():
        files.append(pages.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(pages.generated(config, "decisions/index.md", content=decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make the links of a page fit the site."""
    sources = {site: name for name, site in FROM_ROOT.items()}
    return for_site(markdown, sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
