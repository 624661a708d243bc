"""Where planning is done: by what is to be read, and not by how many clusters there are. Without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import DataError, DeadlineError, KshellError, SourceError, UnreadError
from kshell.spark.files.scan import LogCopy
from kshell.spark.reconcile import ReconciledLog, Request, reconcile
from kshell.spark.steps import planning
from kshell.spark.steps.planning import clusters, reconcile_all
from kshell.spark.steps.unread import UnreadErrors, after, attributed, exit_code, known_clusters, reasons_of
from kshell.spark.tables.steps import ClusterState, WarehouseState
from tests.builders import FIXTURES, batch, copy_of, value, write_log
from tests.rights import locked

HUGE = 1 << 40


def node(place: Path, cluster: str, name: str, batches: int = 3) -> Path:
    """A copy of a cluster's log."""
    directory = place / cluster / name
    write_log(directory / "__cluster_metadata-0", *(batch([value("NO_OP")] * 4, 4 * at) for at in range(batches)))
    (directory / "meta.properties").write_text(f"cluster.id={cluster}\nnode.id={name}\n")
    return directory


def state_of(place: Path) -> WarehouseState:
    """How far tables of all that is there would be."""
    found = reconcile_all(clusters([f"{place}/*/*"]), WarehouseState())
    return WarehouseState(1, {one.cluster_id: ClusterState(one.checkpoint._asdict()) for one in found})


def grown(copies: dict[str, list[LogCopy]], *clusters: str) -> dict[str, list[LogCopy]]:
    """The same as if those clusters' logs had grown very much."""
    return {name: [_grown(one) if name in clusters else one for one in held] for name, held in copies.items()}


