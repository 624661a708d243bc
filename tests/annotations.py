"""Whether what a command annotates of its arguments is what it declares."""

from __future__ import annotations

import keyword

from kshell.engine.declaration import Arguments, Command, Flag


def unannotated(command: Command) -> dict[str, tuple[str | None, str | None]]:
    """Arguments and options, each with its type as declared and as annotated, where those differ."""
    annotated: dict[str, str] = {}
    for kind in reversed(command.arguments.__mro__):
        annotated |= vars(kind).get("__annotations__", {})
    own = {name: kind for name, kind in annotated.items() if name not in Arguments.__annotations__}
    declared = {arg.name: {"1": "str", "?": "str | None"}.get(arg.arity, "list[str]") for arg in command.args}
    for flag in command.flags:
        declared[flag.dest] = _type_of(flag, annotated.get(flag.dest, ""))
    names = {name for name in declared.keys() | own if not keyword.iskeyword(name)}  # dump --from
    return {
        name: (declared.get(name), annotated.get(name)) for name in names if declared.get(name) != annotated.get(name)
    }


def _type_of(flag: Flag, annotated: str) -> str:
    """The type that an option's declaration asks for; of a value that is converted, the type is the annotation's."""
    if flag.metavar is None:
        return "bool"
    kind = "str" if flag.convert is str else annotated.removesuffix(" | None") or "?"
    if flag.repeat and not kind.startswith("list["):
        kind = f"list[{kind}]"
    return kind if flag.default is not None else f"{kind} | None"
