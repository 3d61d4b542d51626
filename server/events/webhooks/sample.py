"""The sample request with which a webhook is tested."""

import json
import os
import time
from pathlib import Path

from server.config.model import Settings
from server.config.webhooks import Webhook, resolve_environment
from server.documents.timestamps import now
from server.events.webhooks.http_client import Outcome, new_id, post
from server.events.webhooks.secret_files import secrets_of

TEST_EVENT = "trigger-test"  # Strapi's test button sends the same event.


def send_sample(root: Path, settings: Settings, webhook: Webhook) -> Outcome:
    """Send a webhook a sample event without content. Raises SetupError."""
    resolved = resolve_environment(webhook, os.environ)
    body = {
        "event": TEST_EVENT,
        "createdAt": now(),
        "bifolio": {"seq": None, "source": "api", "tags": []},
    }
    data = json.dumps(body, separators=(",", ":")).encode()
    secrets = secrets_of(root, resolved)
    return post(resolved, secrets, new_id(), TEST_EVENT, data, time.time(), settings.webhooks_allow)
