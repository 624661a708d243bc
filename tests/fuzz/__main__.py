"""``python -m tests.fuzz [TARGET ...] [--seconds N] [--keep N]``: each target for so long, on its corpus."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_LIMITS = ("-max_len=4096", "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1")


def main() -> int:
    """Run the fuzzer in a process a target; 1 if any of them found something."""
    options = _options()
    from tests.fuzz.targets import TARGETS, seeds

    failed = []
    for name in options.targets or TARGETS:
        with tempfile.TemporaryDirectory() as scratch:
            begin = Path(scratch, "begin")
            begin.mkdir()
            for number, data in enumerate(seeds(name)):
                (begin / f"seed-{number}").write_bytes(data)
            print(f"== {name}", flush=True)
            words = [f"-max_total_time={options.seconds}", f"-artifact_prefix={scratch}/found-", *_LIMITS]
            corpus = [str(begin)] if not (CORPUS / name).is_dir() else [str(begin), str(CORPUS / name)]
            done = subprocess.run([sys.executable, "-m", "tests.fuzz.one", name, *words, *corpus], check=False)
            if done.returncode:
                failed.append(name)
            elif options.keep:
                new = (path.read_bytes() for path in begin.iterdir() if not path.name.startswith("seed-"))
                inputs = sorted(new, key=len)
                for data in inputs[:: max(len(inputs) // options.keep, 1)][: options.keep]:
                    _keep(name, data)
            for found in Path(scratch).glob("found-*"):
                _keep(name, found.read_bytes())
    if failed:
        print(
            f"something was found: {', '.join(failed)}; its input is in {CORPUS}, and a test fails until it is mended"
        )
    return 1 if failed else 0


def _keep(name: str, data: bytes) -> None:
    """What made a target fail, or led it somewhere new, becomes a test."""
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    (CORPUS / name / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Coverage-guided fuzzing, a process a target.")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="of each target (60)")
    parser.add_argument("--keep", type=int, default=0, metavar="N", help="keep so many inputs that led somewhere new")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
