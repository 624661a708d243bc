"""``set``: show or change the settings of the session, such as the output format (:mod:`kshell.engine.settings`)."""

from __future__ import annotations

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag
from kshell.engine.result import Nothing, Result, Rows, typed
from kshell.engine.session import Session
from kshell.engine.settings import SETTINGS, assign, complete_name, setting, value_of, words_after
from kshell.errors import UsageError

_COLUMNS = tuple(
    column._replace(prose=column.name == "help") for column in typed("name:string value:json default:json help:string")
)


class SetArguments(Arguments):
    """Arguments and options of ``set``."""

    name: str | None
    value: str | None
    unset: bool


def run(session: Session, args: SetArguments) -> Result:
    """Show one or all settings, or set or unset one."""
    if args.name is None:
        return _setting_rows(session, list(SETTINGS))
    if args.unset:
        if args.value is not None:
            raise UsageError("set: --unset takes no value")
        session.settings.pop(setting(args.name).name, None)
        return Nothing()
    if args.value is None:
        return _setting_rows(session, [setting(args.name).name])
    assign(session, args.name, args.value)
    return Nothing()


def _setting_rows(session: Session, names: list[str]) -> Rows:
    rows = []
    for name in names:
        setting = SETTINGS[name]
        value = setting.format_value(value_of(session, name))
        rows.append(
            {"name": name, "value": value, "default": setting.format_value(setting.default), "help": setting.help}
        )
    return Rows(columns=_COLUMNS, rows=rows)


COMMAND = Command(
    name="set",
    summary="how answers look, for the rest of the session",
    run=run,
    arguments=SetArguments,
    args=(
        Arg("name", "a setting; all are shown when absent", arity="?", complete=complete_name),
        Arg("value", "what it becomes; it is shown when absent", arity="?", after=words_after),
    ),
    flags=(Flag(("--unset",), "back to its default"),),
    examples=(
        Example("set", "every setting"),
        Example("set output json", "answers in JSON from now on"),
        Example("set timeout 30", "give up after 30 seconds"),
        Example("set output --unset", "answers as they were"),
    ),
    description=(
        "A flag on the line wins over a setting. Switches are on or off. Lines with set may stand in a file for source."
    ),
    needs_source=False,
)
