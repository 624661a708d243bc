"""The pages are true: each ``$ kshell …`` in a block ``console`` prints what stands below it, and no link is broken.

``python -m tests.test_pages`` writes the outputs anew.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from kshell.cli import main
from kshell.version import __version__
from tests.builders import FIXTURES
from tests.docs_reference import place_for_examples
from tests.kafka import comparison

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^\$ (?P<line>kshell (?P<words>.*?)(?:  # exit code (?P<code>\d))?)$", re.MULTILINE)
WITH_EXAMPLES = sorted(path.name for path in DOCS.glob("*.md") if BLOCK.search(path.read_text("utf-8")))
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("notebooks/*.md"), *DOCS.rglob("*.md")]
)
NAMED_FILE = re.compile(r"(?<![\w./-])(?:kshell|tests|docs|release|requirements)/[\w./-]*[\w/]")
NAMED_MODULE = re.compile(r"`([a-z_]+/[\w/]+\.py)`")
DECISIONS = [page for page in PAGES if page.startswith("docs/decisions/")]
PLACEHOLDER = "NAME"
WIDTH = 80


class Example(NamedTuple):
    """A command line as it stands on a page, the exit code that is said of it, and what stands below."""

    line: str
    words: str
    code: int
    shown: str


def examples(text: str) -> Iterator[Example]:
    for block in BLOCK.findall(text):
        starts = list(PROMPT.finditer(block))
        ends = [match.start() for match in starts[1:]] + [len(block)]
        for match, end in zip(starts, ends, strict=True):
            shown = block[match.end() + 1 : end]
            yield Example(match["line"], match["words"], int(match["code"] or 0), shown)


@contextmanager
def directories() -> Iterator[None]:
    """A current directory with what the pages name: copies of one log by node, and two other clusters."""
    with place_for_examples(), mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)}):
        for name, fixture in (("staging", "4.4.0"), ("prod", "4.3.1")):
            shutil.copytree(FIXTURES / fixture / "controller-3000", name)
        yield


def printed(example: Example) -> str:
    """What the command prints at a terminal of 80 columns. Fails if the exit code is another."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(shlex.split(example.words))
    assert code == example.code, f"{example.line}: exit code {code}\n{out.getvalue()}{err.getvalue()}"
    return out.getvalue()


def test_the_cookbook_has_ten_questions_of_two_commands_at_most() -> None:
    sections = re.split(r"^## ", (DOCS / "cookbook.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    counts = [len(list(examples(section))) for section in sections]
    assert len(sections) == 10
    assert all(1 <= count <= 2 for count in counts)


def test_the_wheel_is_named_as_it_is_built() -> None:
    assert set(re.findall(r"kraft_shell-([^-]+)-py3", (DOCS / "installation.md").read_text("utf-8"))) == {__version__}


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples(page: str) -> None:
    with directories():
        for example in examples((DOCS / page).read_text("utf-8")):
            assert printed(example) == example.shown, example.line


# --- links -----------------------------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """A page without its code, whose brackets are no links."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2`*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.DOTALL)


def links(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", prose(text))
    return [of_markdown or of_html for of_markdown, of_html in found]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2`*$", "", text, flags=re.MULTILINE | re.DOTALL)
    made: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        plain = unicodedata.normalize("NFC", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        made.add(anchor if anchor not in made else f"{anchor}-{sum(one.startswith(anchor) for one in made)}")
    return made


def is_there(name: str) -> bool:
    """Whether a file or a directory is, or a decision that is named by its number."""
    return (ROOT / name).exists() or any(ROOT.glob(f"{name}-*.md"))


@pytest.mark.parametrize("page", DECISIONS)
def test_modules_that_a_decision_names_are_there(page: str) -> None:
    """By their place in the package, as decisions name them."""
    named = set(NAMED_MODULE.findall((ROOT / page).read_text("utf-8")))
    assert [name for name in sorted(named) if not (is_there(f"kshell/{name}") or is_there(name))] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    named = set(NAMED_FILE.findall((ROOT / page).read_text("utf-8")))
    assert [name for name in sorted(named) if PLACEHOLDER not in name and not is_there(name)] == []


def test_a_comparison_names_places_that_are_there() -> None:
    places = {text for text in vars(comparison).values() if isinstance(text, str) and "/" in text}
    named = {name for place in places for name in NAMED_FILE.findall(place)}
    assert len(named) >= 8
    assert [name for name in sorted(named) if not is_there(name)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    text = path.read_text("utf-8")
    broken = []
    for link in links(text):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        file = (path.parent / target).resolve() if target else path
        known = file.is_relative_to(ROOT) and file.exists()
        if not known or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text("utf-8"))):
            broken.append(link)
    assert broken == []


def rewrite() -> None:
    """Puts the real outputs into the pages."""
    with directories():
        for name in WITH_EXAMPLES:
            text = (DOCS / name).read_text("utf-8")

            def block(match: re.Match[str]) -> str:
                parts = (f"$ {one.line}\n{printed(one)}" for one in examples(match[0]))
                return f"```console\n{''.join(parts)}```"

            (DOCS / name).write_text(BLOCK.sub(block, text), "utf-8")


if __name__ == "__main__":
    rewrite()
