"""Validation of account forms, such as the sign-in form."""

from collections.abc import Mapping
from typing import Any, cast

from server.auth.user import violated_rule
from server.errors import ValidationError
from server.formats.tree import Tree
from server.write.faults import UNSAID, quote

MAX_QUOTED_CHARS = 200  # longer values are truncated in errors
_SECRET_WORDS = ("code", "password")
_CONFIRMATION = "passwordConfirmation"  # field that must have the same value as `password`


def read_form(body: object, min_lengths: Mapping[str, int]) -> dict[str, str]:
    """Return the values of a form's fields. `min_lengths` maps each field's name to its minimum length.

    Raises a ValidationError that lists the invalid fields. Short values are listed only if all others are
    valid.
    """
    data = body if isinstance(body, dict) else {}
    for lengths in (dict.fromkeys(min_lengths, 1), min_lengths):
        errors = [
            e
            for name, min_length in lengths.items()
            for e in field_errors(name, data.get(name, UNSAID), min_length)
        ]
        if _CONFIRMATION in min_lengths and data.get(_CONFIRMATION, UNSAID) not in (
            UNSAID,
            data.get("password"),
        ):
            # As in Strapi, an empty confirmation counts as only one mistake.
            if data[_CONFIRMATION] == "":
                errors = [error for error in errors if error["path"] != [_CONFIRMATION]]
            errors.append({**field_error(_CONFIRMATION, "", None), "message": "Passwords do not match"})
        if errors:
            raise form_error(errors)
    return {name: str(data[name]) for name in min_lengths}


def reject_unknown_fields(body: object, known_fields: Mapping[str, int]) -> None:
    unknown = [name for name in body if name not in known_fields] if isinstance(body, dict) else []
    if unknown:
        raise ValidationError(f"Invalid parameters: {', '.join(unknown)[:MAX_QUOTED_CHARS]}")


def field_errors(name: str, value: object, min_length: int) -> list[dict[str, Any]]:
    if value is UNSAID or value is None or value == "":
        return [field_error(name, "is a required field", value)]
    if not isinstance(value, str):
        return [field_error(name, "must be a string", value)]
    broken = violated_rule(name, value, min_length)
    return [field_error(name, broken, value)] if broken else []


def field_error(name: str, sentence: str, value: object = UNSAID, *inner_path: str) -> dict[str, Any]:
    """Return an entry for an error response that describes an invalid field. Secret values are left out.

    `sentence` follows the name of the field in the message, for example "must be a string". `inner_path` is
    the path to the error inside the field's value.
    """
    path = [name, *inner_path]
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
    message = str(errors[0]["message"]) if len(errors) == 1 else f"{len(errors)} errors occurred"
    return ValidationError(message, {"errors": errors})
