"""Reading documents for requests and exports (spec.md 4.1, 4.2)."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from server.auth.permissions import Actor, require
from server.auth.query_permissions import narrow_query
from server.config.model import ResponseFormat, Settings
from server.documents.document import Document
from server.errors import KeyNameError, NotFoundError
from server.index.budget import UNLIMITED, Budget
from server.index.find import find, find_numbered, find_one, find_single
from server.index.snapshot import View
from server.index.user_index import NO_USERS, UserIndex, UserTables
from server.query.ast import Query
from server.query.mentioned_types import mentions
from server.query.parse import read_query, with_default_populate
from server.schema.model import ACCOUNT_UIDS, Type, header_value
from server.service.attribute_suggestions import suggest_attribute
from server.service.cache_tags import tag_of, tag_of_bytes, tags_of_document, tags_of_list
from server.service.render import render_list, render_one
from server.site.site import State
from server.write.precondition import version_of

Params = Mapping[str, Any]


class Rendering(NamedTuple):
    """The body of a response, and its entity tag.

    `users` is the version of the user index that was used, or None if the response does not depend on users.
    `cache_tags` is "" if the response has no tags.
    """

    body: bytes
    etag: str
    users: int | None = None
    cache_tags: str = ""
    is_markdown: bool = False


@dataclass(frozen=True, slots=True)
class BranchContext:
    """A branch that is not served, and the settings of the served branch."""

    name: str
    served_settings: Settings


@dataclass(frozen=True, slots=True)
class Caller:
    """The actor, the state and the budget of a request.

    `branch` is None for the served branch. `commit` is the commit at which the state is read, or "" for the
    current state.
    """

    state: State
    actor: Actor
    response_format: ResponseFormat = ResponseFormat.V5
    users: Callable[[], UserIndex] | None = None
    budget: Budget = field(default_factory=Budget)
    branch: BranchContext | None = None
    commit: str = ""

    def reader(self, type_: Type) -> "Reader":
        return Reader(self.state, type_, self.actor, self.response_format, self.users, self.budget)


class Reader(NamedTuple):
    """Reader for documents of one content type, with the permissions of an actor.

    If `users` is None, relations to users are empty.
    """

    state: State
    type: Type
    actor: Actor
    response_format: ResponseFormat = ResponseFormat.V5
    users: Callable[[], UserIndex] | None = None
    budget: Budget = UNLIMITED

    def get(self, params: Params, document_id: str | None = None) -> Rendering:
        """Render a document or, if `document_id` is None, a single type's document or a page of documents.

        Raises ForbiddenError, NotFoundError or ValidationError.
        """
        params = with_default_populate(params, self.type, self.state.settings)
        if document_id is not None:
            return self.document(params, document_id)
        if self.type.kind == "singleType":
            return self.single(params)
        return self.collection(params)

    def collection(self, params: Params) -> Rendering:
        require(self.actor, self.type, "find")
        query = self.query(params, many=True)
        view = self.view(query)
        body = render_list(
            view,
            find(view, query),
            query,
            response_format=self.response_format,
            cache_key=self._cache_key(query, params),
        )
        tags = header_value(tags_of_list(query, self.state.schema)) if self._tagged else ""
        return Rendering(body, tag_of_bytes(body), view.snapshot.users, tags)

    def single(self, params: Params) -> Rendering:
        require(self.actor, self.type, "find")
        query = self.query(params)
        view = self.view(query)
        return self.show(view, query, self.find(view, query), params)

    def document(self, params: Params, document_id: str) -> Rendering:
        require(self.actor, self.type, "findOne")
        query = self.query(params)
        view = self.view(query)
        return self.show(view, query, self.find(view, query, document_id), params)

    def find(self, view: View, query: Query, document_id: str | None = None) -> Document | None:
        """Find a document without checking permissions.

        If `document_id` is None, find the document of a single type.
        """
        if document_id is None:
            return find_single(view, query)
        document = find_one(view, query, document_id)
        if (
            document is None
            and self.state.settings.api.format is ResponseFormat.V4
            and document_id.isdecimal()
        ):
            document = find_numbered(view, query, int(document_id))
        return document

    def show(self, view: View, query: Query, document: Document | None, params: Params) -> Rendering:
        if document is None:
            raise NotFoundError()
        cache_key = self._cache_key(query, params)
        body = render_one(view, document, query, response_format=self.response_format, cache_key=cache_key)
        return self.rendering(view, query, document, body)

    def rendering(self, view: View, query: Query, document: Document, body: bytes) -> Rendering:
        tags = header_value(tags_of_document(view, document, query.selection)) if self._tagged else ""
        return Rendering(body, self._tag(view, document, body), view.snapshot.users, tags)

    @property
    def _tagged(self) -> bool:
        return self.state.settings.api.cache_tags

    def _tag(self, view: View, document: Document, body: bytes) -> str:
        # Callers who are not allowed to change the document get a tag that depends only on the response. If
        # the tag of an unchanged response changed, it would reveal that a hidden attribute has changed.
        subject = self.type.singular
        if not any(self.actor.may(subject, action) for action in ("update", "updateDraft", "delete")):
            return tag_of_bytes(body)
        version = view.snapshot.fragments.cached("version", _version)(document)
        return tag_of(version.decode(), body)

    def _cache_key(self, query: Query, params: Params) -> Hashable:
        if not query.selection.populate:
            return None
        selection = repr((params.get("fields"), params.get("populate"))).encode()
        actor = self.actor
        visibility = (actor.everything, actor.reading, actor.permissions, query.drafts, query.publication)
        return (query.type.uid, blake2b(selection, digest_size=16).digest(), visibility, self.response_format)

    def query(self, params: Params, *, many: bool = False, own_draft: bool = False) -> Query:
        try:
            query = read_query(self.state.schema, self.state.settings, self.type, params, many=many)
        except KeyNameError as error:
            suggest_attribute(error, self.actor, self.state.schema)
            raise
        return narrow_query(query, self.actor, self.state.schema, own_draft=own_draft)

    def view(self, query: Query) -> View:
        snapshot, settings = self.state.snapshot, self.state.settings
        may_need_users = self.state.schema.has_user_relations or query.type.uid in ACCOUNT_UIDS
        if self.users is not None and may_need_users and mentions(query, ACCOUNT_UIDS):
            snapshot = self.users().join(snapshot, settings)
        return View(snapshot, settings, query.drafts, query.publication, self.budget)

    def user_tables(self) -> UserTables:
        schema, settings = self.state.schema, self.state.settings
        if self.users is None or not schema.has_user_relations:
            return NO_USERS
        return self.users().tables(schema, settings)


def _version(document: Document) -> bytes:
    return version_of(document).encode()
