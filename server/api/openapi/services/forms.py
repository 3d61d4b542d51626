"""The texts of forms about users."""

from server.api.openapi.services.caller import TEXT
from server.api.openapi.values import JsonSchema
from server.auth.user import LONGEST, LONGEST_OTHER

# What a text of a form has to be, beside its lengths.
_CONTROL = r"^[^\u0000-\u001f\u007f]*$"


def text_of(name: str, least: int) -> JsonSchema:
    """The text of a field of a form, which has at least so many characters."""
    found = {**TEXT, "minLength": least, "maxLength": LONGEST.get(name, LONGEST_OTHER), "pattern": _CONTROL}
    kinds = {"email": "email"} if name == "email" else {"format": "password"} if "assword" in name else {}
    return {**found, **({"format": "email"} if name == "email" else kinds)}
