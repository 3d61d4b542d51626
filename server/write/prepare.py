"""A request to write → the files that it changes, checked against the site as it is at that time.

Each function takes a request and a context, puts the changed files into `context.changeset`, and
returns the document's id. `site.write` calls it, and again, with a new context, where somebody else
changed the site meanwhile. All raise PreconditionError where `If-Match` names another version and the
change is not to be merged with those made since, or can't be, and ValidationError for data that the schema
does not have or allow.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from server.auth.permissions import may_find, may_read_drafts
from server.documents.document import Document
from server.errors import ConflictError, ForbiddenError, NotFoundError, of_operation
from server.index.user_index import join
from server.write.context import Context, values_of
from server.write.rebase import earlier_version, rebase
from server.write.request import Address, BatchRequest, WriteRequest
from server.write.validate import Change, Validator
from server.write.version import is_named, require_match
from server.write.write import Writer

PUBLISHES = "This draft would change what is published, by a relation to it"

Prepare = Callable[[WriteRequest, Context], str]


def create(request: WriteRequest, context: Context) -> str:
    """A new document of a collection type."""
    written = _writer(request, context).create(*_read(request, context))
    return _kept_published(request, context, written)


def update(request: WriteRequest, context: Context) -> str:
    """New values for a version of a document. Raises NotFoundError where there is no such document."""
    written = _writer(request, context).update(*_read(request, context))
    return _kept_published(request, context, written)


def put_single(request: WriteRequest, context: Context) -> str:
    """New values for the document of a single type, which is made where there is none."""
    written = _writer(request, context).put_single(*_read(request, context))
    return _kept_published(request, context, written)


def delete(request: WriteRequest, context: Context) -> str:
    """No more files of a document in the locales of a request; returns "" where there was none."""
    return _writer(request, context).delete(_matched(request, context), request.locales)


def batch(request: BatchRequest, context: Context) -> tuple[tuple[str, bool], ...]:
    """Several writes, each of which sees what those before it come to.

    Returns what each one returns, and whether it was merged.
    """
    written = []
    for number, (prepare, wanted) in enumerate(request.operations):
        with of_operation(number):
            written.append(noting_merge(prepare)(wanted, context))
        context = context.after()
    return tuple(written)


def noting_merge(prepare: Prepare) -> Callable[[WriteRequest, Context], tuple[str, bool]]:
    """A function that returns as well whether the change was merged with those of others."""
    return lambda request, context: (
        prepare(request, context),
        request.merge and _earlier(request, _address(request, context), context) is not None,
    )


def _kept_published(request: WriteRequest, context: Context, written: str) -> str:
    """What was written. Raises ForbiddenError where that changes what is published, and may not.

    A draft does so by relations: those to types without drafts are kept by the other side, say.
    """
    if request.drafts_only and context.changes_published():
        raise ForbiddenError(PUBLISHES)
    return written


def _read(request: WriteRequest, context: Context) -> tuple[Address, Change]:
    """Which version a request changes, and how."""
    address = _address(request, context)
    earlier = _earlier(request, address, context) if request.merge else None
    if earlier is None:
        _require_match(request, address, context)
    writer = _writer(request, context)
    base = earlier or writer.base(address)
    snapshot = join(context.snapshot, request.users)
    actor = request.actor
    settings = context.settings
    locales = tuple(dict.fromkeys((settings.default_locale, *settings.locales)))
    validator = Validator(snapshot, locales, partial(may_find, actor), partial(may_read_drafts, actor))
    change = validator.change(address.type, request.data, values_of(base) if base else None)
    return address, rebase(request, writer, change, earlier) if earlier else change


def _writer(request: WriteRequest, context: Context) -> Writer:
    type_ = request.address.type
    return Writer(context, blind=type_.draft_publish and not may_read_drafts(request.actor, type_))


def _matched(request: WriteRequest, context: Context) -> Address:
    """The address of a request under the schema that there is now, where its `If-Match` is met."""
    address = _address(request, context)
    _require_match(request, address, context)
    return address


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
    type_ = context.snapshot.schema.types.get(request.address.type.uid)
    if type_ is None:
        raise NotFoundError()
    address = replace(request.address, type=type_)
    _require_fit(address, context)
    return address


def _require_fit(address: Address, context: Context) -> None:
    """Raise ConflictError where settings or a schema that changed meanwhile know no such version."""
    known = (context.settings.default_locale, *(context.settings.locales if address.type.localized else ()))
    if address.locale not in known or (address.draft and not address.type.draft_publish):
        raise ConflictError(f"{address.type.singular} was changed meanwhile; try again")


def _current(address: Address, context: Context) -> Document | None:
    """The version that `If-Match` is about: what a GET of the same address shows."""
    if address.document_id is not None:
        return context.snapshot.get(address.type, address.document_id, address.locale, address.status)
    return next(iter(context.snapshot.list(address.type, address.locale, address.status)), None)
