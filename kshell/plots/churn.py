"""Changes of leader a day, by broker or by cluster: the pipeline's ``leadership``."""

from __future__ import annotations

from kshell.plots.base import daily

PICTURE = daily.picture(
    "Changes of leader a day",
    "gained",
    ("change of leader", "changes of leader"),
    "broker",
    name="to broker {}",
)
