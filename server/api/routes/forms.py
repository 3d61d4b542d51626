"""Forms: the bodies of logins and of users, whose fields are told apart by what is wrong with each."""

from collections.abc import Mapping
from typing import Any

from server.auth.user import broken_rule
from server.errors import ValidationError

MOST_SHOWN = 200  # characters of a value that an error quotes
_SECRET = ("code", "password")


def read_form(body: object, wanted: Mapping[str, int]) -> dict[str, str]:
    """The fields of a form, whose names have a least length each.

    Raises ValidationError with everything that is wrong with them: what is missing or malformed is
    told first, what is too short only once nothing is.
    """
    data = body if isinstance(body, dict) else {}
    for lengths in (dict.fromkeys(wanted, 1), wanted):
        errors = [e for name, least in lengths.items() for e in field_errors(name, data.get(name), least)]
        if errors:
            raise form_error(errors)
    return {name: str(data[name]) for name in wanted}


def refuse_others(body: object, known: Mapping[str, int]) -> None:
    """Refuse a form with fields that it does not have. Raises ValidationError that names them."""
    others = [name for name in body if name not in known] if isinstance(body, dict) else []
    if others:
        raise ValidationError(f"Invalid parameters: {', '.join(others)[:MOST_SHOWN]}")


def field_errors(name: str, value: object, least: int) -> list[dict[str, Any]]:
    """What is wrong with one field of a form, as entries of the error's details."""
    if value is None or value == "":
        return [field_error(name, "is a required field")]
    if not isinstance(value, str):
        return [field_error(name, "must be text", value)]
    broken = broken_rule(name, value, least)
    return [field_error(name, broken, value)] if broken else []


def field_error(name: str, sentence: str, value: object = None) -> dict[str, Any]:
    """An entry of the error's details; it quotes a value that is short and no secret."""
    shown = {"value": value} if _is_quotable(name, value) else {}
    return {"path": [name], "message": f"{name} {sentence}", "name": "ValidationError", **shown}


def _is_quotable(name: str, value: object) -> bool:
    if any(secret in name.lower() for secret in _SECRET):
        return False
    return isinstance(value, str | int | float) and len(str(value)) <= MOST_SHOWN


def form_error(errors: list[dict[str, Any]]) -> ValidationError:
    """One error that names everything that is wrong with a form."""
    message = str(errors[0]["message"]) if len(errors) == 1 else f"{len(errors)} errors occurred"
    return ValidationError(message, {"errors": errors})
