"""A real kernel: what a signal does to it, and what a saved notebook holds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.choose import demo_directory

jupyter_client = pytest.importorskip("jupyter_client", reason="the tools of a notebook are not installed")
pytest.importorskip("ipykernel", reason="the tools of a notebook are not installed")

pytestmark = pytest.mark.slow
PATIENCE = 60


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("HOME", str(tmp_path))
    manager, client = jupyter_client.manager.start_new_kernel(
        kernel_name="python3",
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd())},
    )
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def outputs(client: Any, code: str) -> list[dict[str, Any]]:
    """Runs a cell; the contents of what it puts out."""
    found: list[dict[str, Any]] = []
    client.execute_interactive(
        code,
        timeout=PATIENCE,
        output_hook=lambda message: found.append({"kind": message["msg_type"], **message["content"]}),
    )
    return [one for one in found if one["kind"] not in ("status", "execute_input")]


def interrupted(manager: Any, kernel: Any) -> float:
    """Seconds from the interrupt of a running ``follow`` to the end of its cell."""
    sent = kernel.execute("x = %kafka follow")
    while (message := kernel.get_iopub_msg(timeout=PATIENCE))["msg_type"] != "display_data":
        pass
    assert "following" in message["content"]["data"]["text/plain"]
    time.sleep(0.5)
    begun = time.monotonic()
    manager.interrupt_kernel()
    reply = kernel.get_shell_msg(timeout=PATIENCE)
    took = time.monotonic() - begun
    assert reply["parent_header"]["msg_id"] == sent
    assert reply["content"]["status"] == "ok"
    while kernel.get_iopub_msg(timeout=PATIENCE)["content"].get("execution_state") != "idle":
        pass
    return took


def test_an_interrupt_ends_follow_within_a_second(client: tuple[Any, Any]) -> None:
    manager, kernel = client
    outputs(kernel, f"%load_ext kshell\n%kafka connect -d {demo_directory()}")
    # A second is the promise. A machine that does much else may be late with the signal itself, though not always.
    assert min(interrupted(manager, kernel) for _ in range(3)) < 1
    assert outputs(kernel, "print(x.exit_code)")[-1]["text"] == "130\n"
    assert outputs(kernel, "%kafka pwd")[-1]["data"]["text/plain"] == "/"


def test_an_interrupt_of_a_long_command_is_short(client: tuple[Any, Any]) -> None:
    manager, kernel = client
    outputs(kernel, "%load_ext kshell\n%kafka connect --demo")
    kernel.execute("%kafka watch --interval 30 pwd\nraise SystemError")
    while kernel.get_iopub_msg(timeout=PATIENCE)["msg_type"] != "display_data":
        pass
    manager.interrupt_kernel()
    assert kernel.get_shell_msg(timeout=PATIENCE)["content"]["ename"] == "SystemError"


def test_an_error_is_a_few_lines(client: tuple[Any, Any]) -> None:
    _, kernel = client
    (error,) = outputs(kernel, "%load_ext kshell\n%kafka connect --demo;\n%kafka ls /image/tpoics")[-1:]
    assert error["ename"] == "NoSuchPathError"
    assert len("\n".join(error["traceback"]).splitlines()) <= 4
    assert "/image/tpoics" in "\n".join(error["traceback"])


def test_what_a_program_makes_of_an_answer_stands_below_the_cell(client: tuple[Any, Any]) -> None:
    _, kernel = client
    (said,) = outputs(kernel, "%load_ext kshell\n%kafka connect --demo;\n%kafka ls / | grep -c .")
    assert (said["name"], said["text"].strip().isdigit()) == ("stdout", True)
