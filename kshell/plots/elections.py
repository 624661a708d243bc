"""Unclean elections a day, by topic or by cluster: the pipeline's ``unclean_elections``."""

from __future__ import annotations

from kshell.plots.base import daily, look

PICTURE = daily.picture(
    "Unclean elections a day",
    "elections",
    ("unclean election", "unclean elections"),
    "topic",
    color=look.TROUBLE,
    hatch=look.TROUBLE_HATCH,
)
