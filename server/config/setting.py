"""Declaration of settings: the name, type, description and default of each key in site.yaml."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key in site.yaml: its type, description and default.

    - `value_type` is a key of `reader.READERS` or `reader.ENTRIES`.
    - `default_description` describes the default, if the value alone is not self-explanatory.
    - `attributes` is the path to the matching field in `Settings`.
    - `editable`: whether callers of the API can change it (docs/settings.md#change-settings-over-http).
    - `secret`: whether the value can contain a secret, so that the API never shows it.
    - `bounds`: the lowest and highest value that callers of the API can set, as in site.yaml.
    - `restart`: whether a change takes effect only after a restart of the server.
    """

    name: str
    value_type: str
    description: str
    default_description: str = ""
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
    value_type: str,
    description: str,
    default_description: str = "",
    *,
    key: str = "",
    editable: bool = False,
    secret: bool = False,
    restart: bool = False,
    bounds: tuple[str, str] | None = None,
) -> Any:
    """Return a dataclass field for a setting, with its default and a SettingKey."""
    declared = SettingKey(
        key,
        value_type,
        description,
        default_description,
        (),
        editable=editable,
        secret=secret,
        restart=restart,
        bounds=bounds,
    )
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata={"key": declared})
    return field(default=default, metadata={"key": declared})
