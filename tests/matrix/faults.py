"""Faults that the matrix must detect. Each is planted in the product's code while a test runs.

Each fault disables a check or shows hidden data, as a mistake in one function would.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Request

from server.api import response, response_cache, webhooks
from server.api.entrance import Entrance
from server.api.identities import Identities
from server.api.mcp import completion
from server.api.mcp.request import Request as McpRequest
from server.api.openapi import types as openapi_types
from server.api.request import identities_of
from server.api.response import PUBLIC_REVALIDATE
from server.api.routes import auth as auth_routes
from server.api.routes.login import check_password
from server.auth import query_permissions
from server.auth.permissions import Actor
from server.auth.user import User
from server.documents.document import DRAFT, Document
from server.errors import ValidationError
from server.events import reading
from server.events.model import Event
from server.history import resolve_commit, uncommitted
from server.history.former_ids import FormerIds
from server.history.viewer import Viewer
from server.index.find import Listing, find
from server.index.snapshot import View
from server.query.ast import Query
from server.schema.model import Attribute, Schema, Type
from server.search.find import Results, Scope, total
from server.service import (
    change_visibility,
    commit_visibility,
    describe_access,
    dry_run,
    overview,
    read,
    search,
)
from server.service.cache_tags import tag_of_bytes
from server.service.read import Reader
from server.service.render import Renderer
from server.site.site import State
from server.storage.git.refs import find_commit
from server.write import prepare
from server.write.validate import Validator

Plant = Callable[[pytest.MonkeyPatch], None]
log = logging.getLogger("bifolio")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and the operations whose responses reveal it. If there are none, webhooks reveal it."""

    name: str
    operations: tuple[str, ...]
    plant: Plant


def _always(*_: object, **__: object) -> bool:
    return True


def _never_refuse(*_: object, **__: object) -> None:
    return None


def _show_private_values(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Renderer._start

    def start(self: Renderer, type_: Type, fields: Any, names: Any, *, wrapped: bool) -> Any:
        names = (*names, *(name for name in type_.columns if type_.columns[name].private))
        return make(self, type_, tuple(names), names, wrapped=wrapped)

    monkeypatch.setattr(Renderer, "_start", start)


def _compare_private_values(monkeypatch: pytest.MonkeyPatch) -> None:
    allows = property(lambda attribute: attribute.type != "dynamiczone")
    monkeypatch.setattr(Attribute, "queryable", allows)


def _populate_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_permissions, "_narrow_node", lambda node, actor: node)


def _compare_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_permissions, "_check_path", _never_refuse)


def _show_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_permissions, "may_read_drafts", lambda actor, type_: type_.draft_publish)


def _compare_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_permissions, "DRAFT_REVEALING_FILTERS", ())


def _search_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "may_read_drafts", lambda actor, type_: type_.draft_publish)


def _count_drafts(view: View, type_: Type) -> int:
    return sum(uid == type_.uid and status == DRAFT for uid, _, _, status in view.snapshot.claims)


def _count_drafts_in_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(view: View, query: Query) -> Listing:
        found = find(view, query)
        return found._replace(total=found.total + _count_drafts(view, query.type))

    monkeypatch.setattr(read, "find", counted)


def _count_hidden_documents_in_overview(monkeypatch: pytest.MonkeyPatch) -> None:
    count = overview._body

    def counted(listings: Mapping[str, Listing], limit: int, state: State) -> dict[str, Any]:
        body = count(listings, limit, state)
        return {**body, "meta": {**body["meta"], "documents": len(state.snapshot.claims)}}

    monkeypatch.setattr(overview, "_body", counted)


def _count_drafts_in_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    show = search._body

    def counted(found: Results, question: Any, finders: Any, scope: Scope, state: State, *more: Any) -> Any:
        body = show(found, question, finders, scope, state, *more)
        drafts = sum(status == DRAFT for *_, status in state.snapshot.claims)
        body["meta"]["pagination"]["total"] = total(found, scope) + drafts
        return body

    monkeypatch.setattr(search, "_body", counted)


def _score_by_all_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    hit = search._hit

    def scored(document: Document, score: float, state: State, finder: Any) -> dict[str, Any]:
        return hit(document, score / len(state.snapshot.claims), state, finder)

    monkeypatch.setattr(search, "_hit", scored)


def _tag_by_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def tag(self: Reader, view: View, document: Document, body: bytes) -> str:
        return tag_of_bytes(repr(document.row).encode())

    monkeypatch.setattr(Reader, "_tag", tag)


def _follow_renames_to_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_visibility, "may_see_file", _always)


def _show_messages_of_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_visibility, "_sees_all", _always)


def _show_private_values_in_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Viewer, "sees", lambda self, attribute: not attribute.derived)


def _show_uncommitted_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncommitted, "_sees", _always)


def _read_past_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(self: Entrance, name: str, actor: Actor, schema: Schema) -> str:
        return self.past.resolve(name)

    monkeypatch.setattr(Entrance, "_resolve", resolve)


def _confirm_former_ids_of_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    find = FormerIds.new_id

    def new_id(self: FormerIds, state: State, former: tuple[str, str], *, with_drafts: bool) -> str:
        return find(self, state, former, with_drafts=True)

    monkeypatch.setattr(FormerIds, "new_id", new_id)


def _read_the_stash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve_commit, "find_public_commit", find_commit)


def _keep_past_answers_in_shared_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "_cache_control", lambda answer, environ: PUBLIC_REVALIDATE)


def _show_answers_that_were_kept_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "access_digest", lambda actor: b"")


def _show_events_of_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = reading.findable_subjects

    def all_of(actor: Actor, schema: Schema) -> Any:
        return subjects(Actor(actor.name, everything=True), schema)

    monkeypatch.setattr(reading, "_may_see", _always)
    monkeypatch.setattr("server.api.routes.events.findable_subjects", all_of)


