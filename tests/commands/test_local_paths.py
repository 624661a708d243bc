"""Paths of this machine in lines: none has a NUL, and a line that has one is refused as any wrong line is."""

from __future__ import annotations

import pytest

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render.output import emit
from tests.commands.shell import run

LINES = (
    "diff {} now", "export {} --format csv", "export {}.sqlite", "save {}", "recover {}", "compare-logs {} {}",
    "source {}", "info {} --meta-properties", "context add x -d {}", "context add x --config {}", "topics {}",
    "strays --log-dirs {}", "report --to {}", "support-bundle {}", "verify {}", "ls {}", "help {}", "{}",
)  # fmt: skip


@pytest.mark.parametrize("path", ["'~\0'", "'/tmp/\0'", "'./\0'"])
@pytest.mark.parametrize("line", LINES)
def test_a_nul_is_a_fault_of_the_line(sample: Session, line: str, path: str) -> None:
    with pytest.raises(KshellError):
        run(sample, line.replace("{}", path))


@pytest.mark.parametrize("target", ["~\0", "/tmp/\0"])
def test_a_nul_in_the_name_of_a_file_to_write(sample: Session, target: str) -> None:
    with pytest.raises(KshellError):
        emit(run(sample, "topics"), "text", target=target)


def test_a_nul_in_the_line_of_a_program(sample: Session) -> None:
    with pytest.raises(KshellError, match="NUL"):
        emit(run(sample, "topics"), "text", program="cat \0")