def _grown(one: LogCopy) -> LogCopy:
    last = one.listing.segments[-1]._replace(size=HUGE)
    return one._replace(listing=one.listing._replace(segments=(*one.listing.segments[:-1], last)))


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The clusters that executors planned; the others are planned here."""
    seen: list[str] = []

    def spread(spark: Any, tasks: Any, told: Any) -> dict[str, Any]:
        seen.extend(request.cluster_id for _, request in tasks)
        return {request.cluster_id: request.cluster_id for _, request in tasks}

    monkeypatch.setattr(planning, "_spread", spread)
    monkeypatch.setattr(planning, "reconcile", lambda copies, request: request.cluster_id)
    yield seen


def plan(copies: dict[str, list[LogCopy]], state: WarehouseState) -> None:
    """All of them."""
    assert reconcile_all(copies, state, spark=lambda: None) == list(copies)  # type: ignore[arg-type, return-value, comparison-overlap]


def test_lone_copies_of_which_much_is_to_be_walked(tmp_path: Path, spread: list[str]) -> None:
    for name in "abc":
        node(tmp_path, name, "1")
    plan(grown(clusters([f"{tmp_path}/*/*"]), "a", "c"), WarehouseState())
    assert spread == ["a", "c"], "each by its own task, and what is little here"


def test_what_is_new_of_known_clusters_counts_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        node(tmp_path, f"c{number}", "1", 50)
        node(tmp_path, f"c{number}", "2", 50)
    state = state_of(tmp_path)
    monkeypatch.setattr(planning, "_FEW", 60_000)
    monkeypatch.setattr(planning, "_LITTLE", 5_000)
    copies = clusters([f"{tmp_path}/*/*"])

    def much(copies: dict[str, list[LogCopy]], state: WarehouseState = state) -> set[str]:
        return planning._much(
            (tuple(held), planning._request(name, held, state, planning.NOW, None)) for name, held in copies.items()
        )

    assert much(copies) == set(), "nothing is new, in however many clusters"
    assert much(copies, WarehouseState()) == set(copies), "all of all copies is compared where no tables are"
    assert much(grown(copies, "c7")) == {"c7"}
    node(tmp_path, "c9", "3", 50)
    assert much(grown(clusters([f"{tmp_path}/c9/*"]), "c9")) == {"c9"}
    monkeypatch.setattr(planning, "_FEW", 10_000)
    assert much(clusters([f"{tmp_path}/*/*"])) == {"c9"}, "with a new copy all of them are compared"


def failing(patch: pytest.MonkeyPatch, error: KshellError, *names: str) -> None:
    """Clusters that cannot be planned."""

    def plan(copies: Any, request: Request, **more: Any) -> Any:
        if request.cluster_id in names:
            raise error
        return real(copies, request, **more)

    real = reconcile
    patch.setattr(planning, "reconcile", plan)


def test_clusters_that_cannot_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cluster, name in ("a1", "a2", "b1", "c1"):
        node(tmp_path, cluster, name)
    copies = clusters([f"{tmp_path}/*/*"])
    at = copies["a"][1].path
    for error, blamed in ((SourceError(f"{at}/0.log: no"), [at]), (DataError("no"), [one.path for one in copies["a"]])):
        with monkeypatch.context() as patch:
            failing(patch, error, "a")
            failed: UnreadErrors = {}
            assert [one.cluster_id for one in reconcile_all(copies, WarehouseState(), failed=failed)] == ["b", "c"]
            assert failed == {"a": dict.fromkeys(blamed, error)}
            assert exit_code(failed) == error.exit_code
            with pytest.raises(type(error)):
                reconcile_all(copies, WarehouseState())
    failing(monkeypatch, DeadlineError("gave up"), "b")
    with pytest.raises(DeadlineError):  # is not about that cluster
        reconcile_all(copies, WarehouseState(), failed={})


def test_one_that_cannot_be_planned_once_more_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(*given: Any, **more: Any) -> ReconciledLog:
        raise SourceError("a.log: vanishes")

    monkeypatch.setattr(planning, "reconcile", plan)
    with pytest.raises(UnreadError, match="vanishes") as raised:
        planning.replanner({"x": []}, WarehouseState())("x", (), False)
    assert raised.value.clusters == {"x": "a.log: vanishes"}


def test_the_words_of_clusters_that_nobody_looked_at_stay() -> None:
    error = SourceError("no")
    state = WarehouseState(failed={"a": {"1": "was"}, "b": {"2": "was"}, "c": {"3": "was"}})
    assert after(state, {"b", "c"}, reasons_of({"c": {"4": error}})) == {"a": {"1": "was"}, "c": {"4": "no"}}


def test_a_copy_that_was_of_an_unknown_cluster_until_it_was_read() -> None:
    state = WarehouseState(failed={"unknown": {"/f/a/log": "was", "/f/b": "was"}, "other": {"/f/c": "was"}})
    assert after(state, {"x"}, {}, ["/f/a/log", "/f/b/log"]) == {"other": {"/f/c": "was"}}
    now = {"x": {"/f/c": "no"}}
    assert after(state, {"x"}, now, ["/f/a/log"]) == {"unknown": {"/f/b": "was"}, **now}


def test_the_tables_know_whose_copies_nobody_can_list(tmp_path: Path) -> None:
    for cluster, name in ("a", "1"), ("a", "2"), ("b", "1"):
        node(tmp_path, cluster, name)
    state, error = state_of(tmp_path), SourceError("no")
    log = {name: f"{tmp_path}/{name}/__cluster_metadata-0" for name in ("a/1", "a/2", "b/1")}
    new, failed = f"{tmp_path}/b/2", UnreadErrors({"u": {log["a/1"]: error}, "v": {f"{tmp_path}/b": error}})
    failed["w"] = {new: error}
    copies = clusters([str(tmp_path / "a/2")])
    expected = {"a": {log["a/1"]: error}, "b": {log["b/1"]: error}, "w": {new: error}}
    assert attributed(failed, copies, state) == expected
    assert attributed({"u": {f"{tmp_path}/a": error}}, copies, state) == {"a": {log["a/1"]: error}}
    assert attributed({}, copies, state) == {}
    reached = {**state.clusters["b"].reached, "positions": {}}  # of a step that read the rest of the cluster
    state = WarehouseState(2, {"b": ClusterState(reached)}, {"b": {log["b/1"]: "no"}, "old": {new: "no"}})
    assert attributed({"u": {log["b/1"]: error}, "w": {new: error}}, copies, state) == {
        "b": {log["b/1"]: error},
        "w": {new: error},
    }


def test_a_copy_whose_cluster_nobody_can_tell_is_not_counted_as_a_cluster(tmp_path: Path) -> None:
    for cluster in "abc":
        node(tmp_path, cluster, "1")
    failed, meta = UnreadErrors(), tmp_path / "c/1/meta.properties"
    meta.unlink()
    meta.symlink_to(meta)
    copies = clusters([f"{tmp_path}/*/*"], failed=failed)
    failed["d"] = {str(tmp_path / "d"): SourceError("no")}  # its meta.properties can be read
    assert len(failed) == 2 and known_clusters(copies, failed) == {"a", "b", "d"}


@pytest.mark.parametrize("pattern", ["*.log", "*.checkpoint"])
def test_a_copy_with_a_file_that_nobody_may_read_is_left_out(tmp_path: Path, pattern: str) -> None:
    for name in ("controller-3000", "controller-3001"):
        copy_of(FIXTURES / "4.3.1" / name, tmp_path)
    *_, file = sorted(tmp_path.glob(f"controller-3001/*/{pattern}"))
    failed, found = UnreadErrors(), clusters([f"{tmp_path}/*"])
    with locked(file):
        (log,) = reconcile_all(found, WarehouseState(), failed=failed)
        with pytest.raises(SourceError, match="permission denied"):
            reconcile_all(found, WarehouseState())
    assert (log.checkpoint.offset, [row["state"] for row in log.copies]) == (351, ["reference"])
    assert not log.findings
    assert reasons_of(failed) == {log.cluster_id: {str(file.parent): f"{file}: permission denied"}}
    (log,) = reconcile_all(found, WarehouseState())
    assert log.checkpoint.offset == 574
    with locked(file):
        (rest,) = reconcile_all(
            found, WarehouseState(1, {log.cluster_id: ClusterState(log.checkpoint._asdict())}), failed=UnreadErrors()
        )
    assert not rest.restart and not rest.slices and rest.checkpoint.offset == 574


def test_a_lone_copy_is_walked_quicker_than_two_are_compared(tmp_path: Path) -> None:
    from kshell.spark.steps.planning import bytes_to_plan

    for name in "12":
        node(tmp_path, "a", name, 100)
    (copies,) = clusters([f"{tmp_path}/*/*"]).values()
    size = copies[0].listing.segments[0].size
    assert (bytes_to_plan(copies[:1], None), bytes_to_plan(copies, None)) == (size // 4, 2 * size)


def test_a_copy_whose_last_batch_is_gone_is_read_from_its_offset_on(tmp_path: Path) -> None:
    from kshell.spark.reconcile import Checkpoint
    from kshell.spark.reconcile.inventory import Position, SegmentHead
    from kshell.spark.steps.planning import bytes_to_plan

    for base in (0, 100, 200):
        write_log(tmp_path, *(batch([value("NO_OP")] * 10, base + at) for at in range(0, 100, 10)), base_offset=base)
    (copies,) = clusters([str(tmp_path)]).values()
    reached = Checkpoint(150, positions={copies[0].path: Position("/elsewhere/0.log", 5, 140, SegmentHead(), 1)})
    sizes = [segment.size for segment in copies[0].listing.segments]
    assert bytes_to_plan(copies, reached) == sum(sizes[1:]) // 4
    assert bytes_to_plan(copies, reached._replace(offset=0)) == sum(sizes) // 4
