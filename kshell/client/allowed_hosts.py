"""Decide which hosts kshell may connect to: those of the bootstrap list, and those that ``allowed.hosts`` lists.

As in every Kafka client, a node reports the addresses of other nodes, and the client authenticates wherever it
connects. So an attacker who controls one node can make a client present its credentials at any host. The property
``allowed.hosts`` prevents that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from kshell.client.address import Address
from kshell.client.properties import Properties

KEY = "allowed.hosts"
_HINT = "host names, *.domain, addresses or networks in CIDR notation, with commas: *.kafka.example,10.0.0.0/8"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AllowedHosts(NamedTuple):
    """Patterns for hosts. Names are compared as text, without a DNS lookup; an IP address may also match a network."""

    names: frozenset[str]
    domains: tuple[str, ...]
    """The part of ``*.domain`` behind the asterisk, with its dot."""
    networks: tuple[Network, ...]

    @classmethod
    def of(cls, properties: Properties) -> AllowedHosts | None:
        """Read the property ``allowed.hosts``; ``None`` if it is not set, which allows every host.

        Raises:
            UsageError: an entry has none of the valid forms; the error names it.
        """
        entries = properties.entries(KEY)
        if not entries:
            return None
        names: set[str] = set()
        domains: list[str] = []
        networks: list[Network] = []
        for entry in entries:
            host = entry.replace("[", "").replace("]", "").lower()
            if host.startswith("*."):
                domains.append(host[1:])
            elif "/" in host:
                try:
                    networks.append(ipaddress.ip_network(host, strict=False))
                except ValueError:
                    raise properties.fault(KEY, f"{entry} is not a network", hint=_HINT) from None
            else:
                names.add(host)
            if "*" in host.removeprefix("*.") or not host.removeprefix("*."):
                raise properties.fault(KEY, f"{entry} is not a host", hint=_HINT)
        return cls(frozenset(names), tuple(domains), tuple(networks))

    def including(self, addresses: Iterable[Address]) -> AllowedHosts:
        """Return a copy that also allows the hosts of a bootstrap list, because the user named them."""
        return self._replace(names=self.names.union(host.lower() for host, _ in addresses))

    def allows(self, host: str) -> bool:
        """Whether kshell may connect to a host (a name or an IP address)."""
        host = host.lower().rstrip(".")
        if host in self.names or host.endswith(self.domains):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self.networks)
