"""Declaration of settings: the name, type, description and default of each key in site.yaml."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key in site.yaml: its type, description and default.

    - `holds` names the type, and is a key of `reader.READERS` or `reader.ENTRIES`.
    - `otherwise` describes the default, if the value alone is not self-explanatory.
    - `attributes` is the path to the matching field in `Settings`.
    """

    name: str
    holds: str
    sentence: str
    otherwise: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))


def setting(default: object, holds: str, sentence: str, otherwise: str = "", *, key: str = "") -> Any:
    metadata = {"key": SettingKey(key, holds, sentence, otherwise)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)
