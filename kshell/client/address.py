"""Where a node listens: a host and a port."""

from __future__ import annotations

Address = tuple[str, int]


def name_of(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