def _send_private_values(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = webhooks._entry

    def with_values(state: State, event: Event, drafts_too: bool) -> Any:
        type_ = state.schema.types.get(event.uid)
        found = type_ and state.snapshot.get(type_, event.document_id, event.locale, event.status)
        return {"values": repr(found.row)} if found else entry(state, event, drafts_too)

    monkeypatch.setattr(webhooks, "_entry", with_values)


def _log_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    identify = Identities.identify

    def logged(self: Identities, authorization: str, *settings: Any, **options: Any) -> Actor:
        log.info("a request by %s", authorization)
        return identify(self, authorization, *settings, **options)

    monkeypatch.setattr(Identities, "identify", logged)


def _name_addresses_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def proved(request: Request, body: Any) -> User:
        try:
            return check_password(request, body)
        except ValidationError as error:
            user = identities_of(request).users.find(str(body.get("identifier")))
            raise ValidationError(f"{error.message}: {user and user.email}") from error

    monkeypatch.setattr(auth_routes, "check_password", proved)


def _name_tokens_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Entrance, name: str, actor: Actor, schema: Schema) -> str:
        names = [token.name for token in self.identities.directory().accounts.tokens()]
        raise ValidationError(f"Only these may read the past: {names}")

    monkeypatch.setattr(Entrance, "_resolve", refused)


def _describe_relations_to_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_access, "_is_seen", _always)


def _describe_hidden_types_in_openapi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi_types, "may_find", _always)


def _show_private_attributes_of_populated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show private values only if they are in components."""
    make = Renderer._start

    def start(self: Renderer, type_: Type, fields: Any, names: Any, *, wrapped: bool) -> Any:
        if type_.kind == "component":
            names = fields = (*names, *(name for name in type_.columns if type_.columns[name].private))
        return make(self, type_, fields, names, wrapped=wrapped)

    monkeypatch.setattr(Renderer, "_start", start)


def _tell_targets_by_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Validator, "_reads_targets", _always)


def _tell_components_by_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_reads_version", _always)
    monkeypatch.setattr(Validator, "_inside", lambda self, attribute: self)


def _merge_private_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_reads_merged", _always)


def _show_files_in_dry_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "may_read_source_of", _always)


def _complete_hidden_types(monkeypatch: pytest.MonkeyPatch) -> None:
    def types(request: McpRequest, typed: str, chosen: Any) -> tuple[list[str], int]:
        names = [t.singular for t in request.rest._app.site.state.schema.content_types]
        return names, len(names)

    monkeypatch.setattr(completion, "_SOURCES", {**completion._SOURCES, "type": types})


_READS = ("findDocument", "findOneDocument", "findOneSingle")
_HISTORY = ("findHistory", "findTypeHistory", "findDocumentHistory", "findVersions")
FAULTS = (
    Fault("private values are shown", _READS, _show_private_values),
    Fault("private values of components are shown", _READS, _show_private_attributes_of_populated),
    Fault("filters compare private values", _READS, _compare_private_values),
    Fault("hidden types are populated", _READS, _populate_hidden_types),
    Fault("filters and sorting follow relations to hidden types", _READS, _compare_hidden_types),
    Fault("drafts are shown", _READS, _show_drafts),
    Fault("publicationFilter compares drafts", _READS, _compare_drafts),
    Fault("drafts are found by search", ("search",), _search_drafts),
    Fault("a list counts drafts", _READS, _count_drafts_in_lists),
    Fault("the overview counts hidden documents", ("overview",), _count_hidden_documents_in_overview),
    Fault("a search counts drafts", ("search",), _count_drafts_in_searches),
    Fault("scores depend on hidden documents", ("search",), _score_by_all_documents),
    Fault("entity tags stand for private values", ("findOneDocument",), _tag_by_all_values),
    Fault("history follows renames to hidden types", _HISTORY, _follow_renames_to_hidden_types),
    Fault("messages of hidden changes are shown", _HISTORY, _show_messages_of_commits),
    Fault("a diff shows private values and hashes", _HISTORY, _show_private_values_in_history),
    Fault(
        "uncommitted files of hidden types are shown",
        ("findUncommitted", "diffUncommitted"),
        _show_uncommitted_files,
    ),
    Fault("anybody reads past commits", ("findOneDocument",), _read_past_commits),
    Fault("former ids of drafts are confirmed", ("findOneDocument",), _confirm_former_ids_of_drafts),
    Fault("the stash is read", ("findOneDocument",), _read_the_stash),
    Fault("shared caches keep past answers", ("findOneDocument",), _keep_past_answers_in_shared_caches),
    Fault("answers are shown that were kept for others", _READS, _show_answers_that_were_kept_for_others),
    Fault("events of hidden types are shown", ("findEvents",), _show_events_of_hidden_types),
    Fault("webhooks send private values", (), _send_private_values),
    Fault("tokens are logged", _READS, _log_tokens),
    Fault("an error names the address of a user", ("login",), _name_addresses_in_errors),
    Fault("an error names tokens", ("findOneDocument",), _name_tokens_in_errors),
    Fault("/access describes relations to hidden types", ("access",), _describe_relations_to_hidden_types),
    Fault("positions tell targets of hidden relations", ("updateDocument",), _tell_targets_by_positions),
    Fault("ids tell hidden components", ("updateDocument",), _tell_components_by_ids),
    Fault("private values are merged", ("updateDocument",), _merge_private_values),
    Fault("dry runs show all files", ("updateDocument", "batch"), _show_files_in_dry_runs),
    Fault("OpenAPI describes hidden types", ("openapi",), _describe_hidden_types_in_openapi),
    Fault("agents complete hidden types", ("mcp",), _complete_hidden_types),
)
