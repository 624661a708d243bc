"""What commands answer on the sample, in three formats, as it was when somebody read it.

``KSHELL_UPDATE_GOLDEN=1`` writes the files anew: read the difference before it is kept.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.render import render
from tests import goldens
from tests.commands.shell import run
from tests.docs_reference import COLUMNS, place_for_examples, sample_session

GOLDENS = Path(__file__).parent / "golden"
FORMATS = ("text", "json", "csv")
LINES = {
    "acls": "acls --principal User:svc-payments",
    "brokers": "brokers --load --columns id,epoch,fenced,rack,leaders,replicas,preferredLeaders,outOfSync",
    "compare-logs": "compare-logs node-1 node-2 node-3 node-4",
    "configs": "configs --where 'name == min.insync.replicas' --sort -value,resourceName",
    "controllers": "controllers --sort -id",
    "drain-check": "drain-check 1",
    "explain": "explain 8 --record",
    "export": "export --format jsonl out",
    "partitions": "partitions --non-preferred --where 'topic ~ \"^(orders|clicks)$\"'",
    "plan-restore": "plan-restore --where 'kind in [acl, config, user]' --limit 14",
    "quotas": "quotas",
    "registrations": "registrations",
    "skew": "skew --rack",
    "sql": 'sql "SELECT state, count(*) AS n, list(DISTINCT topic ORDER BY topic) AS topics FROM partitions'
    ' GROUP BY state ORDER BY n DESC"',
    "strays": "strays --log-dirs log-dirs.json --where 'finding != missing or topic == orders'",
    "tokens": "tokens",
    "topics": "topics --sort -partitions,name --limit 5",
    "verify": "verify --deep",
    "what-if": "what-if --kill 2 --where 'topic != orders'",
    "users": "users --where 'iterations > 4096'",
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", list(LINES))
def test_golden(name: str, fmt: str) -> None:
    with place_for_examples():
        result = run(sample_session(), LINES[name])
        shown = "".join(render(result, fmt, width=COLUMNS))
    path = GOLDENS / f"{name}.{fmt}"
    if goldens.are_written():
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8", newline="")
    assert shown == path.read_bytes().decode(), goldens.differs(path)
