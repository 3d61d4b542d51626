"""Preparation of write requests. A write request is checked against the current site, and converted to the
new content of files.

Each function receives a request and a context, adds the changed files to `context.changeset`, and returns the
id of the document. `Site.write` calls the function. If the site has changed in the meantime, `Site.write`
calls it again with a new context.

All functions raise ValidationError for data that the schema does not allow. They raise PreconditionError if
`If-Match` does not match the current version and the changes can't be merged.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from server.auth.draft_visibility import may_read_drafts, may_read_source_of
from server.auth.permissions import may_find
from server.documents.document import Document
from server.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OverlapError,
    OvertakenError,
    of_operation,
)
from server.index.user_index import join
from server.write import publication
from server.write.context import Context, values_of
from server.write.precondition import is_named, require_match, version_of
from server.write.readable import Reading
from server.write.rebase import earlier_version, rebase
from server.write.request import Address, BatchRequest, WriteRequest
from server.write.validate import Change, Validator
from server.write.write import Writer, single_id

PUBLISHES_MESSAGE = (
    "This draft would change published content, because a relation in it is stored in a published document"
)

Prepare = Callable[[WriteRequest, Context], str]


def create(request: WriteRequest, context: Context) -> str:
    """Create a document of a collection type. Return its id."""
    written = _writer(request, context).create(*_read(request, context))
    return _keep_published(request, context, written)


def update(request: WriteRequest, context: Context) -> str:
    """Change a version of a document. Raises NotFoundError if the document does not exist."""
    written = _writer(request, context).update(*_read(request, context))
    return _keep_published(request, context, written)


def put_single(request: WriteRequest, context: Context) -> str:
    """Set the values of a single type's document, and create the document if it does not exist."""
    written = _writer(request, context).put_single(*_read(request, context))
    return _keep_published(request, context, written)


def delete(request: WriteRequest, context: Context) -> str:
    """Delete a document in the locales in the request. Return the document's id, or "" if it did not exist.

    Unknown locales are ignored.
    """
    address = _with_current_type(request.address, context)
    return _writer(request, context).delete(_check_match(request, address, context), request.locales)


def unpublish(request: WriteRequest, context: Context) -> str:
    """Unpublish a document in the locales in the request.

    Raises NotFoundError if the document exists in none of these locales.
    """
    address = _matched_draft_address(request, context)
    document_id = address.document_id or ""
    publication.unpublish(context, address.type, document_id, request.locales)
    return document_id


def discard(request: WriteRequest, context: Context) -> str:
    """Discard the drafts of a published document in the locales in the request.

    Raises NotFoundError if the document does not exist, and ValidationError if there is no draft to discard.
    """
    address = _matched_draft_address(request, context)
    document_id, blind = address.document_id or "", not may_read_drafts(request.actor, address.type)
    publication.discard(context, address.type, document_id, request.locales, blind=blind)
    return _keep_published(request, context, document_id)


def batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool], ...]:
    """Prepare several writes in order. Each write is based on the results of the earlier writes.

    For each write, return the id of the document, and whether the write was merged with someone else's
    change.
    """
    results = []
    for number, (prepare, operation) in enumerate(request.operations):
        with of_operation(number):
            results.append(_with_merge_flag(prepare, operation, context))
        context = context.after()
    return tuple(results)


def without_batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool]]:
    """Prepare a single write. The result has the same form as the result of `batch`, but errors do not
    contain the number of an operation.
    """
    [(prepare, operation)] = request.operations
    return (_with_merge_flag(prepare, operation, context),)


def _with_merge_flag(prepare: Prepare, request: WriteRequest, context: Context) -> tuple[str, bool]:
    document_id = prepare(request, context)
    return document_id, request.merge and _earlier(request, _address(request, context), context) is not None


def _keep_published(request: WriteRequest, context: Context, written: str) -> str:
    """Return `written`. Raise ForbiddenError if the caller may only write drafts, but the write changes
    published content.

    A change to a draft can affect published content through a relation that is stored in the file of another
    document. For example, the content type of that document may have no drafts.
    """
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
    )
    change = validator.change(address.type, request.data, values_of(base) if base else None)
    if earlier:
        return address, rebase(request, writer, change, earlier)
    if first and current:
        if not _reads_merged(request, address, context):
            raise OvertakenError(details=_names(address, current))
        with _naming_document(address, current):
            return address, rebase(request, writer, change, first, [current])
    return address, change


def _writer(request: WriteRequest, context: Context) -> Writer:
    type_ = request.address.type
    blind = type_.draft_publish and not may_read_drafts(request.actor, type_)
    return Writer(context, blind, _reading(request, request.address, context, versions=not blind))


def _reads_version(request: WriteRequest, address: Address) -> bool:
    return not address.draft or may_read_drafts(request.actor, address.type)


def _reading(request: WriteRequest, address: Address, context: Context, *, versions: bool) -> Reading:
    schema = context.snapshot.schema
    private = may_read_source_of(request.actor, address.type, schema, draft=address.draft)
    return Reading(request.actor, schema, private, versions)


