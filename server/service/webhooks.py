"""Status, deliveries, tests, replays and secrets of webhooks (docs/webhooks.md)."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from server.auth.draft_visibility import has_draft_permission
from server.auth.permissions import WEBHOOK, Actor, may_find, require_of_site
from server.config.model import Settings
from server.config.webhooks import Webhook, resolve_environment, shown_url, without_variable
from server.database.engine import Connection
from server.errors import ConflictError, ForbiddenError, NotFoundError, SetupError
from server.events.database import EventDatabase
from server.events.tables import BEHIND, DELIVERED, FAILED, GATHERING, WAITING
from server.events.webhooks.delivery_table import (
    Delivery,
    Exchange,
    WebhookStatus,
    by_id,
    exchange_of,
    page_of,
    webhook_status,
)
from server.events.webhooks.http_client import MASK, Outcome
from server.events.webhooks.queue import enable, replay_one
from server.events.webhooks.sample import send_sample
from server.events.webhooks.secret_files import OVERLAP_S, overlap_until, rotate, secrets_of
from server.schema.model import UPLOAD, Schema
from server.service.read import Caller
from server.site.site import Site

# States of a delivery in the API, and the states in the database that they stand for.
STATES: Mapping[str, Sequence[str]] = {
    "waiting": (WAITING, BEHIND, GATHERING),
    "delivered": (DELIVERED,),
    "failed": (FAILED,),
}
STATE_OF = {stored: state for state, all_stored in STATES.items() for stored in all_stored}


@dataclass(frozen=True, slots=True)
class ListedWebhook:
    """A webhook, without its secrets.

    `status` is None if the caller may not see it. Until `previous_until`, requests are also signed with the
    previous secret. `problem` is the reason why the webhook can't send requests, or "".
    """

    webhook: Webhook
    status: WebhookStatus | None
    disabled_at: float | None
    previous_until: float | None
    problem: str

    @property
    def url(self) -> str:
        return shown_url(self.webhook.url)


def may_read_sent(actor: Actor, schema: Schema) -> bool:
    may_files = may_find(actor, UPLOAD) and actor.may("history", "read")
    return may_files and all(
        may_find(actor, type_.uid) and (not type_.draft_publish or has_draft_permission(actor, type_.uid))
        for type_ in schema.content_types
    )


class Webhooks:
    """The webhooks of a site, as one caller may see and use them. `database` contains the event log."""

    def __init__(self, site: Site, database: EventDatabase, caller: Caller) -> None:
        self._site, self._root, self._database, self._caller = site, site.root, database, caller
        self._settings, self._schema = caller.state.settings, caller.state.schema
        self._sees_sent = may_read_sent(caller.actor, self._schema)

    def find_all(self) -> list[ListedWebhook]:
        self._require("read")
        return [self._listed(webhook) for webhook in self._settings.webhooks]

    def get(self, name: str) -> ListedWebhook:
        return self.listed(self._find(name))

    def listed(self, webhook: Webhook) -> ListedWebhook:
        self._require("read")
        return self._listed(webhook)

    def deliveries(
        self, name: str, limit: int, before: int | None, state: str
    ) -> tuple[list[Delivery], bool]:
        """Return at most `limit` deliveries, newest first, and whether there are more.

        If `before` is given, only deliveries with lower numbers are returned. Raises ForbiddenError,
        NotFoundError or StorageError.
        """
        self._require_sent()
        webhook, states = self._find(name), STATES.get(state, ())
        found = self._database.query(lambda c: page_of(c, webhook.name, limit + 1, before, states))
        self._caller.budget.spend(len(found))
        return found[:limit], len(found) > limit

    def delivery(self, name: str, webhook_id: str) -> tuple[Delivery, Exchange | None]:
        self._require_sent()
        webhook = self._find(name)
        found = self._database.query(lambda c: _with_exchange(c, webhook, webhook_id))
        if found is None:
            raise NotFoundError("Delivery not found")
        return found

    def test(self, name: str) -> Outcome:
        """Send a sample event, and wait for the response.

        Raises ConflictError if the webhook can't send requests. Also raises ForbiddenError or NotFoundError.
        """
        self._require("read", "send")
        webhook = self._find(name)
        if problem := _environment_problem(webhook):
            raise ConflictError(problem)
        try:
            with self._locked(name):
                webhook = resolve_environment(webhook, os.environ)
                secrets = secrets_of(self._root, webhook)
        except SetupError as error:
            raise ConflictError(str(error)) from error
        return send_sample(self._settings, webhook, secrets)

    def replay(self, name: str, webhook_id: str) -> tuple[Delivery, Exchange | None]:
        self._require("send")
        self._require_sent()
        self._require_active(self._find(name))
        with self._database.writing() as transaction:
            if replay_one(transaction.connection, name, webhook_id, time.time()) is None:
                raise NotFoundError("Delivery not found")
        return self.delivery(name, webhook_id)

    def enable(self, name: str) -> ListedWebhook:
        self._require("read", "send")
        webhook, last = self._find(name), self._database.bounds().last
        with self._database.writing() as transaction:
            enable(transaction.connection, webhook.name, last)
        return self._listed(webhook)

    def rotate(self, name: str) -> tuple[str, ListedWebhook]:
        """Generate a new secret, and return it with the webhook.

        For OVERLAP_S seconds, requests are also signed with the old secret. Raises ConflictError if the
        secret can't be rotated now. Also raises ForbiddenError, NotFoundError or StorageError.
        """
        self._require("read", "rotate")
        webhook = self._find(name)
        if webhook.secrets:
            raise ConflictError(
                "The secret of this webhook is in site.yaml; change it there: secret: [NEW, OLD]"
            )
        try:
            with self._locked(name):
                return self._rotated(webhook)
        except SetupError as error:
            raise ConflictError(str(error)) from error

    def _rotated(self, webhook: Webhook) -> tuple[str, ListedWebhook]:
        # Another rotation would end the overlap: receivers with the first secret would fail.
        if overlap_until(self._root, webhook, time.time()) is not None:
            hours = f"{OVERLAP_S / 3600:.0f} hours"
            raise ConflictError(f"The secret was rotated less than {hours} ago; wait until the old one ends")
        return rotate(self._root, webhook), self._listed(webhook)

    def _require(self, *actions: str) -> None:
        for action in actions:
            require_of_site(self._caller.actor, WEBHOOK, action, self._schema)

    def _require_sent(self) -> None:
        self._require("read")
        if not self._sees_sent:
            raise ForbiddenError("Deliveries contain all content; your role or token can't read all of it")

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        # Without the lock, the webhook could be deleted before its secret is created.
        with self._site.locked():
            _find(self._site.state.settings, name)
            yield

    def _find(self, name: str) -> Webhook:
        return _find(self._settings, name)

    def _require_active(self, webhook: Webhook) -> None:
        if not webhook.enabled:
            raise ConflictError('The webhook is disabled; set "enabled: true" in site.yaml')
        if self._database.query(lambda c: webhook_status(c, webhook.name)).disabled is not None:
            raise ConflictError("The webhook was disabled by a 410 response; enable it first")

    def _listed(self, webhook: Webhook) -> ListedWebhook:
        status, problem = self._database.query(lambda c: webhook_status(c, webhook.name)), ""
        until = None
        try:
            until = overlap_until(self._root, webhook, time.time())
        except SetupError as error:
            problem = str(error)
        if webhook.enabled and not problem:
            problem = _environment_problem(webhook)
        shown = status if self._sees_sent else None
        return ListedWebhook(webhook, shown, status.disabled, until, problem)


def _find(settings: Settings, name: str) -> Webhook:
    for webhook in settings.webhooks:
        if webhook.name == name:
            return webhook
    raise NotFoundError("Webhook not found")


def _environment_problem(webhook: Webhook) -> str:
    try:
        resolve_environment(webhook, os.environ)
    except SetupError as error:
        return str(without_variable(error))
    return ""


def _with_exchange(
    connection: Connection, webhook: Webhook, webhook_id: str
) -> tuple[Delivery, Exchange | None] | None:
    found = by_id(connection, webhook.name, webhook_id)
    return (found, exchange_of(connection, found)) if found else None


def request_headers(delivery: Delivery, webhook: Webhook) -> dict[str, str]:
    """Return the headers of a delivery's request. Secrets are masked."""
    return {
        "Content-Type": "application/json",
        "X-Strapi-Event": delivery.event.kind,
        "webhook-id": delivery.id,
        "webhook-timestamp": str(int(delivery.attempted_at or 0)),
        "webhook-signature": f"v1,{MASK}",
        **dict.fromkeys(webhook.headers, MASK),
    }
