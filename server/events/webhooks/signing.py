"""Signatures of Standard Webhooks (https://www.standardwebhooks.com), which its libraries verify."""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping

from server.config.webhooks import SECRET_PREFIX

BYTES = 32  # of a new secret


def new_secret() -> str:
    """A secret made at random: `whsec_` and base64."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(BYTES)).decode()


def new_id() -> str:
    """The id of a delivery, `msg_` and 24 characters."""
    return f"msg_{secrets.token_urlsafe(18)}"


def signature(secret: str, webhook_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a request with one secret: `v1,` and base64 of HMAC-SHA256."""
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.digest(key, signed, "sha256")).decode()


def signed_headers(secrets: Iterable[str], webhook_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """The headers of Standard Webhooks for one try; each secret signs, so that receivers may have any."""
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, webhook_id, timestamp, body) for secret in secrets),
    }
