"""Sample request that tests a webhook."""

import json
import time
from collections.abc import Sequence

from server.config.model import Settings
from server.config.webhooks import Webhook
from server.documents.timestamps import now
from server.events.webhooks.http_client import Outcome, new_id, post

TEST_EVENT = "trigger-test"  # Strapi's test button sends the same event.


def send_sample(settings: Settings, resolved: Webhook, secrets: Sequence[str]) -> Outcome:
    """Send a sample event without content to a webhook, and return the outcome.

    The webhook's environment variables must already be resolved.
    """
    body = {
        "event": TEST_EVENT,
        "createdAt": now(),
        "bifolio": {"seq": None, "source": "api", "tags": []},
    }
    data = json.dumps(body, separators=(",", ":")).encode()
    return post(resolved, secrets, new_id(), TEST_EVENT, data, time.time(), settings.webhooks_allow)
