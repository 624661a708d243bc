"""The same tables from processes that have the package only as a zip: under spark-submit, and over Connect."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.session import zipped
from tests.builders import FIXTURES
from tests.needed import is_required
from tests.spark import beyond
from tests.spark.filler import write_filler
from tests.spark.here import need_spark, process

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(2 * beyond.LIMIT)]
SOURCE = f"{FIXTURES}/3.6.2/*/{METADATA_DIRECTORY}"
"""Two copies of one cluster; the smallest fixture that fills nearly all tables."""

_MAIN = """
import json, sys
import kshell
from kshell.spark.cli import main
from kshell.spark.session import running

def where(batches):
    import kshell, os, pyarrow
    for _ in batches:
        yield pyarrow.record_batch([pyarrow.array([kshell.__file__]), pyarrow.array([os.getppid()])], names=["f", "p"])

with running() as spark:
    seen = spark.range(0, 8, 1, 8).mapInArrow(where, "f string, p long").collect()
    places, workers = sorted({row.f for row in seen}), len({row.p for row in seen})
    print(json.dumps([spark.conf.get("spark.master"), kshell.__file__, places, workers]))
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """So much that executors decode it, with what they were sent."""
    return ["--source", SOURCE, "--source", str(write_filler(tmp_path_factory.mktemp("filler")))]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, sources: list[str]) -> dict[str, list[str]]:
    """The tables of a run on this machine."""
    need_spark()
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("here")
    settings = beyond.confs({"spark.driver.extraJavaOptions": beyond.BRIEF} | beyond.CHEAP)
    done = _run(folder, "local[1]", *sources, *settings)
    assert done.returncode == 0, done.stderr
    made = beyond.contents(folder / "tables")
    assert len(made["records"]) > 100 and len(made) > 20
    return made


def _run(folder: Path, master: str, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = ("-m", "kshell.spark.cli", "run", "--out", str(folder / "tables"), "--master", master)
    return process(*words, *more, home=folder, timeout=beyond.LIMIT, **variables)


def test_spark_submit_with_a_zip_on_a_cluster_of_two_workers(
    tmp_path: Path, expected: dict[str, list[str]], sources: list[str]
) -> None:
    (tmp_path / "main.py").write_text(_MAIN)
    # Tasks wait until both are there: else the first one has done all before the second is up.
    both = {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1"}
    words = [
        *beyond.submit(tmp_path), "--master", "local-cluster[2,1,1024]", "--py-files", zipped(str(tmp_path)),
        *beyond.confs({"spark.executor.extraJavaOptions": beyond.BRIEF} | both),
        str(tmp_path / "main.py"), "run", *sources, "--out", str(tmp_path / "tables"),
    ]  # fmt: skip
    done = subprocess.run(
        words, env=beyond.environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=beyond.LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    master, driver, executors, workers = json.loads(done.stdout.splitlines()[0])
    assert master.startswith("local-cluster") and driver.endswith("/kshell.zip/kshell/__init__.py")
    assert executors and all(place.endswith("/kshell.zip/kshell/__init__.py") for place in executors)
    assert workers == 2
    assert beyond.contents(tmp_path / "tables") == expected


@pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None and not is_required(), reason="pyspark[connect] is not installed"
)
@pytest.mark.long
def test_connect_with_what_the_client_ships(tmp_path: Path, expected: dict[str, list[str]], sources: list[str]) -> None:
    (tmp_path / "server").mkdir()
    with beyond.connect_server(tmp_path / "server") as url:
        # No Java for the client: all of it is the server's.
        done = _run(tmp_path, url, *sources, JAVA_HOME="/nowhere")
    assert done.returncode == 0, done.stderr
    assert beyond.contents(tmp_path / "tables") == expected
