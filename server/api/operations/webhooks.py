"""Operations on webhooks (docs/webhooks.md)."""

from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NUMBER,
    READ,
    READ_ONE,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    WRITE,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    or_null,
    parameter_refs,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.auth.permissions import WEBHOOK
from server.config.webhooks import NAME_PATTERN, STATUSES, WEBHOOK_KEYS
from server.service.webhooks import STATES

OF_WEBHOOKS = Tag("Webhooks", "Webhooks in `site.yaml`, and what was sent to them.")
DEFAULT_LIMIT, MAX_LIMIT = 50, 100  # of deliveries in a response

_OBJECT: JsonSchema = {"type": "object"}
_DELIVERY_FIELDS: dict[str, JsonSchema] = {
    "id": {**TEXT, "description": "The `webhook-id` of the delivery's requests."},
    "number": {**NUMBER, "description": "Pass it as `before` to list older deliveries."},
    "state": {"enum": list(STATES)},
    "createdAt": TIMESTAMP,
    "attempts": COUNT,
    "attemptedAt": or_null(TIMESTAMP),
    "nextAttemptAt": {**or_null(TIMESTAMP), "description": "When it is sent next, while it waits."},
    "status": {"type": ["integer", "null"], "description": "The status of the last response; null for none."},
    "error": {**TEXT_OR_NULL, "description": "Why the last attempt failed."},
    "event": {**_OBJECT, "description": "As in `GET /events`."},
}
_DELIVERY = object_of(_DELIVERY_FIELDS)
_REQUEST = object_of(
    {
        "headers": {**_OBJECT, "additionalProperties": TEXT},
        "body": {**TEXT, "description": "The beginning of the body."},
        "size": {**COUNT, "description": "The size of the whole body in bytes."},
    }
)
_RESPONSE = object_of(
    {
        "body": {**TEXT, "description": "The beginning of the body, without the webhook's secrets."},
        "seconds": {"type": "number"},
    }
)
_WHOLE = object_of({**_DELIVERY_FIELDS, "request": or_null(_REQUEST), "response": or_null(_RESPONSE)})
_WEBHOOK = object_of(
    {
        "name": TEXT,
        "url": {**TEXT, "description": "The URL up to its host, or `env:NAME`."},
        **dict.fromkeys(("events", "types", "locales", "status"), list_of(TEXT)),
        "debounce": {"type": "number", "description": "In seconds."},
        "headers": {**list_of(TEXT), "description": "The names of additional headers."},
        "enabled": FLAG,
        "disabledAt": {**or_null(TIMESTAMP), "description": "When a 410 response has disabled the webhook."},
        "problem": {**TEXT_OR_NULL, "description": "Why the webhook can't send requests."},
        "waiting": {
            **or_null(COUNT),
            "description": "Number of deliveries that wait; null if the caller can't read all content.",
        },
        "last": {
            **or_null(_DELIVERY),
            "description": "The delivery that was attempted last; null if the caller can't read all content.",
        },
        "secretIn": {"enum": ["generated", "settings"]},
        "previousSecretUntil": {
            **or_null(TIMESTAMP),
            "description": "Until when requests are also signed with the previous secret.",
        },
    }
)
_ONE = object_of({"data": _WEBHOOK})
_MORE = object_of({"more": {**FLAG, "description": "Whether there are older deliveries."}})
_LIST = object_of({"data": list_of(_DELIVERY), "meta": _MORE})
_DELIVERED = object_of({"data": _WHOLE})
_TESTED = object_of(
    {
        "data": object_of(
            {
                "succeeded": FLAG,
                "status": {"type": ["integer", "null"]},
                "error": TEXT_OR_NULL,
                "response": TEXT,
                "seconds": {"type": "number"},
            }
        )
    }
)
_SECRET = object_of({"data": _WEBHOOK, "meta": object_of({"secret": TEXT})})
_LIST_OR_NULL = or_null(list_of(TEXT))
_VALUES: dict[str, JsonSchema] = {
    "url": {**TEXT, "pattern": "^https?://[^/?#]"},
    **{key: {**_LIST_OR_NULL, "description": WEBHOOK_KEYS[key]} for key in ("events", "types", "locales")},
    "status": or_null(list_of({"enum": list(STATUSES)})),
    "debounce": {"type": ["string", "integer", "null"], "description": "Such as `10s`, or in seconds."},
    "headers": {
        "type": ["object", "null"],
        "additionalProperties": TEXT_OR_NULL,
        "description": "Values by name. Null removes a header; other headers keep their values.",
    },
    "enabled": {"type": ["boolean", "null"]},
}
_OR_DIFF = "; with `dryRun=true`, the change in `site.yaml`."


