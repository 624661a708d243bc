"""What was changed a day, by kind or by cluster: the pipeline's ``access_audit`` and ``config_changes``."""

from __future__ import annotations

from kshell.plots.base import daily

PICTURE = daily.picture("Changes a day", "changes", ("change", "changes"), "kind")
