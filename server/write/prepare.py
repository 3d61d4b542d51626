"""Preparation of writes: validating the requests and computing the new contents of files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from server.auth.draft_visibility import may_read_drafts, may_read_source_of
from server.auth.permissions import may_find
from server.documents.document import Document
from server.errors import (
    ConcurrentChangeError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OverlapError,
    add_operation_number,
)
from server.index.user_index import join
from server.write import publication
from server.write.context import Context, values_of
from server.write.precondition import matches_document, require_match, version_of
from server.write.readable import ReadAccess
from server.write.rebase import earlier_version, rebase
from server.write.request import Address, BatchRequest, WriteRequest
from server.write.validate import Change, Validator
from server.write.write import Writer, single_type_document_id

_STEPS_PER_OPERATION = 1000  # enough that the budget checks the time before each operation
PUBLISHES_MESSAGE = (
    "This draft would change published content, because a relation in it is stored in a published document"
)

Prepare = Callable[[WriteRequest, Context], str]


def create(request: WriteRequest, context: Context) -> str:
    written = _writer(request, context).create(*_read(request, context))
    return _keep_published(request, context, written)


def update(request: WriteRequest, context: Context) -> str:
    written = _writer(request, context).update(*_read(request, context))
    return _keep_published(request, context, written)


def put_single(request: WriteRequest, context: Context) -> str:
    written = _writer(request, context).put_single(*_read(request, context))
    return _keep_published(request, context, written)


def delete(request: WriteRequest, context: Context) -> str:
    # Unknown locales are ignored.
    address = _with_current_type(request.address, context)
    return _writer(request, context).delete(_check_match(request, address, context), request.locales)


def unpublish(request: WriteRequest, context: Context) -> str:
    address = _matched_draft_address(request, context)
    document_id = address.document_id or ""
    publication.unpublish(context, address.type, document_id, request.locales)
    return document_id


def discard(request: WriteRequest, context: Context) -> str:
    address = _matched_draft_address(request, context)
    document_id, hides_drafts = address.document_id or "", not may_read_drafts(request.actor, address.type)
    publication.discard(context, address.type, document_id, request.locales, hides_drafts=hides_drafts)
    return _keep_published(request, context, document_id)


def batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool], ...]:
    """Prepare the writes in a batch. For each, return the document's id and whether the write was merged."""
    results = []
    for number, (prepare, operation) in enumerate(request.operations):
        with add_operation_number(number):
            context.budget.spend(_STEPS_PER_OPERATION)
            context = context.for_next_change()
            results.append(_with_merge_flag(prepare, operation, context))
    return tuple(results)


def without_batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool]]:
    [(prepare, operation)] = request.operations
    return (_with_merge_flag(prepare, operation, context),)


def _with_merge_flag(prepare: Prepare, request: WriteRequest, context: Context) -> tuple[str, bool]:
    document_id = prepare(request, context)
    return document_id, request.merge and _earlier(request, _address(request, context), context) is not None


def _keep_published(request: WriteRequest, context: Context, written: str) -> str:
    # Changing a relation in a draft can change published content in another document's file.
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES_MESSAGE)
    return written


def _read(request: WriteRequest, context: Context) -> tuple[Address, Change]:
    address = _address(request, context)
    earlier = _earlier(request, address, context) if request.merge else None
    if earlier is None:
        _require_match(request, address, context)
    writer = _writer(request, context)
    current = writer.base(address)
    first = _first(request, address, current, context)
    base = earlier or first or current
    snapshot = join(context.snapshot, request.users)
    actor = request.actor
    settings = context.settings
    locales = tuple(dict.fromkeys((settings.locales.default, *settings.locales.available)))
    validator = Validator(
        snapshot,
        locales,
        partial(may_find, actor),
        partial(may_read_drafts, actor),
        _reads_version(request, address),
        writer.tells_private,
        draft=address.draft,
        budget=context.budget,
    )
    change = validator.change(address.type, request.data, values_of(base) if base else None)
    if earlier:
        return address, rebase(request, writer, change, earlier)
    if first and current:
        if not _reads_merged(request, address, context):
            raise ConcurrentChangeError(details=_names(address, current))
        with _naming_document(address, current):
            return address, rebase(request, writer, change, first, [current])
    return address, change


def _writer(request: WriteRequest, context: Context) -> Writer:
    type_ = request.address.type
    hides_drafts = type_.draft_publish and not may_read_drafts(request.actor, type_)
    return Writer(
        context, hides_drafts, _reading(request, request.address, context, versions=not hides_drafts)
    )


def _reads_version(request: WriteRequest, address: Address) -> bool:
    return not address.draft or may_read_drafts(request.actor, address.type)


