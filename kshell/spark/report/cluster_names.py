"""What a report calls clusters: the names that people gave them, else the beginning of their ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kshell.errors import UsageError
from kshell.spark.report.base.told import Answers

_SHORTEST = 8
"""Characters of an id that are shown at the least: as few as git shows of its own."""


def cluster_names(known: Collection[str], given: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Cluster id -> what it is called. Ids are cut where no two of them begin alike.

    Raises UsageError for a name of no cluster, and for one that two have.
    """
    names = dict(given)
    for cluster in names:
        if cluster not in known:
            raise UsageError(
                f"--name {cluster}=…: no such cluster", hint=f"there are {', '.join(sorted(known)[:3])}, …"
            )
    rest = [cluster for cluster in known if cluster not in names]
    size = _SHORTEST
    while len({cluster[:size] for cluster in rest}) < len(rest):
        size += 1
    made = names | {cluster: cluster[:size] for cluster in rest}
    if len(set(made.values())) < len(made):
        twice = sorted(name for name in names.values() if list(made.values()).count(name) > 1)
        raise UsageError(f"--name: {twice[0]} would be the name of two clusters")
    return made


def renamed(answers: Mapping[str, Answers], names: Mapping[str, str]) -> dict[str, Answers]:
    """The answers, section by section, with those names in the place of cluster ids."""

    def row_of(row: Mapping[str, object]) -> dict[str, object]:
        made = dict(row)
        if "clusterId" in made:
            made["clusterId"] = names.get(str(made["clusterId"]), made["clusterId"])
        if made.get("scope") == "cluster" and "name" in made:
            made["name"] = names.get(str(made["name"]), made["name"])
        return made

    return {
        section: {name: [row_of(row) for row in rows] for name, rows in asked.items()}
        for section, asked in answers.items()
    }
