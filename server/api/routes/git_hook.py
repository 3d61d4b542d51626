"""Handler for `POST /git/hook`, which git hosts call after a push.

A forged request does no harm, because the handler only fetches from the remote that the settings name.
"""

import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from flask import Response, request

from server.api.request import FORM, state_of
from server.api.routes.handlers import Handlers
from server.api.serving.bodies import MEDIUM_BODY_BYTES
from server.database.notices import COMMITS, Notices
from server.errors import NotFoundError, PayloadTooLargeError, UnauthorizedError, ValidationError
from server.history.remote.wakeup import wake
from server.site.site import Site
from server.storage.git.refs import BRANCH_PREFIX, COMMIT_ID, checked_out_branch

SECRET = "BIFOLIO_GIT_HOOK_SECRET"


@dataclass(frozen=True, slots=True)
class SignatureScheme:
    """The header in which a git host sends its signature.

    If `is_secret` is set, the header's value is the secret itself. Otherwise, it is `prefix`, followed by the
    HMAC-SHA-256 of the body in hexadecimal.
    """

    header: str
    prefix: str = ""
    is_secret: bool = False

    def matches(self, value: str, secret: str, body: bytes) -> bool:
        """Return whether `value` is the correct signature, using a constant-time comparison."""
        if self.is_secret:
            return hmac.compare_digest(value.encode(), secret.encode())
        expected = self.prefix + hmac.new(secret.encode(), body, "sha256").hexdigest()
        return hmac.compare_digest(value.encode(), expected.encode())


# If a request has more than one of these headers, only the first in this order is checked. GitHub also sends
# X-Hub-Signature, with an older hash.
SCHEMES = (
    SignatureScheme("X-Hub-Signature-256", "sha256="),  # GitHub, Gitea and Forgejo
    SignatureScheme("X-Forgejo-Signature"),
    SignatureScheme("X-Gitea-Signature"),
    SignatureScheme("X-Gogs-Signature"),
    SignatureScheme("X-Hub-Signature", "sha256="),  # Bitbucket
    SignatureScheme("X-Gitlab-Token", is_secret=True),
)


def require_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    """Raise UnauthorizedError if the request is not signed with the secret."""
    sent = {name.lower(): value for name, value in headers.items()}
    found = next((scheme for scheme in SCHEMES if sent.get(scheme.header.lower())), None)
    if found is None:
        names = ", ".join(scheme.header for scheme in SCHEMES)
        raise UnauthorizedError(f"The request has no signature; send one of the headers {names}")
    if not found.matches(sent[found.header.lower()], secret, body):
        raise UnauthorizedError(f"The signature in {found.header} does not match this server's secret")


_DEPTH_ERRORS = (ValueError, RecursionError)


def bind(handles: Handlers, site: Site, notices: Notices) -> None:
    """Register the handler. After a push, it notifies the site's other machines."""

    @handles("gitHook")
    def hook() -> Response:
        secret = os.environ.get(SECRET, "")
        if not secret:
            raise NotFoundError(
                f"The git hook is disabled, because {SECRET} is not set in the server's environment"
            )
        body = _body()
        require_signature(dict(request.headers), secret, body)
        settings = state_of(request).settings
        pushed = dict(_read_pushes(_parse_payload(body)))
        branch = settings.git.branch or checked_out_branch(site.root)
        if not settings.git.remote or branch not in pushed:
            return Response(status=204)
        wake(site.root)
        notices.notify(COMMITS, pushed[branch])
        return Response(status=202)


def _body() -> bytes:
    if (request.content_length or 0) > MEDIUM_BODY_BYTES:
        raise PayloadTooLargeError(f"The request body is larger than {MEDIUM_BODY_BYTES:,} bytes")
    return request.get_data(cache=False, parse_form_data=False)


def _parse_payload(body: bytes) -> Any:
    try:
        text = body.decode()
        if request.mimetype == FORM:
            text = parse_qs(text).get("payload", [""])[0]
        return json.loads(text)
    except _DEPTH_ERRORS as error:
        raise ValidationError(
            "The request body must be the JSON that the git host sends after a push"
        ) from error


def _read_pushes(payload: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the new commit of each pushed branch. The commit is "" if it is unknown."""
    if not isinstance(payload, dict):
        return
    ref = payload.get("ref")
    if isinstance(ref, str) and ref.startswith(BRANCH_PREFIX):
        yield ref.removeprefix(BRANCH_PREFIX), _commit(payload.get("after"))
    push = payload.get("push")  # Bitbucket
    changes = push.get("changes") if isinstance(push, dict) else None
    for change in changes if isinstance(changes, list) else ():
        new = change.get("new") if isinstance(change, dict) else None
        if isinstance(new, dict) and new.get("type") == "branch" and isinstance(new.get("name"), str):
            target = new.get("target")
            yield new["name"], _commit(target.get("hash") if isinstance(target, dict) else None)


def _commit(told: object) -> str:
    return told if isinstance(told, str) and COMMIT_ID.fullmatch(told) else ""
