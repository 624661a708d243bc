"""The declarations of silver tables."""

from __future__ import annotations

import subprocess
import sys

from kshell.metadata.records import record_types
from kshell.protocol.control import CONTROL_TYPES
from kshell.spark import silver
from kshell.tables.declaration import tables
from kshell.tables.state.topics import PARTITIONS_TABLE


def test_every_table_has_its_key_its_version_and_only_known_types() -> None:
    known = {kind.name for kind in record_types().values()} | {kind.name for kind in CONTROL_TYPES.values()}
    assert list(silver.tables()) == sorted(
        "topics partitions brokers controllers configs acls quotas users tokens features".split()
    )
    for name, table in silver.tables().items():
        columns = [field.name for field in table.fields]
        assert (table.name, columns[0]) == (name, "clusterId")
        assert columns[-5:] == ["validFromOffset", "validFromMs", "validToOffset", "validToMs", "isCurrent"]
        assert len(set(columns)) == len(columns)
        assert set(table.keys) <= set(columns[1:-5])
        assert set(table.types) <= known
        assert set(table.needs) <= silver.tables().keys()
        assert {field.name for field in table.values} | set(table.keys) == set(columns[1:-5])


def test_columns_are_those_of_the_shell() -> None:
    for name, table in silver.tables().items():
        shells = {field.name: field.type for field in tables()[name].fields}
        own = {field.name: field.type for field in table.fields[1:-5]}
        more = own.keys() - shells.keys()
        assert more == ({"isVoter", "voterListeners"} if name == "controllers" else set())
        assert all(shells[column] == own[column] for column in own.keys() - more)
    left_out = {"state", "problems", "minIsr"}
    told = {field.name for field in silver.tables()["partitions"].fields}
    assert {field.name for field in PARTITIONS_TABLE.fields} - told == left_out


def test_declarations_load_no_spark() -> None:
    code = "import sys; from kshell.spark import silver; silver.tables(); print('pyspark' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
