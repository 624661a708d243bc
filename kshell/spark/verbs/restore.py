"""``kshell-pipeline restore``: brings the tables back to what they were after an earlier step, as a new step."""

from __future__ import annotations

from kshell.engine.declaration import Arg, Example
from kshell.engine.result import Rows, typed
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT, OutArguments
from kshell.spark.verbs.warehouse.opening import maintained

_COLUMNS = typed("step:int64 restored:int64 clusters:int64 changedTables:int64")


class RestoreArguments(OutArguments):
    """Arguments and options of ``restore``."""

    step: str


def run(args: RestoreArguments) -> Rows:
    """Restore a step, and return one row about the new step. Raises UsageError if there is no such step, CommandError
    if files of it were removed already."""
    if not (args.step.isascii() and args.step.isdigit()):
        raise UsageError(f"{args.step}: no number of a step", hint=f"`{NAME} history` lists them")
    step = int(args.step)
    with maintained(args, restores=True) as warehouse:
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
    summary="put the tables back to the state of an earlier step",
    run=run,
    arguments=RestoreArguments,
    args=(Arg("step", "the number of a step, as `history` lists it"),),
    flags=(OUT,),
    examples=(Example(f"{NAME} restore 12 --out tables", "after a step took in what it should not have"),),
    description=(
        "It is a step of its own: nothing is lost, and it can be undone by restoring the step before it. The next `run`"
        " goes on from where the restored step was. Steps older than what `vacuum` retains cannot be restored. Spark is"
        " not started."
    ),
)
