"""Drafts that an update publishes because it does not specify the status `draft`."""

from typing import Any

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import content_path
from server.api.mcp.tools.destination import Destination
from server.api.mcp.tools.tool import Call

_UNPUBLISHED = ("draft", "modified")


def documents_whose_draft_is_published(call: Call, destination: Destination) -> list[str]:
    """Return the names of documents, such as `article/fog`, whose drafts the call's updates would publish.

    Drafts that the caller may not read are left out.
    """
    at = {"at": destination.branch} if destination.branch and destination.exists else {}
    found: list[str] = []
    for wanted in call.arguments["operations"]:
        if wanted["action"] == "update" and wanted.get("status") != "draft":
            found += _named_draft(call, wanted, at)
    return list(dict.fromkeys(found))


def _named_draft(call: Call, wanted: Json, at: Json) -> list[str]:
    type_ = call.rest.type_named(wanted["type"])
    document_id = str(wanted.get("documentId", ""))
    if type_ is None or not type_.draft_publish or "{{" in document_id:
        return []
    query: dict[str, Any] = {"fields": "documentId", "status": "draft", "publicationStatus": "true", **at}
    query |= {"locale": wanted["locale"]} if wanted.get("locale") else {}
    reply = call.rest.send("GET", content_path(type_, document_id), query)
    if reply.is_error or reply.body["meta"].get("publicationStatus") not in _UNPUBLISHED:
        return []
    name = "/".join(filter(None, (type_.singular, document_id)))
    return [f"{name} ({wanted['locale']})" if wanted.get("locale") else name]
