"""The sections of the report: each module here declares one as ``SECTION``. Nothing else lists them."""

from __future__ import annotations

import importlib
from functools import cache

from kshell.discovery import module_names
from kshell.spark.report.section import ReportSection


@cache
def sections() -> tuple[ReportSection, ...]:
    """Return every section, in the order of the report."""
    declared: list[ReportSection] = [
        importlib.import_module(f"{__name__}.{name}").SECTION for name in module_names(__path__)
    ]
    return tuple(sorted(declared, key=lambda section: section.place))