def _reads_merged(request: WriteRequest, address: Address, context: Context) -> bool:
    """Whether the caller may read everything that a merge of the request compares.

    If not, the request is not merged. Otherwise, the caller could find out with a guessed value whether it
    conflicts with a value that the caller may not read.
    """
    reading = _reading(request, address, context, versions=_reads_version(request, address))
    return reading.covers(address.type, request.data)


def _first(
    request: WriteRequest, address: Address, current: Document | None, context: Context
) -> Document | None:
    """Return the version on which a change was first based, if another machine has changed the document since
    then.

    Return None if there was no such change, or during the first preparation. Raises OvertakenError if the
    version was created or deleted since then.
    """
    (first,) = context.first.of((current,))
    if _is_same(first, current):
        return None
    if first is None or current is None or (first.type, first.status) != (current.type, current.status):
        raise OvertakenError(details=_names(address, current))
    return first


def _is_same(one: Document | None, other: Document | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or (one.status == other.status and version_of(one) == version_of(other))


@contextmanager
def _naming_document(address: Address, current: Document) -> Iterator[None]:
    try:
        yield
    except OverlapError as error:
        raise OvertakenError(details={**_names(address, current), **error.details}) from error


def _names(address: Address, current: Document | None) -> dict[str, object]:
    document_id = address.document_id or (current.document_id if current else None)
    return {"type": address.type.singular, "documentId": document_id, "locale": address.locale}


def _check_match(request: WriteRequest, address: Address, context: Context) -> Address:
    """Check `If-Match`, and return the address in the request.

    Raises OvertakenError if another machine has changed the document since the first preparation.
    """
    _require_match(request, address, context)
    type_, document_id = address.type, address.document_id
    document_id = document_id or single_id(context.snapshot, context.settings, type_, address.locale) or ""
    current = tuple(v for each in request.locales for v in context.versions(type_, document_id, each))
    first = context.first.of(current)
    if any(current) and not all(map(_is_same, first, current)):
        raise OvertakenError(details=_names(address, next(filter(None, current))))
    return address


def _matched_draft_address(request: WriteRequest, context: Context) -> Address:
    """Check `If-Match`, and return the address in the request with the document's id added.

    Raises NotFoundError if the document exists in none of the requested locales. Raises ConflictError if its
    content type no longer has drafts.
    """
    address, locales = _check_match(request, _address(request, context), context), request.locales
    type_ = address.type
    _require_fit(replace(address, draft=True), context)
    document_id = address.document_id or single_id(context.snapshot, context.settings, type_, address.locale)
    if not document_id or not any(any(context.versions(type_, document_id, each)) for each in locales):
        raise NotFoundError()
    return replace(address, document_id=document_id)


def _require_match(request: WriteRequest, address: Address, context: Context) -> None:
    require_match(request.if_match, _current(address, context), tell=_reads_version(request, address))


def _earlier(request: WriteRequest, address: Address, context: Context) -> Document | None:
    """Return the version that the client has edited, if the document has been changed since. The request must
    then be merged with the later changes.

    Return None if no merge is necessary, or if the caller is not permitted to read everything that the merge
    would compare.
    """
    current = _current(address, context)
    if request.if_match is None or current is None or is_named(request.if_match, current):
        return None
    if not _reads_merged(request, address, context):
        return None
    return earlier_version(request.if_match, current, address, context)


def _address(request: WriteRequest, context: Context) -> Address:
    return fit_to_schema(request.address, context)


def fit_to_schema(address: Address, context: Context) -> Address:
    """Return an address in which the content type comes from the current schema. The schema may have changed
    since the request was parsed.

    Raises NotFoundError if the content type no longer exists. Raises ConflictError if the settings or schemas
    have changed and no longer allow the address.
    """
    address = _with_current_type(address, context)
    _require_fit(address, context)
    return address


def _with_current_type(address: Address, context: Context) -> Address:
    type_ = context.snapshot.schema.types.get(address.type.uid)
    if type_ is None:
        raise NotFoundError()
    return replace(address, type=type_)


def _require_fit(address: Address, context: Context) -> None:
    """Raise ConflictError if the settings or schemas have changed and no longer allow the address."""
    known_locales = (
        context.settings.locales.default,
        *(context.settings.locales.available if address.type.localized else ()),
    )
    if address.locale not in known_locales or (address.draft and not address.type.draft_publish):
        raise ConflictError(f"The {address.type.singular} document was changed during this write; try again")


def _current(address: Address, context: Context) -> Document | None:
    """Return the version that a GET request to this address returns. `If-Match` is compared with this
    version.

    Return None for a new document.
    """
    if address.document_id is not None:
        return context.snapshot.get(address.type, address.document_id, address.locale, address.status)
    if address.type.kind != "singleType":
        return None
    return next(iter(context.snapshot.list(address.type, address.locale, address.status)), None)
