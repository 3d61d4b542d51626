"""Which events a webhook wants: by event, content type, locale and status (docs/webhooks.md)."""

from server.auth.permissions import subject_of
from server.config.webhooks import Webhook
from server.events.model import Event

SITE_UPDATE = "site.update"


def concerns(webhook: Webhook, event: Event) -> bool:
    """Whether a webhook is told of an event.

    Of one that stands for many, it is told where it would be told of one of those: nothing is missed because
    much has changed at once. Of what is private alone, nobody is told.
    """
    if event.hidden:
        return False
    if event.counts is not None:
        return any(
            _of_type(webhook, uid)
            and _of(webhook.status, status)
            and any(webhook.wants(kind) or webhook.wants(event.kind) for kind in kinds)
            for uid, by_status in event.counts.items()
            for status, kinds in by_status.items()
        )
    return (
        webhook.wants(event.kind)
        and _of_type(webhook, event.uid)
        and _of(webhook.locales, event.locale)
        and _of(webhook.status, event.status)
    )


def _of_type(webhook: Webhook, uid: str) -> bool:
    """Of a component, which many types may have, every webhook is told that takes changes of the schema."""
    return not webhook.types or "::" not in uid or subject_of(uid) in webhook.types


def _of(wanted: tuple[str, ...], value: str) -> bool:
    return not wanted or not value or value in wanted
