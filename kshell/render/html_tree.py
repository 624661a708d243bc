"""Trees on a page: branches that fold without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kshell import escape
from kshell.engine.result import Branch, Tree
from kshell.render import plain
from kshell.render.html_cells import fields, summary, words
from kshell.render.html_style import BELOW, SUMMARY, dim
from kshell.render.html_table import note
from kshell.render.limits import cut
from kshell.render.look import Look

_VISIBLE = 40
"""Lines that are seen at once: branches so deep that there would be more start closed."""


def tree(result: Tree, look: Look) -> Iterator[str]:
    """Every branch with how many it holds, the first levels open; objects folded behind what tells most of them."""
    roots, left_out = cut(plain.trees(result.root), look.limit)
    depth = _open_depth(roots)
    for root in roots:
        yield from _branch(root, result.values, depth)
    if left_out:
        yield note(left_out)


def _open_depth(roots: list[Branch]) -> int:
    """Levels of branches that can be open; the first always is."""
    level, seen, depth = roots, len(roots), 0
    while level:
        level = [child for branch in level for child in branch.children or ()]
        seen += len(level)
        if seen > _VISIBLE and depth:
            break
        depth += 1
    return depth


def _branch(branch: Branch, values: bool, depth: int) -> Iterator[str]:
    """``depth``: levels from here on that are open."""
    name = escape.html(branch.name)
    if branch.children is None and not branch.left_out:
        yield _leaf(branch.name, branch.value) if values else f"<div>{name}</div>\n"
        return
    children = branch.children or []
    if name:
        size = len(children) + branch.left_out
        opened = " open" if depth > 0 and children else ""
        yield f"<details{opened}>{SUMMARY}{name} {dim(f'({size:,})')}</summary>{BELOW}\n"
    for child in children:
        yield from _branch(child, values, depth - 1)
    if branch.left_out:
        yield f"<div>{dim(f'… {branch.left_out:,} more')}</div>\n"
    if name:
        yield "</div></details>\n"


def _leaf(name: str, value: Any) -> str:
    shown = escape.html(name)
    if not isinstance(value, Mapping) or not value:
        return f'<div>{shown}: <code style="overflow-wrap:anywhere">{words(value)}</code></div>\n'
    inner = "".join(fields(value))
    return f"<details>{SUMMARY}{shown} {summary(value, name)}</summary>{BELOW}\n{inner}</div></details>\n"
