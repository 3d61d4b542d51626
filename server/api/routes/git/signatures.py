"""How the hosts of git repositories sign what they send to a hook, with a secret that both know."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from server.errors import UnauthorizedError

SECRET = "QUIRE_GIT_HOOK_SECRET"


@dataclass(frozen=True, slots=True)
class Scheme:
    """The header of a signature, and what stands before the HMAC-SHA-256 of the body, in hexadecimal digits.

    Where it is `plain`, the header has the secret itself.
    """

    header: str
    prefix: str = ""
    plain: bool = False

    def matches(self, given: str, secret: str, body: bytes) -> bool:
        """Whether a header says that a body is from who knows the secret; it takes the same time always."""
        if self.plain:
            return hmac.compare_digest(given.encode(), secret.encode())
        expected = self.prefix + hmac.new(secret.encode(), body, "sha256").hexdigest()
        return hmac.compare_digest(given.encode(), expected.encode())


# The first that a request has counts. GitHub sends two, of which X-Hub-Signature is by an older hash.
SCHEMES = (
    Scheme("X-Hub-Signature-256", "sha256="),  # GitHub; Gitea and Forgejo as well
    Scheme("X-Forgejo-Signature"),
    Scheme("X-Gitea-Signature"),
    Scheme("X-Gogs-Signature"),
    Scheme("X-Hub-Signature", "sha256="),  # Bitbucket
    Scheme("X-Gitlab-Token", plain=True),
)


def require_signature(headers: Mapping[str, str], secret: str, body: bytes) -> None:
    """Raise UnauthorizedError where a request is not signed with the secret."""
    sent = {name.lower(): value for name, value in headers.items()}
    found = next((scheme for scheme in SCHEMES if sent.get(scheme.header.lower())), None)
    if found is None:
        names = ", ".join(scheme.header for scheme in SCHEMES)
        raise UnauthorizedError(f"The request is not signed; it takes one of {names}")
    if not found.matches(sent[found.header.lower()], secret, body):
        raise UnauthorizedError(f"{found.header} is not by the secret of this server")
