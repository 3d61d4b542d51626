"""Declaration of settings: the name, type, description and default of each key in site.yaml."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key in site.yaml: its type, description and default.

    - `holds` names the type, and is a key of `reader.READERS` or `reader.ENTRIES`.
    - `otherwise` describes the default, if the value alone is not self-explanatory.
    - `attributes` is the path to the matching field in `Settings`.
    - `editable`: whether callers of the API can change it (docs/settings.md#change-settings-over-http).
    - `secret`: whether the value can contain a secret, so that the API never shows it.
    - `bounds`: the lowest and highest value that callers of the API can set, as in site.yaml.
    - `restart`: whether a change takes effect only after a restart of the server.
    """

    name: str
    holds: str
    sentence: str
    otherwise: str = ""
    attributes: tuple[str, ...] = ()
    editable: bool = False
    secret: bool = False
    restart: bool = False
    bounds: tuple[str, str] | None = None

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))


def setting(
    default: object,
    holds: str,
    sentence: str,
    otherwise: str = "",
    *,
    key: str = "",
    editable: bool = False,
    secret: bool = False,
    restart: bool = False,
    bounds: tuple[str, str] | None = None,
) -> Any:
    declared = SettingKey(
        key, holds, sentence, otherwise, (), editable=editable, secret=secret, restart=restart, bounds=bounds
    )
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata={"key": declared})
    return field(default=default, metadata={"key": declared})
