"""``kshell-pipeline restore``: the tables as a step left them."""

from __future__ import annotations

from typing import Any

from kshell.engine.declaration import Arg, Example
from kshell.engine.result import Rows, typed
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT

_COLUMNS = typed("step:int64 restored:int64 clusters:int64 changedTables:int64")


def run(args: Any) -> Rows:
    """The step that was made of it. Raises UsageError for a step that there is none of, CommandError where files of it
    are gone."""
    from kshell.spark.verbs.warehouse.opening import maintained

    if not (args.step.isascii() and args.step.isdigit()):
        raise UsageError(f"{args.step}: no number of a step", hint=f"`{NAME} history` lists them")
    step = int(args.step)
    with maintained(args, undoes=False) as warehouse:
        before = warehouse.state.versions
        state = warehouse.restore(step)
        changed = [name for name in warehouse.tables() if before.get(name) != state.versions[name]]
        row = {
            "step": state.step,
            "restored": step,
            "clusters": len(state.clusters),
            "changedTables": len(changed),
        }
        return Rows(_COLUMNS, [row])


VERB = Verb(
    name="restore",
    summary="the tables as an earlier step left them",
    run=run,
    args=(Arg("step", "the number of a step, as `history` lists it"),),
    flags=(OUT,),
    examples=(Example(f"{NAME} restore 12 --out tables", "after a step took in what it should not have"),),
    description=(
        "It is a step of its own: nothing is lost, and it can be undone by restoring the step before it. The next `run`"
        " goes on from where the restored step was. Steps older than what `vacuum` retains cannot be restored. Spark is"
        " not started."
    ),
)
