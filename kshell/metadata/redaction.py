"""Redaction of secrets: the only module that decides which values are shown.

Fields declared ``secret`` are hidden. Whether a config's value is hidden depends on its key, without a prefix
``listener.name.…``: keys that some release from 3.3 to 4.4 defines as passwords, and keys that no release defines for
that resource type, are hidden (the "Normal" policy of Kafka's ``MetadataNodeRedactionCriteria``).
"""

from __future__ import annotations

from typing import Any

from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.records import Decoded
from kshell.metadata.values import enum_name, plain
from kshell.protocol.decoder import UNKNOWN_TAGS, Message
from kshell.protocol.primitives import Uuid

REDACTED = "[redacted]"


def config_is_secret(resource_type: str, key: str) -> bool:
    """Whether a config's value is hidden: its key is that of a password, or unknown."""
    # Late: the table is large, and most commands show no config.
    from kshell.metadata.config_types import known_key

    config = known_key(resource_type, key)
    return config is None or config.is_password


class Redaction:
    """Replaces secrets by :data:`REDACTED` in values that are shown; with ``show_secrets`` it changes nothing.

    ``hides_undecoded``: the bytes of records that cannot be decoded are hidden, too, for an answer that is passed on:
    nobody knows what they hold.
    """

    def __init__(self, *, show_secrets: bool = False, hides_undecoded: bool = False) -> None:
        self.show_secrets = show_secrets
        self.hides_undecoded = hides_undecoded

    def config(self, resource_type: str, key: str, value: str | None) -> str | None:
        """Return a config's value as it may be shown."""
        return REDACTED if value is not None and self._hides(resource_type, key) else value

    def _hides(self, resource_type: str, key: str) -> bool:
        return not self.show_secrets and config_is_secret(resource_type, key)

    def fields(self, content: object, secret: tuple[str, ...]) -> Any:
        """Return the JSON object of a value in the tree, with the fields named in ``secret`` redacted."""
        if self.show_secrets or not secret or not isinstance(content, dict):
            return content
        return {name: REDACTED if name in secret else value for name, value in content.items()}

    def record(self, decoded: Decoded) -> Any:
        """Return a record's fields as ``dump`` prints them, or ``{"undecoded": hex, …}``. It changes ``decoded``."""
        if decoded.data is None:
            return self._undecoded(decoded)
        if decoded.type is None:
            return record_plain(decoded.data)
        from kshell.metadata.printing import printer  # late: only dump prints records

        schema = decoded.type.schema
        printed = printer(schema)(decoded.data)
        secrets = schema.secrets
        if not secrets or self.show_secrets:
            return printed
        for name, kind in secrets.items():
            if kind != "secret:config" or (self._hides_config(printed) and printed.get(name) is not None):
                printed[name] = REDACTED
        if UNKNOWN_TAGS in printed:
            printed[UNKNOWN_TAGS] = [{"tag": tag["tag"], "data": REDACTED} for tag in printed[UNKNOWN_TAGS]]
        return printed

    def hides(self, secrecy: str, data: Message) -> bool:
        """Whether a secret field of a record is hidden.

        Args:
            secrecy: the word in the field's declaration, ``secret`` or ``secret:config``.
            data: the record's fields before it, which for a config include its resource type and name.
        """
        return not self.show_secrets and (secrecy != "secret:config" or self._hides_config(data))

    def _hides_config(self, data: Message) -> bool:
        return self._hides(enum_name(RESOURCE_TYPES, data.get("resourceType", 0)), data.get("name", ""))

    def _undecoded(self, decoded: Decoded) -> dict[str, str]:
        undecoded = decoded.undecoded
        raw, reason = (undecoded.raw, undecoded.reason) if undecoded else (b"", "")
        return self.undecoded(raw, reason, hide=decoded.type is not None and bool(decoded.type.schema.secrets))

    def raw(self, decoded: Decoded) -> bytes | None:
        """Return the bytes of a record that was not decoded; ``None`` if it was, or if they are redacted."""
        if decoded.undecoded is None or self._undecoded(decoded)["undecoded"] == REDACTED:
            return None
        return decoded.undecoded.raw

    def undecoded(self, raw: bytes, reason: str, *, hide: bool = False) -> dict[str, str]:
        """Return the JSON object of an undecoded record; ``hide``: its type has secrets, so its bytes are redacted."""
        hide = hide or self.hides_undecoded
        return {"undecoded": REDACTED if hide and not self.show_secrets else raw.hex(), "reason": reason}


def record_plain(value: object) -> Any:
    """Return a record's value as Kafka's own JSON converters write it: bytes in base64; unknown tags in hex."""
    if isinstance(value, dict):
        return {
            name: [{"tag": t["tag"], "data": t["data"].hex()} for t in item]
            if name == UNKNOWN_TAGS
            else record_plain(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [record_plain(item) for item in value]
    if isinstance(value, bytes) and not isinstance(value, Uuid):
        import base64

        return base64.b64encode(value).decode("ascii")
    return plain(value)
