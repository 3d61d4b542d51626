"""The words that mean true and false in parameters."""

from collections.abc import Mapping

BOOLEANS: Mapping[str, bool] = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def read_boolean(value: object) -> bool | None:
    """What a parameter says; None where it is none of the words."""
    return BOOLEANS.get(value) if isinstance(value, str) else None
