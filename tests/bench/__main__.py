"""``python -m tests.bench [NAME …] [--rounds N]``: exit 1 when a goal is not met."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import tests.bench as package
from tests.bench.harness import Comparison

_NOT_BENCHMARKS = {"checkpoints", "harness", "ingesting", "logs", "stretched", "__main__"}


def main() -> int:
    """Runs the named benchmarks, or all."""
    names = sorted({module.name for module in pkgutil.iter_modules(package.__path__)} - _NOT_BENCHMARKS)
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("name", nargs="*", choices=[*names, []], help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    missed = 0
    for name in options.name or names:
        result: Comparison = importlib.import_module(f"tests.bench.{name}").run(options.rounds)
        print(result, flush=True)
        missed += result.ratio > result.goal or any("NOT met" in note for note in result.notes)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
