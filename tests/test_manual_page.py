"""``man kshell``: the page that the wheel installs, as groff and mandoc show it (where they are installed)."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from kshell.cli import OPTIONS
from kshell.engine import help_pages, registry
from kshell.engine.arguments import SHAPING
from kshell.engine.source_flags import SOURCES
from tests import docs_reference, manual_page

PAGE = docs_reference.REFERENCE / manual_page.NAME
FORMATTERS = {
    "groff": ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=80n"],
    "mandoc": ["mandoc", "-Tutf8", "-Owidth=80"],
}
ODD = """.TH is no request, 'nor is this; \\e \\fB a-b --c "d" `e` ^f ~g | … é"""


def shown(formatter: str, page: str) -> str:
    """The page as plain text. What the formatter complains about fails the test."""
    if shutil.which(formatter) is None:
        pytest.skip(f"needs {formatter}")
    done = subprocess.run(FORMATTERS[formatter], input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return re.sub(".\b", "", done.stdout)


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_it_names_every_command_and_option_with_its_sentence(formatter: str) -> None:
    text = shown(formatter, PAGE.read_text())
    assert max(map(len, text.splitlines())) <= 80
    sections = dict(re.findall(r"^([A-Z][A-Z ]+)\n(.*?)(?=^\S)", text, re.MULTILINE | re.DOTALL))
    assert {"NAME", "OPTIONS", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"} <= set(sections)
    words = " ".join(sections["COMMANDS"].split())
    assert [command.name for command in registry.commands() if f"{command.name} {command.summary}" not in words] == []
    words = " ".join(text.split())
    for flag in (*SOURCES, *OPTIONS, *SHAPING):
        assert f"{', '.join(flag.names)} {f'{flag.metavar} ' if flag.metavar else ''}{flag.help}" in words
    if formatter == "mandoc":
        lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", PAGE], capture_output=True, text=True, check=False)
        assert [line for line in lint.stdout.splitlines() if "missing date" not in line] == []


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_marks_of_roff_in_a_text_are_shown_as_they_are(formatter: str) -> None:
    head = '.TH T 1 "" "" ""\n.SH NAME\nt \\- t\n.SH A\n'
    assert ODD in " ".join(shown(formatter, head + manual_page.line(manual_page.escaped(ODD)) + "\n").split())


def test_the_environment_and_the_files_are_those_of_help() -> None:
    page = PAGE.read_text().replace("\\-", "-").replace("\\(ti", "~")
    for topic in ("environment", "files", "points"):
        names = re.findall(r"^- `([^`]+)`", help_pages.PAGES[topic].text(), re.MULTILINE)
        assert names
        assert [name for name in names if rf"\fB{name}\fR" not in page] == []


def test_markdown_that_has_no_form_in_roff_is_an_error() -> None:
    with pytest.raises(ValueError, match="heading_open"):
        list(manual_page.markdown("# A heading\n"))
