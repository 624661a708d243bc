"""``yaml``: exact values through PyYAML's safe dumper. Strings with odd characters stand in double quotes, escaped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from kshell import escape
from kshell.engine import plain
from kshell.engine.result import Nothing, Report, Result, Rows, Text, Tree, Value
from kshell.render.color import highlight
from kshell.render.options import Renderers, RenderOptions, nothing

_AT_ONCE = 100
"""Rows given to the dumper together: starting it costs more than a row."""


@cache
def _dumper() -> type[Any]:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            """Every value is written where it stands, also when two places share the object."""
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            """Lists are indented below their key, as Kubernetes' tools have it."""
            super().increase_indent(flow, False)

    def string(dumper: Any, text: str) -> Any:
        style = '"' if escape.unsafe().search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, string)
    Dumper.add_multi_representer(str, string)
    return Dumper


def to_yaml(value: Any) -> str:
    """A plain value as one YAML document, without the marks that begin and end one; a newline at its end."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), allow_unicode=True, sort_keys=False, default_flow_style=False, width=10**9
    )
    return escape.yaml(text.removesuffix("...\n"))


def _document(result: Result) -> Iterator[str]:
    if isinstance(result, Text):
        yield to_yaml(result.text)
    elif isinstance(result, Value):
        yield to_yaml(result.value)
    elif isinstance(result, Tree):
        yield to_yaml(plain.tree(result.root))
    elif isinstance(result, Report):
        yield to_yaml(plain.report(result))


def _list(result: Rows) -> Iterator[str]:
    items = plain.objects(result)
    at_once = 1 if result.live else _AT_ONCE
    some = list(islice(items, at_once))
    if not some:
        yield "[]\n"
    while some:
        yield to_yaml(some)
        some = list(islice(items, at_once))


def _render(result: Result, options: RenderOptions) -> Iterator[str]:
    chunks = _list(result) if isinstance(result, Rows) else _document(result)
    return highlight(chunks, "yaml") if options.color else chunks


FORMATS: dict[str, Renderers] = {
    "yaml": {Text: _render, Value: _render, Rows: _render, Tree: _render, Report: _render, Nothing: nothing}
}
