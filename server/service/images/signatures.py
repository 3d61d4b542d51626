"""Signatures of image URLs, for `media.transform.sign` (docs/images.md)."""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from server.auth.session_key import previous_key, session_key
from server.config.transformation import PARAMETERS, PRESET
from server.errors import SetupError
from server.paths import UPLOADS_URL

SIGNATURE = "s"
_PURPOSE = b"image urls"  # The session key signs other things too.


def signature(secret: str, path: str, parameters: Mapping[str, str]) -> str:
    """Return the base64url HMAC-SHA256 of an image's path below /uploads/ and its URL's sorted parameters."""
    signed = sorted((name, value) for name, value in parameters.items() if name in PARAMETERS)
    derived = hmac.digest(secret.encode(), _PURPOSE, "sha256")
    text = f"{path}?{urlencode(signed)}"
    digest = hmac.digest(derived, text.encode(errors="surrogatepass"), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")


def is_signed(root: Path, path: str, parameters: Mapping[str, object]) -> bool:
    """Return True if the URL has a valid signature, or needs none because it only names a preset."""
    if not {name for name in parameters if name in PARAMETERS} - {PRESET}:
        return True
    signed = {name: value for name, value in parameters.items() if isinstance(value, str)}
    if len(signed) < len(parameters):  # A parameter occurs more than once, or has no value.
        return False
    found = signed.get(SIGNATURE, "").encode(errors="surrogatepass")
    previous = previous_key(root)
    secrets = [session_key(root), *([previous.text] if previous and previous.is_usable() else [])]
    return any(hmac.compare_digest(found, signature(secret, path, signed).encode()) for secret in secrets)


def sign_url(root: Path, url: str) -> str:
    """Add a signature to the URL of a transformed image. Raises SetupError if it is not such a URL."""
    parts = urlsplit(url)
    pairs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != SIGNATURE]
    parameters = dict(pairs)
    head, found, path = parts.path.partition(UPLOADS_URL)
    if not found or not any(name in PARAMETERS for name in parameters):
        fix = "write a URL such as /uploads/bay.jpg?width=800"
        raise SetupError(url, None, "is not the URL of a transformed image", fix)
    if len(parameters) < len(pairs):
        raise SetupError(url, None, "contains a parameter more than once", "remove one of the two")
    decoded = unquote(path)
    parameters[SIGNATURE] = signature(session_key(root), decoded, parameters)
    return parts._replace(path=f"{head}{UPLOADS_URL}{quote(decoded)}", query=urlencode(parameters)).geturl()
