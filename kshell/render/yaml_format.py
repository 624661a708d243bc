"""The format ``yaml``: exact values through PyYAML's safe dumper; unsafe characters are escaped in double quotes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from kshell import escape
from kshell.engine import plain
from kshell.engine.result import Nothing, Report, Result, Rows, Text, Tree, Value
from kshell.render.color import highlight
from kshell.render.options import Renderers, RenderOptions, nothing

if TYPE_CHECKING:
    from yaml import SafeDumper
    from yaml.nodes import ScalarNode

_AT_ONCE = 100
"""Rows that are given to the dumper together, because starting it costs more than dumping a row."""


@cache
def _dumper() -> type[SafeDumper]:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            """Write a shared object in full each time, without YAML aliases."""
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            """Indent lists below their key, as Kubernetes' tools do."""
            super().increase_indent(flow, False)

    def string(dumper: SafeDumper, text: str) -> ScalarNode:
        style = '"' if escape.unsafe().search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, string)
    Dumper.add_multi_representer(str, string)
    return Dumper


def to_yaml(value: object) -> str:
    """Convert a plain value to a YAML document without ``---`` and ``...``, with a newline at its end."""
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
