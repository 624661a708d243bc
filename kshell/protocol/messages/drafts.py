"""Messages as drafts of KIPs had them, where Kafka's releases then did it differently. Each is called a *dialect*.

A dialect is off unless the client property ``dialect`` names it. The versions of a dialect have other layouts in
Kafka's releases, so use one only with a peer that is known to speak it. Each declares only what it changes in the
message that Kafka released.
"""

from __future__ import annotations

import re

from kshell.protocol.api import NEVER, Api, api
from kshell.protocol.decoder import UNKNOWN_TAGS, Message
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER, METADATA
from kshell.protocol.messages.configs import DESCRIBE_CONFIGS
from kshell.protocol.messages.connection import API_VERSIONS

_KIP_35 = api(
    "ApiVersions",
    18,
    "0",
    flexible=NEVER,
    request="""
  apiKeys       []int16?  = null
""",
    response="""
  apiKeys       []ApiVersion
    apiKey      int16
    minVersion  int16
    maxVersion  int16
""",
)


def _edited(text: str, *, without: tuple[str, ...] = (), after: str = "", add: str = "") -> str:
    """Return a declaration without some fields, and with lines added after the field ``after`` and its nested fields.

    Fields are named with their indentation, as in the text. Raises ValueError for a field that is not there.
    """
    lines: list[str] = []
    missing = {*without, *([after] if after else ())}
    inside = False
    for line in [*text.strip("\n").split("\n"), ""]:
        name = re.match(r" *\w*", line)
        field = name[0] if name else ""
        deeper = len(field) - len(field.lstrip()) > len(after) - len(after.lstrip())
        if inside and not deeper:
            lines.append(add.strip("\n"))
            inside = False
        missing.discard(field)
        inside = inside or (bool(after) and field == after)
        if field not in without:
            lines.append(line)
    if missing:
        raise ValueError(f"no such fields: {sorted(missing)}")
    return "\n".join(lines)


def _draft(released: Api, versions: str, request: str, response: str, *, flexible: int | None = None) -> Api:
    first = released.request.flexible if flexible is None else flexible
    return api(released.name, released.key, versions, flexible=first, request=request, response=response)


_SOFTWARE = """
  brokerSoftwareName     string?  {0}+  = null
  brokerSoftwareVersion  string?  {0}+  = null
"""

_KIP_885 = _draft(
    DESCRIBE_CLUSTER,
    "0-1",
    _edited(DESCRIBE_CLUSTER.request.text, without=("  endpointType",)),
    _edited(DESCRIBE_CLUSTER.response.text, without=("  endpointType",), after="  brokers", add=_SOFTWARE.format(1)),
)

_KIP_885_API_VERSIONS = _draft(
    API_VERSIONS,
    "0-4",
    API_VERSIONS.request.text,
    _edited(API_VERSIONS.response.text, after="  throttleTimeMs", add=_SOFTWARE.format(4)),
)

_KIP_919 = _draft(
    METADATA,
    "1-13",
    _edited(
        METADATA.request.text,
        after="  includeTopicAuthorizedOperations",
        add="  directToKRaftControllerQuorum  bool  13+",
    ),
    _edited(
        METADATA.response.text,
        without=("  errorCode",),
        after="  clusterAuthorizedOperations",
        add="  fromKRaftController  bool  13+  tag 0",
    ),
)

_KIP_569 = _draft(
    DESCRIBE_CONFIGS,
    "1-3",
    DESCRIBE_CONFIGS.request.text,
    _edited(
        DESCRIBE_CONFIGS.response.text,
        without=("      configType",),
        after="      synonyms",
        add="""
      type             string?     3+  = null
      validator        Validator?  3+  = null
        caseSensitive  bool
        values         []string
""",
    ),
    flexible=NEVER,
)

DIALECTS: dict[str, Api] = {
    "kip-35-draft": _KIP_35,
    "kip-569-draft": _KIP_569,
    "kip-885": _KIP_885,
    "kip-885-apiversions": _KIP_885_API_VERSIONS,
    "kip-919-draft": _KIP_919,
}
"""Name of a dialect -> the one API whose layout it replaces."""

_CONFIG_TYPES = frozenset("BOOLEAN STRING INT SHORT LONG DOUBLE LIST CLASS PASSWORD UNKNOWN".split())
_SHORTEST_CLUSTER_ID = 2
_KIP_569_VERSION = 3


def why_not_in_dialect(api: Api, version: int, body: Message) -> str | None:
    """Return why a response that was decoded in a dialect cannot be in that dialect; ``None`` if it can be.

    The layout of Kafka's releases differs from a draft by a field or two, and sometimes the bytes of one can be decoded
    as the other. Then a field has the bytes of another one, and so a value that it never has in the dialect.
    """
    if api is _KIP_885 and version >= 1 and not body["errorCode"] and len(body["clusterId"]) < _SHORTEST_CLUSTER_ID:
        return "the cluster's id is missing"  # Kafka's endpoint type, read as the length of the id
    if api is _KIP_885_API_VERSIONS and (body.get("brokerSoftwareName") or " ") < " ":
        return "the software's name begins with a control character"  # the number of a tagged field
    if api is _KIP_919 and version == _KIP_919.versions.high and UNKNOWN_TAGS in body:
        return "a tagged field is none of the draft's"  # an error code, read as tagged fields
    if api is _KIP_569 and version == _KIP_569_VERSION:
        for config in (config for result in body["results"] for config in result["configs"]):
            if config["type"] is not None and config["type"] not in _CONFIG_TYPES:
                return "a configuration's type is none of the draft's"  # a number, and the length of the documentation
    return None
