"""Make an interactive timeline as a Vega-Lite specification, which JupyterLab, Notebook 7 and VS Code can draw.

It is data, not a script, so a saved notebook keeps it. Where it cannot be drawn, the notebook shows the PNG next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.escape import terminal
from kshell.plots import theme

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

MIME = "application/vnd.vegalite.v5+json"
MOST = 5_000
"""The most intervals, because a notebook saves all of them."""
_STEP = 22


class LaneBar(NamedTuple):
    """A state in a lane, with its start and end (epoch milliseconds), and ``facts`` for the tooltip."""

    lane: str
    start: float
    end: float
    state: str
    facts: JsonObject


def timeline(title: str, bars: Sequence[LaneBar], colors: dict[str, str], legend: str) -> JsonObject:
    """Return the specification: lanes in the order of their first interval, a colour for each state, texts escaped."""
    names = list(dict.fromkeys(fact for bar in bars for fact in bar.facts))
    data = [
        {
            "lane": terminal(bar.lane),
            "from": bar.start,
            "to": bar.end,
            "state": bar.state,
            **{f"fact{place}": _text(bar.facts.get(name)) for place, name in enumerate(names)},
        }
        for bar in bars[:MOST]
    ]
    left_out = len(bars) - len(data)
    facts = [{"field": f"fact{place}", "type": "nominal", "title": name} for place, name in enumerate(names)]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"{title}, the first {MOST:,} of {len(bars):,} intervals" if left_out else title,
        "background": "transparent",
        "width": theme.WIDTH - 260,
        "height": {"step": _STEP},
        "data": {"values": data},
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
        "mark": {"type": "bar", "height": {"band": 0.72}, "stroke": theme.INK, "strokeWidth": 0.6, "clip": True},
        "encoding": {
            "y": {"field": "lane", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "from", "type": "temporal", "scale": {"type": "utc"}, "title": "time in UTC"},
            "x2": {"field": "to"},
            "color": {
                "field": "state",
                "type": "nominal",
                "title": legend,
                "scale": {"domain": list(colors), "range": list(colors.values())},
            },
            "tooltip": [{"field": "lane", "type": "nominal", "title": "lane"}, *facts],
        },
        "config": {
            "view": {"stroke": None},
            "title": {"color": theme.INK, "anchor": "start"},
            "axis": {"labelColor": theme.INK, "titleColor": theme.INK, "gridOpacity": 0.2, "labelLimit": 300},
            "legend": {"labelColor": theme.INK, "titleColor": theme.INK},
        },
    }


def _text(value: object) -> str:
    return terminal(str(value)) if value is not None else "-"
