"""Forms of accounts: flat objects of texts, such as a login, and what is wrong with them."""

from collections.abc import Mapping
from typing import Any, cast

from server.auth.user import broken_rule
from server.errors import ValidationError
from server.formats.tree import Tree
from server.write.faults import UNSAID, quote

MAX_QUOTED_CHARS = 200  # Of a value that an error quotes.
_SECRET_WORDS = ("code", "password")
_CONFIRMATION = "passwordConfirmation"  # A field that repeats `password`.


def read_form(body: object, wanted: Mapping[str, int]) -> dict[str, str]:
    """Return the fields of a form; `wanted` has the minimum length of each.

    Raises ValidationError with every mistake: first what is missing, malformed or not repeated, and only if
    nothing is, what is too short.
    """
    data = body if isinstance(body, dict) else {}
    for lengths in (dict.fromkeys(wanted, 1), wanted):
        errors = [
            e for name, least in lengths.items() for e in field_errors(name, data.get(name, UNSAID), least)
        ]
        if _CONFIRMATION in wanted and data.get(_CONFIRMATION, UNSAID) not in (UNSAID, data.get("password")):
            if data[_CONFIRMATION] == "":  # An empty one has one mistake, as in Strapi.
                errors = [error for error in errors if error["path"] != [_CONFIRMATION]]
            errors.append({**field_error(_CONFIRMATION, "", None), "message": "Passwords do not match"})
        if errors:
            raise form_error(errors)
    return {name: str(data[name]) for name in wanted}


def refuse_others(body: object, known: Mapping[str, int]) -> None:
    """Raise ValidationError if a form has unknown fields; its message names them."""
    others = [name for name in body if name not in known] if isinstance(body, dict) else []
    if others:
        raise ValidationError(f"Invalid parameters: {', '.join(others)[:MAX_QUOTED_CHARS]}")


def field_errors(name: str, value: object, least: int) -> list[dict[str, Any]]:
    """Return the mistakes in one field of a form, as entries of the error's details.

    A field that the form does not have is UNSAID.
    """
    if value is UNSAID or value is None or value == "":
        return [field_error(name, "is a required field", value)]
    if not isinstance(value, str):
        return [field_error(name, "must be text", value)]
    broken = broken_rule(name, value, least)
    return [field_error(name, broken, value)] if broken else []


def field_error(name: str, sentence: str, value: object = UNSAID, *inside: str) -> dict[str, Any]:
    """Return an entry of the error's details. It quotes the value that was sent, if it is not secret.

    `inside` are the steps to a place in the field.
    """
    path = [name, *inside]
    message = f"{'.'.join(path)} {sentence}"
    return {"path": path, "message": message, "name": "ValidationError", **_quoted(name, value)}


def _quoted(name: str, value: object) -> dict[str, Any]:
    if value is UNSAID:
        return {}
    if any(secret in name.lower() for secret in _SECRET_WORDS):
        return {"value": None}
    quoted = quote(cast(Tree, value))
    return {"value": quoted[:MAX_QUOTED_CHARS] if isinstance(quoted, str) else quoted}


def form_error(errors: list[dict[str, Any]]) -> ValidationError:
    """Return one error that names every mistake in a form."""
    message = str(errors[0]["message"]) if len(errors) == 1 else f"{len(errors)} errors occurred"
    return ValidationError(message, {"errors": errors})
