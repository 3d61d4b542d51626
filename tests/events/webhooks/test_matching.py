"""Tests of the selection of events for webhooks."""

from dataclasses import replace

import pytest

from server.config.webhooks import EVENTS, Webhook
from server.events.model import KINDS, Event
from server.events.webhooks.matching import receives
from server.schema.model import UPLOAD

ARTICLE = "api::article.article"
PUBLISH = Event("entry.publish", ARTICLE, "a", "en", "published")
DRAFT = Event("entry.update", ARTICLE, "a", "fr", "draft")
MEDIA = Event("media.create", UPLOAD, "a.png")
SCHEMA = Event("schema.update", ARTICLE)
COMPONENT = Event("schema.update", "shared.seo")
MANY = Event("site.update", "", counts={ARTICLE: {"published": {"entry.publish": 3, "entry.update": 3}}})
ALL = [PUBLISH, DRAFT, MEDIA, SCHEMA, COMPONENT, MANY]


def test_the_settings_know_the_events_that_there_are() -> None:
    assert set(EVENTS) == KINDS.keys()


def test_of_what_is_private_alone_nobody_is_told() -> None:
    assert not receives(Webhook("a", ""), replace(PUBLISH, hidden=True))
    assert not receives(Webhook("a", ""), replace(MANY, hidden=True))


@pytest.mark.parametrize(
    ("webhook", "told"),
    [
        (Webhook("a", ""), ALL),
        (Webhook("a", "", events=("entry.*",)), [PUBLISH, DRAFT, MANY]),
        (Webhook("a", "", events=("entry.publish",)), [PUBLISH, MANY]),
        (Webhook("a", "", events=("entry.delete",)), []),
        (Webhook("a", "", events=("site.update",)), [MANY]),
        (Webhook("a", "", events=("media.*", "schema.update")), [MEDIA, SCHEMA, COMPONENT]),
        (Webhook("a", "", types=("article",)), [PUBLISH, DRAFT, SCHEMA, COMPONENT, MANY]),
        (Webhook("a", "", types=("upload",)), [MEDIA, COMPONENT]),
        (Webhook("a", "", types=("author",), events=("entry.*", "site.update")), []),
        (Webhook("a", "", locales=("fr",)), [DRAFT, MEDIA, SCHEMA, COMPONENT, MANY]),
        (Webhook("a", "", status=("draft",)), [DRAFT, MEDIA, SCHEMA, COMPONENT]),
        (Webhook("a", "", status=("published",)), [PUBLISH, MEDIA, SCHEMA, COMPONENT, MANY]),
    ],
)
def test_a_webhook_is_told_of_what_it_asks_for(webhook: Webhook, told: list[Event]) -> None:
    assert [event for event in ALL if receives(webhook, event)] == told
