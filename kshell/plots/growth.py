"""Records of the metadata log a day, by type or by cluster: the pipeline's ``metadata_growth``."""

from __future__ import annotations

from kshell.plots.base import daily

PICTURE = daily.picture("Records a day", "records", ("record", "records"), "type")
