"""The request of one try: its headers, its signatures, and the address that it goes to."""

from collections.abc import Collection

from server import __version__
from server.config.webhooks import Webhook
from server.events.webhooks.http_client import TIMEOUT_S, Outcome, send
from server.events.webhooks.signing import signed_headers


def post(
    webhook: Webhook,
    secrets: Collection[str],
    webhook_id: str,
    event: str,
    body: bytes,
    at: float,
    allowed: Collection[str],
    timeout: float = TIMEOUT_S,
) -> Outcome:
    """Send the body of a delivery to a webhook (`config.webhooks.resolved`), signed with some secrets at a
    time; `event` is the name of what it tells.
    """
    headers = {
        **webhook.headers,
        "Content-Type": "application/json",
        "User-Agent": f"Quire/{__version__}",
        "X-Strapi-Event": event,
        **signed_headers(secrets, webhook_id, int(at), body),
    }
    return send(webhook.url, headers, body, allowed, timeout)
