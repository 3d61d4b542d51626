"""A request to write → the files that it changes, checked against the site as it is at that time.

Each function takes a request and a context, puts the changed files into `context.changeset`, and
returns the document's id. `site.write` calls it, and again, with a new context, where somebody else
changed the site meanwhile. All raise PreconditionError where `If-Match` names another version and the
change is not to be merged with those made since, or can't be, and ValidationError for data that the schema
does not have or allow.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import may_find, may_source
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
from server.write.rebase import earlier_version, rebase
from server.write.request import Address, BatchRequest, WriteRequest
from server.write.validate import Change, Validator
from server.write.write import Writer, single_id

PUBLISHES_MESSAGE = "This draft would change what is published, by a relation to it"

Prepare = Callable[[WriteRequest, Context], str]


def create(request: WriteRequest, context: Context) -> str:
    """A new document of a collection type."""
    written = _writer(request, context).create(*_read(request, context))
    return _keep_published(request, context, written)


def update(request: WriteRequest, context: Context) -> str:
    """New values for a version of a document. Raises NotFoundError where there is no such document."""
    written = _writer(request, context).update(*_read(request, context))
    return _keep_published(request, context, written)


def put_single(request: WriteRequest, context: Context) -> str:
    """New values for the document of a single type, which is made where there is none."""
    written = _writer(request, context).put_single(*_read(request, context))
    return _keep_published(request, context, written)


def delete(request: WriteRequest, context: Context) -> str:
    """No more files of a document in the locales of a request; returns "" where there was none.

    There is none in a locale that the site does not have.
    """
    address = _of_type(request.address, context)
    return _writer(request, context).delete(_check_match(request, address, context), request.locales)


def unpublish(request: WriteRequest, context: Context) -> str:
    """Nothing published of a document in some locales. Raises NotFoundError where it is in none of them."""
    address = _of_drafts(_check_match(request, _address(request, context), context), request.locales, context)
    document_id = address.document_id or ""
    publication.unpublish(context, address.type, document_id, request.locales)
    return document_id


def discard(request: WriteRequest, context: Context) -> str:
    """No drafts of a document, in the locales of a request, beside what is published.

    Raises NotFoundError where there is no such document, ValidationError where there is nothing to discard.
    """
    address = _of_drafts(_check_match(request, _address(request, context), context), request.locales, context)
    document_id, blind = address.document_id or "", not may_read_drafts(request.actor, address.type)
    publication.discard(context, address.type, document_id, request.locales, blind=blind)
    return _keep_published(request, context, document_id)


def batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool], ...]:
    """Several writes, each of which sees what those before it come to.

    Returns what each one returns, and whether it was merged.
    """
    written = []
    for number, (prepare, wanted) in enumerate(request.operations):
        with of_operation(number):
            written.append(_noting_merge(prepare, wanted, context))
        context = context.after()
    return tuple(written)


def without_batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool]]:
    """One write by itself; returns the same of it, but its errors say nothing of a batch."""
    [(prepare, wanted)] = request.operations
    return (_noting_merge(prepare, wanted, context),)


def _noting_merge(prepare: Prepare, request: WriteRequest, context: Context) -> tuple[str, bool]:
    """What is written, and whether the change was merged with those of others."""
    written = prepare(request, context)
    return written, request.merge and _earlier(request, _address(request, context), context) is not None


def _keep_published(request: WriteRequest, context: Context, written: str) -> str:
    """What was written. Raises ForbiddenError where that changes what is published, and may not.

    A draft does so by relations: those to types without drafts are kept by the other side, say.
    """
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES_MESSAGE)
    return written


def _read(request: WriteRequest, context: Context) -> tuple[Address, Change]:
    """Which version a request changes, and how."""
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
        snapshot, locales, partial(may_find, actor), partial(may_read_drafts, actor), draft=address.draft
    )
    change = validator.change(address.type, request.data, values_of(base) if base else None)
    if earlier:
        return address, rebase(request, writer, change, earlier)
    if first and current:
        with _naming_document(address, current):
            return address, rebase(request, writer, change, first, [current])
    return address, change


def _writer(request: WriteRequest, context: Context) -> Writer:
    type_ = request.address.type
    blind = type_.draft_publish and not may_read_drafts(request.actor, type_)
    tells_private = may_source(request.actor, "read", context.snapshot.schema)
    return Writer(context, blind, tells_private)


def _first(
    request: WriteRequest, address: Address, current: Document | None, context: Context
) -> Document | None:
    """The version that a change was first prepared on, where another machine has changed it since.

    None where the change is prepared the first time. Raises OvertakenError where there was none, or is none.
    """
    (first,) = context.first.of((current,))
    if _is_same(first, current):
        return None
    if first is None or current is None or (first.type, first.status) != (current.type, current.status):
        raise OvertakenError(details=_names(address, current))
    return first


def _is_same(one: Document | None, other: Document | None) -> bool:
    """Whether two versions are the same, or there is neither."""
    if one is None or other is None:
        return one is other
    return one is other or (one.status == other.status and version_of(one) == version_of(other))


@contextmanager
def _naming_document(address: Address, current: Document) -> Iterator[None]:
    """Name the document in the error for a change that overlaps one of another machine."""
    try:
        yield
    except OverlapError as error:
        raise OvertakenError(details={**_names(address, current), **error.details}) from error


def _names(address: Address, current: Document | None) -> dict[str, object]:
    """Which document an error is about."""
    document_id = address.document_id or (current.document_id if current else None)
    return {"type": address.type.singular, "documentId": document_id, "locale": address.locale}


def _check_match(request: WriteRequest, address: Address, context: Context) -> Address:
    """The address of a request with the document's id, where its `If-Match` is met.

    Raises OvertakenError where another machine has changed the document since this was first prepared.
    """
    _require_match(request, address, context)
    type_, document_id = address.type, address.document_id
    document_id = document_id or single_id(context.snapshot, context.settings, type_, address.locale) or ""
    found = tuple(v for each in request.locales for v in context.versions(type_, document_id, each))
    first = context.first.of(found)
    if any(found) and not all(map(_is_same, first, found)):
        raise OvertakenError(details=_names(address, next(filter(None, found))))
    return address


def _of_drafts(address: Address, locales: tuple[str, ...], context: Context) -> Address:
    """The address of a document that there is in one of some locales, with its id.

    Raises NotFoundError, and ConflictError where its type has no drafts any more.
    """
    type_ = address.type
    _require_fit(replace(address, draft=True), context)
    document_id = address.document_id or single_id(context.snapshot, context.settings, type_, address.locale)
    if not document_id or not any(any(context.versions(type_, document_id, each)) for each in locales):
        raise NotFoundError()
    return replace(address, document_id=document_id)


def _require_match(request: WriteRequest, address: Address, context: Context) -> None:
    shown = not address.draft or may_read_drafts(request.actor, address.type)
    require_match(request.if_match, _current(address, context), tell=shown)


def _earlier(request: WriteRequest, address: Address, context: Context) -> Document | None:
    """The version that a change was made from, where it is to be merged with what others have changed since.

    None where the change is of the current version, and where nothing may be told of that.
    """
    current = _current(address, context)
    told = not address.draft or may_read_drafts(request.actor, address.type)
    if request.if_match is None or current is None or not told or is_named(request.if_match, current):
        return None
    return earlier_version(request.if_match, current, address, context)


def _address(request: WriteRequest, context: Context) -> Address:
    """The address of a request under the schema that there is now."""
    return fit_to_schema(request.address, context)


def fit_to_schema(address: Address, context: Context) -> Address:
    """An address under the schema that there is now.

    Raises NotFoundError, and ConflictError where settings or a schema that changed meanwhile know none such.
    """
    address = _of_type(address, context)
    _require_fit(address, context)
    return address


def _of_type(address: Address, context: Context) -> Address:
    """An address with the type as it is now. Raises NotFoundError if there is none."""
    type_ = context.snapshot.schema.types.get(address.type.uid)
    if type_ is None:
        raise NotFoundError()
    return replace(address, type=type_)


def _require_fit(address: Address, context: Context) -> None:
    """Raise ConflictError where settings or a schema that changed meanwhile know no such version."""
    known = (
        context.settings.locales.default,
        *(context.settings.locales.available if address.type.localized else ()),
    )
    if address.locale not in known or (address.draft and not address.type.draft_publish):
        raise ConflictError(f"{address.type.singular} was changed meanwhile; try again")


def _current(address: Address, context: Context) -> Document | None:
    """The version that `If-Match` is about: what a GET of the same address shows; None of a new document."""
    if address.document_id is not None:
        return context.snapshot.get(address.type, address.document_id, address.locale, address.status)
    if address.type.kind != "singleType":
        return None
    return next(iter(context.snapshot.list(address.type, address.locale, address.status)), None)