def _body(*required: str) -> JsonSchema:
    name = {**TEXT, "pattern": f"^{NAME_PATTERN}$"}
    properties = {"name": name, **_VALUES}
    data = {"type": "object", "properties": properties, "minProperties": 1, "additionalProperties": False}
    return object_of({"data": {**data, **({"required": list(required)} if required else {})}})


_NAME = in_path("name", "The name of a webhook.")
_ID = in_path("delivery", "The `id` of a delivery.")
_ERRORS = (*READ_ONE, 503, 507)
_WRITE = (*_ERRORS, 409)
_CHANGE = (*WRITE, 412)

WEBHOOKS = Area(
    "webhooks",
    parts=("webhooks",),
    tag=OF_WEBHOOKS,
    may_query_accounts=True,  # The event log may be in the same database as the accounts.
    operations=(
        Operation(
            "listWebhooks", "GET", "/webhooks", may(WEBHOOK, "read"),
            Docs(
                "List webhooks with their last delivery",
                {200: response_doc("The webhooks, without secrets.", object_of({"data": list_of(_WEBHOOK)}))},
                errors=(*READ, 503, 507),
            ),
        ),
        Operation(
            "createWebhook", "POST", "/webhooks", may(WEBHOOK, "read", "write"),
            Docs(
                "Create a webhook in `site.yaml`",
                {201: response_doc(f"The webhook, and its secret, once{_OR_DIFF}", _SECRET, has_etag=True)},
                parameter_refs("ifMatch"), body_of(_body("name", "url")), _CHANGE,
            ),
            dry_run="writer", commits="maybe",
        ),
        Operation(
            "updateWebhook", "PUT", "/webhooks/{name}", may(WEBHOOK, "read", "write"),
            Docs(
                "Change some values of a webhook in `site.yaml`",
                {200: response_doc(f"The webhook{_OR_DIFF}", _ONE, has_etag=True)},
                [_NAME, *parameter_refs("requiredIfMatch")], body_of(_body()), (*_CHANGE, 404),
            ),
            dry_run="writer", commits="maybe",
        ),
        Operation(
            "deleteWebhook", "DELETE", "/webhooks/{name}", may(WEBHOOK, "read", "write"),
            Docs(
                "Delete a webhook from `site.yaml`",
                {204: response_doc("The webhook was deleted.")},
                [_NAME, *parameter_refs("requiredIfMatch")], errors=(*_CHANGE, 404),
            ),
            dry_run="writer", commits="maybe",
        ),
        Operation(
            "listDeliveries", "GET", "/webhooks/{name}/deliveries", may(WEBHOOK, "read"),
            Docs(
                "List deliveries to a webhook",
                {200: response_doc("The deliveries, newest first.", _LIST)},
                [
                    _NAME,
                    in_query("state", {"enum": list(STATES)}, "Only deliveries in this state."),
                    in_query("before", {**NUMBER, "minimum": 0}, "Only deliveries with a lower number."),
                    in_query(
                        "limit",
                        {**NUMBER, "minimum": 1, "maximum": MAX_LIMIT},
                        f"Maximum number of deliveries; default {DEFAULT_LIMIT}.",
                    ),
                ],
                errors=_ERRORS,
            ),
        ),
        Operation(
            "getDelivery", "GET", "/webhooks/{name}/deliveries/{delivery}", may(WEBHOOK, "read"),
            Docs(
                "Get a delivery with its last request and response",
                {200: response_doc("The delivery.", _DELIVERED)}, [_NAME, _ID], errors=_ERRORS,
            ),
        ),
        Operation(
            "testWebhook", "POST", "/webhooks/{name}/test", may(WEBHOOK, "read", "send"),
            Docs(
                "Send a sample request to a webhook",
                {200: response_doc("The receiver's response, without the webhook's secrets.", _TESTED)},
                [_NAME], errors=(*READ_ONE, 409),
            ),
            waits=True,  # for the receiver's response
        ),
        Operation(
            "replayDelivery", "POST", "/webhooks/{name}/deliveries/{delivery}/replay",
            may(WEBHOOK, "read", "send"),
            Docs(
                "Send a delivery again",
                {200: response_doc("The delivery, which waits to be sent.", _DELIVERED)},
                [_NAME, _ID], errors=_WRITE,
            ),
        ),
        Operation(
            "enableWebhook", "POST", "/webhooks/{name}/enable", may(WEBHOOK, "read", "send"),
            Docs(
                "Enable a webhook that a 410 response has disabled",
                {200: response_doc("The webhook.", _ONE)}, [_NAME], errors=_ERRORS,
            ),
        ),
        Operation(
            "rotateSecret", "POST", "/webhooks/{name}/secret", may(WEBHOOK, "read", "rotate"),
            Docs(
                "Generate a new secret for a webhook",
                {201: response_doc("The new secret, once. The old one stays valid for 24 hours.", _SECRET)},
                [_NAME], errors=_WRITE,
            ),
        ),
    ),
)  # fmt: skip
