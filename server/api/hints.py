"""Hints in the log about rejected requests and ignored query parameters."""

import json
import logging
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from server.config.model import ResponseFormat, Settings
from server.errors import ForbiddenError, NotAllowedBySettingError
from server.query.parse import PARAMETERS
from server.schema.spelling import suggestion

MAX_SHOWN_CHARS = 40  # Longer parameter names are truncated in hints.
_HASH_BYTES = 8
# Parameters of other APIs, and their names in Bifolio.
OTHER_NAMES: Mapping[str, str] = {
    "limit": "pagination[limit]",
    "start": "pagination[start]",
    "offset": "pagination[start]",
    "per_page": "pagination[pageSize]",
    "perPage": "pagination[pageSize]",
    "page_size": "pagination[pageSize]",
    "count": "pagination[withCount]",
    "order": "sort",
    "ordering": "sort",
    "q": "_q",
    "search": "_q",
    "lang": "locale",
    "select": "fields",
    "include": "populate",
    "expand": "populate",
    "publicationState": "status",
}
WITH_EFFECT = PARAMETERS - OTHER_NAMES.keys()
log = logging.getLogger("bifolio")


class OnceLog:
    """Log that writes each message only once. All workers together write at most `max_messages` messages."""

    def __init__(self, max_messages: int) -> None:
        # digests of the logged keys, in memory that forked processes share
        self._logged = mmap.mmap(-1, max_messages * _HASH_BYTES)

    def warn_once(self, key: str, message: Callable[[], str]) -> None:
        wanted, unused = blake2b(key.encode(errors="replace"), digest_size=_HASH_BYTES).digest(), bytes(8)
        for at in range(0, len(self._logged), _HASH_BYTES):
            found = self._logged[at : at + _HASH_BYTES]
            if found == wanted:
                return
            if found == unused:
                self._logged[at : at + _HASH_BYTES] = wanted
                log.warning("%s", message())
                return


@dataclass(frozen=True, slots=True)
class Hints:
    """Hints for the server's operator. Their number is limited, so that clients can't fill the log."""

    settings: OnceLog = field(default_factory=lambda: OnceLog(1))
    permissions: OnceLog = field(default_factory=lambda: OnceLog(128))
    parameters: OnceLog = field(default_factory=lambda: OnceLog(32))

    def note_error(self, error: Exception) -> None:
        if isinstance(error, NotAllowedBySettingError):
            self.settings.warn_once("", lambda: f"a request was rejected (logged only once): {error.message}")
        elif isinstance(error, ForbiddenError) and error.permission:
            self._note_permission(error.actor, error.permission)

    def note_parameters(self, names: Iterable[str], settings: Settings) -> None:
        for name in names:
            # If a client percent-encodes `=`, the name also contains the value, which may be secret.
            name = name.partition("=")[0]
            older = name == "publicationState" and settings.api.format is ResponseFormat.V4
            if name not in WITH_EFFECT and not older:
                self.parameters.warn_once(name, partial(_ignored, name[:MAX_SHOWN_CHARS]))

    def _note_permission(self, actor: str, permission: str) -> None:
        kind, _, name = actor.partition(":")
        if kind == "token":
            who, fix = (
                f"the token {name}",
                "to create a token with this permission, run `bifolio token create`; see docs/access.md",
            )
        elif kind == "user":
            who, fix = f"the role of user {name}", "to grant it, edit roles in site.yaml; see docs/access.md"
        else:  # `public`, or a role that the caller chose, such as `agent:editor`
            who, fix = f"the role {name or kind}", "to grant it, edit roles in site.yaml; see docs/access.md"
        key = f"{kind if kind == 'user' else actor} {permission}"
        what = f"{who} does not have the permission {permission} ({fix})"
        self.permissions.warn_once(key, lambda: f"a request was rejected (logged only once): {what}")


def _ignored(name: str) -> str:
    meant = OTHER_NAMES.get(name)
    near = f'did you mean "{meant}"?' if meant else suggestion(name, WITH_EFFECT)
    what = f"the unknown query parameter {json.dumps(name)} was ignored (logged only once)"
    return f"{what}: {near or 'docs/querying.md lists the parameters'}"
