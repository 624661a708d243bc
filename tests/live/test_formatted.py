"""Ids of clusters as Kafka writes them into ``meta.properties``, a Java properties file, and as it reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kshell.sources.directory.files import Listing
from kshell.sources.directory.sidecar_files import meta_properties, property_line
from tests.kafka import jars

pytestmark = pytest.mark.live

IDS = ["MkU3OEVBNTcwNTJENDM2Qg==", "eu:prod/1", "#a!b=c", "back\\slash", "a b"]
VERSION = "4.3.1"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """Properties of a controller that was never started."""
    jars.require(VERSION)
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=7\ncontroller.quorum.voters=7@localhost:9\n"
        f"listeners=CONTROLLER://localhost:9\ncontroller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/data\n"
    )
    return path


def storage(verb: str, properties: Path, *args: str) -> str:
    """Run Kafka's storage tool."""
    return jars.run(f"{jars.libs(VERSION)}/*", "kafka.tools.StorageTool", verb, "-c", str(properties), *args)


@pytest.mark.parametrize("cluster_id", IDS)
def test_an_id_is_what_kafka_was_given(properties: Path, cluster_id: str) -> None:
    storage("format", properties, "-t", cluster_id)
    found = meta_properties(Listing(os.path.join(properties.parent, "data", "__cluster_metadata-0"), (), ()))
    assert (found["cluster.id"], found["node.id"]) == (cluster_id, "7")


@pytest.mark.parametrize("cluster_id", IDS)
def test_an_id_that_kshell_writes_is_what_kafka_reads(properties: Path, cluster_id: str) -> None:
    directory = properties.parent / "data"
    directory.mkdir()
    pairs = {"version": "1", "cluster.id": cluster_id, "node.id": "7"}
    text = "".join(property_line(key, value) for key, value in pairs.items())
    (directory / "meta.properties").write_text(text)
    assert f"cluster.id={cluster_id}, " in storage("info", properties)
