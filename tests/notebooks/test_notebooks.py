"""Each notebook runs from a clean kernel without an error or a warning, and finds what its prose says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import recorded
from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.notebooks import running, sparks
from tests.notebooks.busy import topics_come
from tests.notebooks.running import CellFailed, Notebook, text

CLUSTERS = len({node.parent for node in recorded()})
"""Those of the recorded directories."""

pytestmark = pytest.mark.slow


def calm(notebook: Notebook) -> Notebook:
    """The notebook, if each of its code cells ran and nothing went wrong in any."""
    for cell, output in running.outputs(notebook):
        assert output["output_type"] != "error", f"{cell}: {output}"
        assert output.get("name") != "stderr", f"{cell}: {running.joined(output['text'])}"
        shown = running.joined(output.get("text", "")) + str(output.get("data", ""))
        assert not re.search(r"Warning\b|Traceback", shown), f"{cell}: {shown[:500]}"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    return notebook


def test_there_are_five() -> None:
    assert running.names() == ["audit", "fleet", "incident", "live", "tour"]


def test_tour(tmp_path: Path) -> None:
    tour = calm(running.run("tour", tmp_path))
    assert "206" in text(tour, "connect")
    assert re.search(r"legacy-import +1 +1 +1 +1\n", text(tour, "topics"))
    assert "37 partitions, 1 offline, 34 under-replicated, 2 online" in text(tour, "plot-partitions")
    assert "fenced false -> true" in text(tour, "diff-cluster")
    assert text(tour, "result-diff-code").split("\n")[:2] == ["~ 1: leaders 11 -> 22", "~ 3: leaders 12 -> 0"]
    assert re.search(r"orders +17\n", text(tour, "loop"))
    assert "offlinePartition" in text(tour, "health")


def test_incident(tmp_path: Path) -> None:
    incident = calm(running.run("incident", tmp_path))
    sentence = "No leader since 2026-11-21T15:11:22.506Z (offset 182): its last in-sync replica was broker 3"
    assert "206" in text(incident, "connect")
    assert text(incident, "why-sentence").startswith(f"> {sentence}")
    assert re.search(r" leader +-1 +182 ", text(incident, "blame-code"))
    assert "no leader, after broker 3; ISR loses 3" in text(incident, "why-code")
    assert "legacy-import-0 has no leader at the end" in text(incident, "timeline")
    assert text(incident, "skew-diff").split()[-4:] == ["3", "0", "12", "-12"]
    assert text(incident, "no-shutdown") == "['REGISTER_BROKER_RECORD']"
    assert re.search(r"under-min-isr +20 +20\nlast-in-sync +5 +7", text(incident, "drain"))
    assert "singleReplica" in text(incident, "health-before")
    assert '"replicas": [\n        3,\n        1,\n        2\n      ]' in text(incident, "plan")
    report = text(incident, "report-code")
    assert sentence in report and "35 partitions lack a replica" in report


def test_audit(tmp_path: Path) -> None:
    audit = calm(running.run("audit", tmp_path))
    wide = text(audit, "wide").split("\n")[1:]
    assert [line.split()[0] for line in wide if line] == ["User:auditor", "User:svc-payments"]
    assert re.search(r"^User:svc-payments .*yes +yes +yes", text(audit, "can-all"), re.M)
    assert "default" in text(audit, "default") and "2Zk9z9UDQQ2HIVufvte-Mw" in text(audit, "default")
    assert re.search(r"GROUP:fraud-workers +True +noAcl", text(audit, "no-acl"))
    assert text(audit, "scram").count("[redacted]") == 3
    assert re.search(r"User:intern +False +True", text(audit, "accounts"))
    assert re.search(r"^returns +3 +-", text(audit, "durability"), re.M)
    assert text(audit, "history").count("hCLlmE3sTzeS0iD6arHiqQ") == 2


# --- Spark -----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_fleet(tmp_path: Path) -> None:
    sparks.need()
    log = tmp_path / "spark.log"
    fleet = calm(running.run("fleet", tmp_path / "work", sparks.environment(tmp_path / "conf", log)))
    assert re.search(rf"^0 +{CLUSTERS} +\d+ +\d+$", text(fleet, "records"), re.M)
    assert "|-- featureLevel: short" in text(fleet, "view")
    assert re.search(r"^silver +10 ", text(fleet, "run"), re.M)
    assert "|-- preferredShare: double" in text(fleet, "views")
    overview = text(fleet, "overview")
    assert len(re.findall(r"^\d+ ", overview, re.M)) == CLUSTERS
    assert "3.3-IV3" in overview and "4.3-IV0" in overview
    assert "online" in text(fleet, "trouble")
    assert "Brokers over time" in text(fleet, "lanes")
    assert "min.insync.replicas" in text(fleet, "drift")
    assert text(fleet, "again") == f"{{'clusters': {CLUSTERS}, 'changedClusters': 0, 'bytesRead': 0}}"
    assert re.search(r"critical +\d+ +partitions have no leader now", text(fleet, "report"))
    said = log.read_text("utf-8")
    assert " ERROR " not in said and "Exception" not in said, said


# --- a running quorum ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    jars.require("4.3.1")
    with Cluster("4.3.1", controllers=3, brokers=2, dynamic=True) as running_cluster:
        yield running_cluster


@pytest.mark.live
def test_live(cluster: Cluster, tmp_path: Path) -> None:
    source = {"KSHELL_BOOTSTRAP_CONTROLLERS": cluster.bootstrap_controllers}
    with topics_come(cluster):
        live = calm(running.run("live", tmp_path, source))
    assert cluster.bootstrap_controllers in text(live, "connect")
    assert cluster.cluster_id in text(live, "quorum")
    assert "high watermark" in text(live, "quorum-plot")
    assert [line.split()[0] for line in text(live, "controllers").split("\n")[1:4]] == ["3000", "3001", "3002"]
    assert re.search(r"_RECORD +[1-9]", text(live, "log"))
    news = text(live, "follow")
    assert "3 records, ended" in news and "TOPIC_RECORD" in news
    assert "every 1 s: quorum" in text(live, "watch")
    assert re.search(r"^ *0 +false", text(live, "until"), re.M)
    assert "4.3" in text(live, "software")
    assert re.search(r"^partition +[1-9]", text(live, "as-of"), re.M)


def test_live_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(CellFailed, match=r"set KSHELL_BOOTSTRAP_CONTROLLERS=host:port"):
        running.run("live", tmp_path)
