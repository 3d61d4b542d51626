"""What a role or a token may be granted."""

from collections.abc import Mapping

from server.schema.check import RESERVED

# What may be granted, by subject; "" stands for every content type.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "": ("find", "findOne", "create", "update", "delete", "readDraft", "updateDraft"),
    "upload": ("upload", "find", "findOne", "destroy"),
    "user": ("me", "updateMe", "find", "findOne", "create", "update", "destroy", "count"),
    "auth": (
        "callback", "register", "changePassword", "forgotPassword", "resetPassword",
        "sendEmailConfirmation", "emailConfirmation", "connect",
        "refresh", "logout", "getSessions", "revokeSession",
    ),
    "role": ("find", "findOne"),
    "locale": ("find",),
    "history": ("read", "restore", "commit"),
    "metrics": ("read",),
    "branch": ("find", "create", "update", "delete", "merge"),
    "source": ("read", "write"),
    "problems": ("find", "fix"),
    "content-type": ("find", "findOne"),
}  # fmt: skip


def known_actions(subject: str) -> tuple[str, ...]:
    """What may be granted on a subject, and, where that can be a content type as well, on such a type."""
    own = ACTIONS.get(subject, ())
    return own if subject in RESERVED else tuple(dict.fromkeys((*own, *ACTIONS[""])))