def _reading(request: WriteRequest, address: Address, context: Context, *, versions: bool) -> ReadAccess:
    schema = context.snapshot.schema
    private = may_read_source_of(request.actor, address.type, schema, draft=address.draft)
    return ReadAccess(request.actor, schema, private, versions)


def _reads_merged(request: WriteRequest, address: Address, context: Context) -> bool:
    # Without this check, callers could find out whether a guessed value conflicts with a hidden value.
    reading = _reading(request, address, context, versions=_reads_version(request, address))
    return reading.covers(address.type, request.data)


def _first(
    request: WriteRequest, address: Address, current: Document | None, context: Context
) -> Document | None:
    # Returns the version on which the first attempt was based, or None if it is still the current version.
    # Raises ConcurrentChangeError if the document's existence, type or status has changed.
    (first,) = context.base_versions.record_or_replay((current,))
    if _is_same(first, current):
        return None
    if first is None or current is None or (first.type, first.status) != (current.type, current.status):
        raise ConcurrentChangeError(details=_names(address, current))
    return first


def _is_same(document: Document | None, other: Document | None) -> bool:
    if document is None or other is None:
        return document is other
    return document is other or (
        document.status == other.status and version_of(document) == version_of(other)
    )


@contextmanager
def _naming_document(address: Address, current: Document) -> Iterator[None]:
    try:
        yield
    except OverlapError as error:
        raise ConcurrentChangeError(details={**_names(address, current), **error.details}) from error


def _names(address: Address, current: Document | None) -> dict[str, object]:
    document_id = address.document_id or (current.document_id if current else None)
    return {"type": address.type.singular, "documentId": document_id, "locale": address.locale}


def _check_match(request: WriteRequest, address: Address, context: Context) -> Address:
    # Raises PreconditionError if the header does not match, or ConcurrentChangeError after a concurrent
    # change.
    _require_match(request, address, context)
    type_, document_id = address.type, address.document_id
    document_id = (
        document_id
        or single_type_document_id(context.snapshot, context.settings, type_, address.locale)
        or ""
    )
    current = tuple(v for each in request.locales for v in context.versions(type_, document_id, each))
    first = context.base_versions.record_or_replay(current)
    if any(current) and not all(map(_is_same, first, current)):
        raise ConcurrentChangeError(details=_names(address, next(filter(None, current))))
    return address


def _matched_draft_address(request: WriteRequest, context: Context) -> Address:
    # Fills in the document's id. Raises NotFoundError, or ConflictError if the type has no drafts.
    address, locales = _check_match(request, _address(request, context), context), request.locales
    type_ = address.type
    _require_fit(replace(address, draft=True), context)
    document_id = address.document_id or single_type_document_id(
        context.snapshot, context.settings, type_, address.locale
    )
    context.require_served(type_, document_id, locales)
    if not document_id or not any(any(context.versions(type_, document_id, each)) for each in locales):
        raise NotFoundError()
    return replace(address, document_id=document_id)


def _require_match(request: WriteRequest, address: Address, context: Context) -> None:
    require_match(
        request.if_match, _current(address, context), include_version=_reads_version(request, address)
    )


def _earlier(request: WriteRequest, address: Address, context: Context) -> Document | None:
    # Returns None if the request needs no merge or must not be merged.
    current = _current(address, context)
    if request.if_match is None or current is None or matches_document(request.if_match, current):
        return None
    if not _reads_merged(request, address, context):
        return None
    return earlier_version(request.if_match, current, address, context)


def _address(request: WriteRequest, context: Context) -> Address:
    return fit_to_schema(request.address, context)


def fit_to_schema(address: Address, context: Context) -> Address:
    # The schema may have changed since the request was parsed.
    address = _with_current_type(address, context)
    _require_fit(address, context)
    return address


def _with_current_type(address: Address, context: Context) -> Address:
    type_ = context.snapshot.schema.types.get(address.type.uid)
    if type_ is None:
        raise NotFoundError()
    return replace(address, type=type_)


def _require_fit(address: Address, context: Context) -> None:
    known_locales = (
        context.settings.locales.default,
        *(context.settings.locales.available if address.type.localized else ()),
    )
    if address.locale not in known_locales or (address.draft and not address.type.draft_publish):
        raise ConflictError(f"The {address.type.singular} document was changed during this write; try again")


def _current(address: Address, context: Context) -> Document | None:
    # `If-Match` is compared with the version that a GET request returns.
    if address.document_id is not None:
        return context.snapshot.get(address.type, address.document_id, address.locale, address.status)
    if address.type.kind != "singleType":
        return None
    return next(iter(context.snapshot.list(address.type, address.locale, address.status)), None)
