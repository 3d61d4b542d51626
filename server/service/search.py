"""Ranked full-text search in the content that the caller may read (docs/search.md)."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor, forbidden, may_find
from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.errors import ForbiddenError, ValidationError
from server.query.parse import read_locale, read_status
from server.query.qs import read_boolean
from server.schema.model import Type, title_of
from server.schema.spelling import suggestion
from server.search.find import Results, Scope, Search, facets, total
from server.search.highlight import Fragment, WordFinder, WordFinders, highlights
from server.search.question import MAX_QUESTION_CHARS, Question, read_question
from server.search.texts import searchable
from server.service.read import Caller
from server.site.site import State

_NUMBER = re.compile(r"[0-9]{1,9}")
MAX_HITS = 10_000  # maximum number of hits on all pages of a search together


def search(engine: Search, caller: Caller, params: Mapping[str, Any]) -> tuple[dict[str, Any], Scope]:
    """Return search results as JSON, and the scope that was searched.

    Raises ForbiddenError, ValidationError, or any error of `Search.find`.
    """
    state = caller.state
    scope = read_scope(params, state, caller.actor)
    question = _question(params, state, scope)
    page, limit = (
        read_number(params, "page", 1),
        read_number(params, "limit", state.settings.api.page_size.default),
    )
    limit = min(limit, state.settings.api.page_size.max)
    if page * limit > MAX_HITS:
        raise _invalid("page", f"only the first {MAX_HITS:,} hits are available")
    results = engine.find(
        state,
        question,
        scope,
        (page - 1) * limit,
        limit,
        caller.budget,
        use_index=not caller.commit,
    )
    index = _index_status(results, may_read_all=_reads_everything(state, caller.actor))
    finders = WordFinders(question, caller.budget)
    return _body(results, question, finders, scope, state, page, limit, index), scope


# --- parameters -----------------------------------------------------------------------------------


def _invalid(param: str, message: str) -> ValidationError:
    return ValidationError(f"Invalid {param}: {message}", {"source": "query", "param": param})


def _question(params: Mapping[str, Any], state: State, scope: Scope) -> Question:
    text = params.get("q")
    if not isinstance(text, str):
        raise _invalid("q", 'expected exactly one parameter "q"')
    if len(text) > MAX_QUESTION_CHARS:
        raise _invalid("q", f"expected at most {MAX_QUESTION_CHARS} characters")
    types = (t for t in state.schema.content_types if t.uid in scope.statuses)
    fields = {a.name for t in types for a in t.attributes.values() if searchable(a)}
    question = read_question(text, fields, is_incomplete=_flag(params.get("prefix"), "prefix"))
    if question.excluded and not question.required:
        raise _invalid("q", "the search only excludes words; add a word to search for")
    return question


def _flag(value: Any, param: str) -> bool:
    if value is None or value == "":
        return True
    flag = read_boolean(value)
    if flag is None:
        raise _invalid(param, 'expected "true" or "false"')
    return flag


def read_number(params: Mapping[str, Any], param: str, default: int) -> int:
    value = params.get(param)
    if value is None or value == "":
        return default
    if not isinstance(value, str) or not _NUMBER.fullmatch(value) or int(value) < 1:
        raise _invalid(param, "expected a whole number above 0")
    return int(value)


def read_scope(params: Mapping[str, Any], state: State, actor: Actor) -> Scope:
    """Parse the scope of a search: the types, the statuses and the locale to search in.

    Raises ForbiddenError if the caller may not read them, or ValidationError if a parameter is invalid.
    """
    draft = read_status(params.get("status")) == DRAFT
    readable = [t for t in state.schema.content_types if actor.may(t.singular, "find")]
    if not readable:
        raise ForbiddenError()
    requested = _type_uids(params.get("type"), readable)
    draft_types = [t for t in readable if may_read_drafts(actor, t)] if draft else []
    published_only = (
        {t.uid for t in readable if t.draft_publish} - {t.uid for t in draft_types} if draft else set()
    )
    unreadable = requested & published_only or (set() if draft_types else published_only)
    if unreadable:
        raise forbidden(actor, state.schema.types[min(unreadable)].singular, "readDraft")
    statuses = {t.uid: DRAFT if t in draft_types else PUBLISHED for t in readable}
    unlocalized = frozenset(t.uid for t in readable if not t.localized)
    return Scope(statuses, requested or None, _locale(params.get("locale"), state.settings), unlocalized)


def _type_uids(value: Any, types: Iterable[Type]) -> frozenset[str]:
    """Convert the API ids of types, in a list or separated by commas, to uids.

    Raises the same ValidationError for a type that the caller may not read as for an unknown type.
    """
    uid_by_name = {name: t.uid for t in types for name in (t.singular, t.plural)}
    uids = set()
    for part in value if isinstance(value, list) else [value or ""]:
        for name in part.split(",") if isinstance(part, str) else [None]:
            if name == "":
                continue
            if name not in uid_by_name:
                hint = suggestion(str(name), uid_by_name)
                raise _invalid("type", f'unknown content type "{name}"' + (f"; {hint}" if hint else ""))
            uids.add(uid_by_name[name])
    return frozenset(uids)


def _locale(value: Any, settings: Settings) -> str | None:
    if value in (None, "", "*"):
        return None
    locale = read_locale(value, settings)
    if locale not in settings.locales.available:
        raise _invalid("locale", "expected one of " + ", ".join(settings.locales.available))
    return locale


# --- response -------------------------------------------------------------------------------------


def _body(
    results: Results,
    question: Question,
    finders: WordFinders,
    scope: Scope,
    state: State,
    page: int,
    limit: int,
    index: dict[str, Any],
) -> dict[str, Any]:
    count = total(results, scope)
    types, locales = facets(results, scope)
    names = {t.uid: t.singular for t in state.schema.content_types}
    return {
        "data": [
            _hit(document, score, state, finders.finder_for(document))
            for score, document in results.documents
        ],
        "meta": {
            "query": question.text,
            "pagination": {
                "page": page,
                "pageSize": limit,
                "pageCount": -(-count // limit),
                "total": count,
            },
            "facets": {
                "type": _facet({names[uid]: n for uid, n in types.items() if uid in names}),
                "locale": _facet(locales),
            },
            "didYouMean": results.suggestion,
            "index": index,
        },
    }


def _facet(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    # The counts are sorted here, because the order in the index depends on documents that the caller is not
    # allowed to see.
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"value": value, "count": count} for value, count in ordered]


def _hit(document: Document, score: float, state: State, finder: WordFinder) -> dict[str, Any]:
    type_ = document.type
    title = title_of(type_)
    return {
        "id": document.id,
        "documentId": document.document_id,
        "type": type_.singular,
        "locale": document.locale,
        "status": document.status,
        "title": document.get(title) if title else None,
        "href": api_path(document, type_, state.settings),
        "score": round(score, 3),
        "highlights": {
            attribute: [highlighted_html(fragment) for fragment in fragments]
            for attribute, fragments in highlights(document, state.settings, finder).items()
        },
    }


def api_path(document: Document, type_: Type, settings: Settings) -> str:
    """Return the path of a document in the API, such as `/api/articles/night-ferry`."""
    if type_.kind == "singleType":
        path = f"/api/{type_.singular}"
    else:
        path = f"/api/{type_.plural}/{quote(document.document_id, safe='')}"
    query = [f"locale={document.locale}"] if document.locale != settings.locales.default else []
    query += ["status=draft"] if document.status == DRAFT else []
    return path + ("?" + "&".join(query) if query else "")


def highlighted_html(fragment: Fragment) -> str:
    return "".join(f"<mark>{escape(t)}</mark>" if is_match else escape(t) for t, is_match in fragment)


def _reads_everything(state: State, actor: Actor) -> bool:
    return all(
        may_find(actor, t.uid) and (not t.draft_publish or may_read_drafts(actor, t))
        for t in state.schema.content_types
    )


def _index_status(results: Results, *, may_read_all: bool) -> dict[str, Any]:
    status, indexed = results.status, results.indexed
    if not may_read_all:
        return {"used": indexed, "documents": None, "pending": None}
    if status is None:
        return {"used": indexed, "documents": 0, "pending": None}
    pending = status.pending if indexed else max(status.pending, status.total - status.documents)
    return {"used": indexed, "documents": status.documents, "pending": pending}
