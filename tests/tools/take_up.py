"""What kshell lacks for a release of Kafka: ``./dev kafka VERSION``, or ``python -m tests.tools.take_up VERSION``.

Fetches the release through Maven (once, below the cache of ``tests/kafka/jars.py``) and compares what its jars define
with what kshell declares, kind by kind, as ``tests/kafka/comparison.py`` does for the tests. Exit code 0: nothing is
missing; 1: something is missing or wrong; 2: no release of that name can be had. docs/releases.md says what to do then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from tests.kafka import jars
from tests.kafka.comparison import Declared, Gap, compare, declared

USAGE = "usage: ./dev kafka VERSION   (a release of Kafka with its patch number, such as 4.4.0)"
VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)


def report(release: str, gaps: Sequence[Gap]) -> str:
    """Return what is printed: by kind, with the place where it is mended."""
    if not gaps:
        return f"Kafka {release}: nothing missing"
    wrong = sum(gap.is_wrong for gap in gaps)
    lines = [f"Kafka {release}: {len(gaps) - wrong} missing, {wrong} wrong"]
    places = dict.fromkeys((gap.kind, gap.where) for gap in gaps)
    for kind, where in places:
        lines += ["", f"{kind}  ({where})"]
        lines += [
            f"  {'wrong  ' if gap.is_wrong else 'missing'}  {gap.what}"
            for gap in gaps
            if (gap.kind, gap.where) == (kind, where)
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str], have: Declared | None = None) -> int:
    """Print what is missing; ``have`` is what kshell declares unless a test passes something else."""
    if len(arguments) != 1 or not VERSION.fullmatch(arguments[0]):
        print(USAGE, file=sys.stderr)
        return 2
    release = arguments[0]
    if not (jars.cache() / release / "libs").exists():
        print(f"dev: fetching Kafka {release} from Maven (about 100 MB, once)", file=sys.stderr)
    try:
        jars.libs(release)
        gaps = compare(have or declared(), release)
    except jars.Unavailable as reason:
        print(f"dev: {reason}", file=sys.stderr)
        return 2
    print(report(release, gaps))
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
