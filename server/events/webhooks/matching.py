"""Rules that determine which webhooks receive an event (docs/webhooks.md)."""

from server.auth.permissions import permission_subject
from server.config.webhooks import Webhook
from server.events.model import Event

SITE_UPDATE = "site.update"


def receives(webhook: Webhook, event: Event) -> bool:
    """Return whether a webhook receives an event.

    A webhook receives a combined event if it would receive at least one of the events in it. No webhook
    receives hidden events, in which only private attributes changed.
    """
    if event.hidden:
        return False
    if event.counts is not None:
        return any(
            _matches_type(webhook, uid)
            and _matches(webhook.status, status)
            and any(webhook.wants(kind) or webhook.wants(event.kind) for kind in kinds)
            for uid, by_status in event.counts.items()
            for status, kinds in by_status.items()
        )
    return (
        webhook.wants(event.kind)
        and _matches_type(webhook, event.uid)
        and _matches(webhook.locales, event.locale)
        and _matches(webhook.status, event.status)
    )


def _matches_type(webhook: Webhook, uid: str) -> bool:
    # Any content type can use a component.
    return not webhook.types or "::" not in uid or permission_subject(uid) in webhook.types


def _matches(selected: tuple[str, ...], value: str) -> bool:
    return not selected or not value or value in selected
