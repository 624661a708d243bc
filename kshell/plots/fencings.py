"""How often brokers were fenced a day, by broker or by cluster: the pipeline's ``broker_states``."""

from __future__ import annotations

from kshell.plots.base import daily, look

PICTURE = daily.picture(
    "Fencings a day", "fencings", ("fencing", "fencings"), "broker", name="broker {}", color=look.ORANGE
)
