"""Secrets of a log, and keys of a store, are nowhere that the pipeline writes: with canaries through all of it."""

from __future__ import annotations

import base64
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import batch, value, write_log
from tests.spark import stores
from tests.spark.filler import write_filler
from tests.spark.here import need_spark, process

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1000)]

CANARIES = {
    name: f"canary-{name}-5ee1".encode()
    for name in ("password", "unknown-key", "topic-key", "salt", "stored-key", "server-key", "undecoded", "damaged")
}
SHOWN = "3600123"
"""A value that is no secret: what finds this would find the others."""

_PROGRAM = """
import contextlib, io, json, os, pathlib, shutil, sys
import kshell.spark
from kshell.spark import cli
from kshell.spark.tables.catalog import tables
from kshell.spark.session import running
from kshell.spark.tables.warehouse import Warehouse

source, folder, filler = sys.argv[1:4]
sources = ["--source", source, "--source", filler]
settings = {
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder}/events",
    "spark.eventLog.compress": "false", "spark.local.dir": f"{folder}/local",
    "spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false", "spark.broadcast.compress": "false",
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling takes longest
    "spark.sql.shuffle.partitions": "1", "spark.sql.maxMetadataStringLength": "100000",
    "spark.sql.debug.maxToStringFields": "1000", "spark.sql.ui.explainMode": "extended",
}
os.makedirs(f"{folder}/events")
with running("local[1]", settings=settings, brief=True, log_level="info") as spark:
    print("exit code", cli.main(["-v", "run", *sources, "--out", f"{folder}/tables"]))
    with open(f"{folder}/processes", "wb") as file:  # while Spark's Java, and perhaps Python workers, are there
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.name != str(os.getpid()):  # whose command line is this program
                    file.write((process / "cmdline").read_bytes() + b"\\n")
    shutil.copytree(f"{folder}/local", f"{folder}/left")  # Spark removes at its end what it has shuffled
    if len(sys.argv) > 4:
        words = [*sources, "--out", f"{folder}/streamed", "--checkpoint", f"{folder}/checkpoint"]
        print("exit code", cli.main(["-v", "stream", *words, "--available-now"]))
    plans = []
    for name in tables():
        frame = Warehouse(spark, f"{folder}/tables").read(name)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            frame.explain(extended=True)
        query = frame._jdf.queryExecution()
        plans += [said.getvalue(), query.toString(), query.stringWithStats()]
    kshell.spark.register(spark)
    for part in ("AKIACANARYCANARYCANA:canary-in-a-uri-5ee1@bucket/x", "bucket/x?secret=canary-in-a-uri-5ee1"):
        uri = f"s3://{part}"
        try:
            spark.read.format("kraft").load(uri).count()
        except Exception as error:
            plans.append(f"{error!r} {error}")
        print("exit code", cli.main(["run", "--source", uri, "--out", f"{folder}/refused"]))
with open(f"{folder}/plans", "w") as file:
    file.write("\\n".join(plans))
"""


