"""Sections of the report, one a module."""

from __future__ import annotations

import importlib
from functools import cache

from kshell.discovery import module_names
from kshell.spark.report.section import ReportSection


@cache
def sections() -> tuple[ReportSection, ...]:
    """Every section, in the report's order."""
    declared: list[ReportSection] = [
        importlib.import_module(f"{__name__}.{name}").SECTION for name in module_names(__path__)
    ]
    return tuple(sorted(declared, key=lambda section: section.place))
