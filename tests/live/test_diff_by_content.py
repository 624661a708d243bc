"""diff between two clusters: made by the same script at different times they are equal, but for what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot, workload

pytestmark = pytest.mark.live

ROUNDS = 5
_PROPS = ("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS")
_CHANGED = ("TOPIC", "work.4"), "User:user 4"


def made(home: Path, *, changed: bool = False) -> tuple[Path, str]:
    """A cluster that a script has changed, stopped since; gives its broker's directory and its live answer.

    The topics whose deletion is on its way when the cluster stops are gone from the metadata by then.
    """
    with Cluster(controllers=1, brokers=1, props=_PROPS, home=home) as cluster:
        with cluster.admin() as admin:
            for number in range(ROUNDS):
                workload.change(admin, number)
            if changed:
                admin.acl(*_CHANGED, "READ", remove=True)
                admin.acl(*_CHANGED, "WRITE")
        live = json.loads("\n".join(oneshot.lines(("-q", cluster.bootstrap_controllers), "hash", "-o", "json")))
        (broker,) = cluster.brokers

        def has_all() -> bool:
            answer = json.loads("\n".join(oneshot.lines(broker.metadata, "hash", "-o", "json")))
            return bool(answer["offset"] >= live["offset"])

        wait_until(has_all, "the broker has every record", 30)
    return broker.metadata, cluster.cluster_id


def compare(old: Path, new: Path, *more: str) -> tuple[int, list[dict[str, Any]], str]:
    done = oneshot.run(old, "diff", str(old), str(new), "-o", "jsonl", *more)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_clusters_of_one_script_are_equal_but_for_the_acl_that_was_changed(tmp_path: Path) -> None:
    jars.require()
    first, first_id = made(tmp_path / "first")
    second, second_id = made(tmp_path / "second", changed=True)
    code, changes, notes = compare(first, second)
    assert first_id in notes and second_id in notes
    assert code == 1
    assert [(change["change"], (change["old"] or change["new"])["operation"]) for change in changes] == [
        ("removed", "READ"),
        ("added", "WRITE"),
    ]
    assert {(change["old"] or change["new"])["principal"] for change in changes} == {"User:user 4"}
    _, by_id, _ = compare(first, second, "--by", "id")
    assert {"broker", "topicId", "acl", "scram"} <= {change["type"] for change in by_id}
    code, changes, _ = compare(first, second, "/image/topics")
    assert (code, changes) == (0, [])
