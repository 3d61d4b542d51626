"""Metadata about the settings in site.yaml."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A setting's key in site.yaml, with metadata.

    - `value_type`: the name of the setting's reader in `reader.READERS` or `reader.ENTRIES`.
    - `attributes`: the path of the setting's value in `Settings`.
    - `editable`: whether the API can change the setting.
    - `secret`: whether the API hides the setting's value.
    - `bounds`: the lowest and highest value that the API accepts, written as in site.yaml.
    - `restart`: whether a change takes effect only after a restart.
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
    """Return a dataclass field that declares a setting. SettingKey explains the parameters."""
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