def write_source(directory: Path) -> None:
    """A log whose records hold every kind of secret: good ones, one that cannot be decoded, and a damaged batch."""
    secret = {name: text.decode() for name, text in CANARIES.items()}
    configs = [
        value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value=secret["password"]),
        value("CONFIG", resourceType=4, resourceName="1", name="sasl.of.somebody", value=secret["unknown-key"]),
        value("CONFIG", resourceType=2, resourceName="orders", name="vendor.secret", value=secret["topic-key"]),
        value("CONFIG", resourceType=2, resourceName="orders", name="retention.ms", value=SHOWN),
    ]
    scram = value(
        "USER_SCRAM_CREDENTIAL", name="alice", mechanism=1, iterations=4096,
        salt=CANARIES["salt"], storedKey=CANARIES["stored-key"], serverKey=CANARIES["server-key"],
    )  # fmt: skip
    cut = value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value=secret["undecoded"])[:-1]
    bad = value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value=secret["damaged"])
    damaged = bytearray(batch([bad], 6))
    damaged[-1] ^= 1
    write_log(
        directory / METADATA_DIRECTORY,
        batch([*configs, scram]), batch([cut], 5), bytes(damaged), batch([value("NO_OP")], 7),
    )  # fmt: skip
    (directory / "meta.properties").write_text("version=1\ncluster.id=canaries\nnode.id=1\n")


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of all that was written, files of Parquet as the text of their values as well."""
    parquet: Any = importlib.import_module("pyarrow.parquet")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path), path.read_bytes()
            if path.suffix == ".parquet":
                table = parquet.ParquetFile(path).read()
                yield f"{path} as text", repr(table.to_pylist()).encode()


def forms(text: bytes) -> set[bytes]:
    """A secret as it is, and in the ways in which bytes are written as text."""
    inner = {base64.b64encode(text[start : start + (len(text) - start) // 3 * 3]) for start in range(3)}
    return {text, text.hex().encode(), text.hex().upper().encode(), repr(list(text))[1:-1].encode(), *inner}


def check(folder: Path, said: str, secrets: list[bytes]) -> list[str]:
    """The names of what was looked at. Fails where a secret is found."""
    looked = [*written(folder), ("what was printed", said.encode())]
    found = [(path, secret) for path, data in looked for secret in secrets if any(one in data for one in forms(secret))]
    assert not found
    return [path for path, _ in looked]


def test_no_secret_is_in_tables_plans_logs_state_or_messages(tmp_path: Path) -> None:
    need_spark()
    pytest.importorskip("pyarrow")
    write_source(tmp_path / "source")
    folder = tmp_path / "out"
    (tmp_path / "home").mkdir()
    words = [str(tmp_path / "source"), str(folder), str(write_filler(tmp_path / "filler"))]
    done = process("-c", _PROGRAM, *words, "stream", home=tmp_path / "home", timeout=900)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    # Damaged, and twice refused for what the URI has in it.
    assert [line for line in done.stdout.splitlines() if line.startswith("exit code")] == [
        "exit code 4", "exit code 4", "exit code 2", "exit code 2",
    ]  # fmt: skip
    for place in ("tables", "left"):
        assert SHOWN.encode() in b"".join(data for _, data in written(folder / place)), "what is not secret is there"
    looked = check(folder, said, [*CANARIES.values(), b"canary-in-a-uri-5ee1", stores.KEY.encode()])
    assert b"org.apache.spark.deploy.SparkSubmit" in (folder / "processes").read_bytes()
    parts = (
        "processes",
        "tables/bronze/records/part-",
        "tables/bronze/records/_delta_log",  # which has the least and greatest values of columns
        "tables/silver/users/isCurrent=true/part-",
        "tables/silver/users/_delta_log",
        "tables/_kshell/steps/part-",
        "tables/_kshell/progress/_delta_log",
        "events",
        "plans",
        "left",
        "streamed",
        "checkpoint",
    )
    assert not [part for part in parts if not any(f"{folder}/{part}" in path for path in looked)]
    lines = [line for _, data in written(folder / "events") for line in data.decode().splitlines()]
    assert any("SQLExecutionStart" in json.loads(line)["Event"] for line in lines if line.startswith('{"Event"'))


@pytest.mark.soak
def test_the_keys_of_a_store_are_nowhere(tmp_path: Path) -> None:
    need_spark()
    pytest.importorskip("pyarrow")
    write_source(tmp_path / "source")
    (tmp_path / "home").mkdir()
    folder = tmp_path / "out"
    with stores.store() as store:
        there = store.put(tmp_path / "source", "canaries")
        words = [there, str(folder), str(write_filler(tmp_path / "filler"))]
        done = process("-c", _PROGRAM, *words, home=tmp_path / "home", timeout=900, **store.variables)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert "exit code 4" in done.stdout
        assert any(range_ for _, path, range_ in store.asked if path.endswith(".log")), "it was read from there"
    assert SHOWN in str(dict(written(folder / "tables"))) and there in str(dict(written(folder / "tables")))
    assert b"org.apache.spark.deploy.SparkSubmit" in (folder / "processes").read_bytes()
    check(folder, said, [*CANARIES.values(), stores.SECRET.encode()])


def test_canaries_are_found_where_they_are(tmp_path: Path) -> None:
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    salt = CANARIES["salt"]
    for number, shown in enumerate([salt, base64.b64encode(b"xy" + salt), salt.hex()]):
        place = tmp_path / str(number)
        os.mkdir(place)
        parquet.write_table(arrow.table({"x": [shown] * 50}), place / "a.parquet", compression="zstd")
        with pytest.raises(AssertionError):
            check(place, "", [salt])
