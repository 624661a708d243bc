"""How unevenly leaders and replicas lay each day, by measure or by cluster: the pipeline's ``skew``."""

from __future__ import annotations

from kshell.plots.base import daily

PICTURE = daily.picture(
    "Busiest broker, to the mean", "mostToMean", ("of the mean", "times the mean"), "measure", is_level=True
)
