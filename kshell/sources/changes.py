"""Look whether a source has changed since it was read, for what stays: ``watch``, ``top`` and the MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.errors import KshellError, UsageError

if TYPE_CHECKING:
    from kshell.sources.directory.files import Listing
    from kshell.sources.view import SourceView


class ChangeDetector:
    """Watches a view's source: :meth:`changed` is called from time to time, and renews the view after a change.

    A live source has changed when more records are committed, a directory when files came, went or have other sizes.
    """

    def __init__(self, view: SourceView) -> None:
        self._view = view
        self._listing: Listing | None = None
        self._has_failed = False
        """Whether the source could not be read the last time."""

    def changed(self) -> bool:
        """Whether the source has changed since the last call; renews the view then. Raises KshellError."""
        try:
            has_changed = self._has_news()
        except KshellError:
            self._has_failed = True
            raise
        is_back, self._has_failed = self._has_failed, False
        return has_changed or is_back

    def _has_news(self) -> bool:
        view = self._view
        if view.refresh():
            return True
        if view.source.is_live:
            return False
        try:
            listing = view.source.listing()
        except UsageError:
            return False  # there is no source, and the command needs none
        current = view.loaded.listing if view.is_loaded else self._listing
        is_same = current is None or listing in (current, self._listing)
        self._listing = listing
        if not is_same:
            view.renew()
        return not is_same
