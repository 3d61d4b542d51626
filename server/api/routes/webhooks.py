"""Handlers for `/webhooks`."""

from typing import Any

from flask import Response, request

from server.api.operations.webhooks import DEFAULT_LIMIT, MAX_LIMIT
from server.api.request import (
    add_commit_header,
    answer,
    budgeted_json_response,
    caller_of,
    parameters,
    read_body,
)
from server.api.response import NO_STORE, PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    answer_files,
    commit_message,
    data_of,
    is_dry_run,
    required_if_match,
)
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.events.database import EventDatabase
from server.events.reading import read_number
from server.events.webhooks.delivery_table import Delivery, Exchange
from server.events.webhooks.http_client import Outcome
from server.service.cache_tags import tag_of
from server.service.read import Caller
from server.service.render import dumps
from server.service.webhook_changes import (
    WebhookChange,
    make_change,
    may_change_webhooks,
    parse_change,
    parse_creation,
    parse_deletion,
    require_change,
    try_change,
    version_for,
)
from server.service.webhooks import STATE_OF, STATES, ListedWebhook, Webhooks, request_headers
from server.service.write import Writes
from server.site.site import Site


def bind(handles: Handlers, site: Site, writes: Writes, database: EventDatabase) -> None:
    """Register the handlers."""

    def webhooks() -> Webhooks:
        return Webhooks(site, database, caller_of(request))

    @handles("listWebhooks")
    def list_webhooks() -> Response:
        rows, caller = [_webhook_json(webhook) for webhook in webhooks().find_all()], caller_of(request)
        response = budgeted_json_response(request, {"data": rows}, PRIVATE_REVALIDATE)
        may_write = may_change_webhooks(caller)
        return _tagged(response, version_for(writes, caller.state.settings) if may_write else "")

    @handles("createWebhook")
    def create_webhook() -> Response:
        caller, if_match = caller_of(request), request.headers.get("If-Match") or "*"
        require_change(caller, sends=True)
        return apply(caller, parse_creation(caller, if_match, data_of(read_body(request))))

    @handles("updateWebhook")
    def update_webhook(name: str) -> Response:
        caller = caller_of(request)
        require_change(caller, sends=True)
        return apply(caller, parse_change(caller, required_if_match(), name, data_of(read_body(request))))

    @handles("deleteWebhook")
    def delete_webhook(name: str) -> Response:
        caller = caller_of(request)
        require_change(caller, sends=False)
        return apply(caller, parse_deletion(caller, required_if_match(), name))

    def apply(caller: Caller, wanted: WebhookChange) -> Response:
        if is_dry_run():
            return answer_files(try_change(writes, caller, wanted))
        made = make_change(writes, database, caller, wanted, commit_message(request, wanted.message))
        if made.webhook is None:
            return add_commit_header(Response(status=204), made.commit)
        data = _webhook_json(Webhooks(site, database, made.caller).listed(made.webhook))
        meta = {"meta": {"secret": made.secret}} if made.secret else {}
        response = answer(dumps({"data": data, **meta}), 201 if made.secret else 200, NO_STORE)
        return add_commit_header(_tagged(response, made.version), made.commit)

    @handles("listDeliveries")
    def list_deliveries(name: str) -> Response:
        params = parameters(request)
        limit = read_number(params, "limit", DEFAULT_LIMIT, MAX_LIMIT)
        before = read_number(params, "before", 0) if params.get("before") else None
        found, more = webhooks().deliveries(name, limit, before, _state(params))
        body = {"data": [_json(one) for one in found], "meta": {"more": more}}
        return budgeted_json_response(request, body, PRIVATE_REVALIDATE)

    @handles("getDelivery")
    def get_delivery(name: str, delivery: str) -> Response:
        used = webhooks()
        return show(used, name, *used.delivery(name, delivery))

    @handles("testWebhook")
    def send_test(name: str) -> Response:
        return answer(dumps({"data": _outcome_json(webhooks().test(name))}), cache_control=NO_STORE)

    @handles("replayDelivery")
    def replay(name: str, delivery: str) -> Response:
        used = webhooks()
        return show(used, name, *used.replay(name, delivery))

    @handles("enableWebhook")
    def enable(name: str) -> Response:
        return answer(dumps({"data": _webhook_json(webhooks().enable(name))}), cache_control=NO_STORE)

    @handles("rotateSecret")
    def rotate(name: str) -> Response:
        secret, webhook = webhooks().rotate(name)
        body = {"data": _webhook_json(webhook), "meta": {"secret": secret}}
        return answer(dumps(body), 201, NO_STORE)

    def show(used: Webhooks, name: str, delivery: Delivery, exchange: Exchange | None) -> Response:
        body = _json(delivery)
        body["request"] = body["response"] = None
        if exchange:
            headers = request_headers(delivery, used.get(name).webhook)
            text = exchange.body.decode("utf-8", "replace")
            body["request"] = {"headers": headers, "body": text, "size": exchange.size}
            body["response"] = {"body": exchange.response, "seconds": round(exchange.seconds, 3)}
        return budgeted_json_response(request, {"data": body}, PRIVATE_REVALIDATE)


def _tagged(response: Response, version: str) -> Response:
    # Callers who may change webhooks send the version of site.yaml in `If-Match`.
    if version:
        response.headers["ETag"] = tag_of(version, response.get_data())
    return response


def _state(params: dict[str, object]) -> str:
    state = params.get("state", "")
    if state and state not in STATES:
        raise ValidationError(f'"state" must be one of {", ".join(STATES)}')
    return str(state)


def _webhook_json(listed: ListedWebhook) -> dict[str, Any]:
    webhook, status = listed.webhook, listed.status
    return {
        "name": webhook.name,
        "url": listed.url,
        "events": webhook.events,
        "types": webhook.types,
        "locales": webhook.locales,
        "status": webhook.status,
        "debounce": webhook.debounce.total_seconds(),
        "headers": list(webhook.headers),
        "enabled": webhook.enabled,
        "disabledAt": _time(listed.disabled_at),
        "problem": listed.problem or None,
        "waiting": status.waiting if status else None,
        "last": _json(status.last_attempted) if status and status.last_attempted else None,
        "secretIn": "settings" if webhook.secrets else "generated",
        "previousSecretUntil": _time(listed.previous_until),
    }


def _json(delivery: Delivery) -> dict[str, Any]:
    state = STATE_OF[delivery.state]
    return {
        "id": delivery.id,
        "number": delivery.number,
        "state": state,
        "createdAt": from_seconds(delivery.created_at),
        "attempts": delivery.attempts,
        "attemptedAt": _time(delivery.attempted_at),
        "nextAttemptAt": from_seconds(delivery.due) if state == "waiting" else None,
        "status": delivery.status or None,
        "error": (delivery.error or None) if state != "delivered" else None,
        "event": delivery.event.shown(),
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "succeeded": outcome.succeeded,
        "status": outcome.status or None,
        "error": outcome.error or None,
        "response": outcome.response,
        "seconds": round(outcome.seconds, 3),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else from_seconds(seconds)
