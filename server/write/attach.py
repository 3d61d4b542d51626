"""Uploaded files that a document is to have: `ref`, `refId` and `field` of an upload's form."""

from dataclasses import dataclass

from server.auth.permissions import Actor, require
from server.documents.document import Document, edited_status
from server.errors import ValidationError
from server.schema.model import Type
from server.storage.media import refusal
from server.write.context import Context
from server.write.request import Address
from server.write.validate import Change
from server.write.write import Writer


@dataclass(frozen=True, slots=True)
class Attachment:
    """A media attribute, `field`, of the document `ref_id` of the content type with the uid `ref`."""

    ref: str
    ref_id: str
    field: str


def attach(context: Context, actor: Actor, attachment: Attachment, new: list[str]) -> None:
    """Give files, by their upload paths, to a document. Raises ValidationError and ForbiddenError."""
    ref, field = attachment.ref, attachment.field
    type_ = next((t for t in context.snapshot.schema.content_types if t.uid == ref), None)
    attribute = type_.attributes.get(field) if type_ else None
    if type_ is None or attribute is None or attribute.type != "media" or not attachment.ref_id:
        raise ValidationError("ref, refId and field must name a document and its media attribute")
    require(actor, type_, "update")
    refused = next(filter(None, (refusal(attribute, inside) for inside in new)), "")
    if refused:
        raise ValidationError(f"{field} {refused}")
    document = _document(context, type_, attachment.ref_id)
    if document is None:
        raise ValidationError(f"There is no document {attachment.ref_id} of {ref}")
    current = tuple(document.get(field)) if attribute.multiple else ()
    change = Change({field: (*current, *new) if attribute.multiple else tuple(new[:1])})
    published, draft = context.versions(type_, document.document_id, document.locale)
    only_draft = published is None and draft is not None
    Writer(context).update(Address(type_, document.document_id, document.locale, only_draft), change)


def _document(context: Context, type_: Type, key: str) -> Document | None:
    """The document with a documentId, in the default locale first, or that version of it with a number."""
    default = context.settings.default_locale
    others = [locale for locale in context.settings.locales if type_.localized and locale != default]
    status = edited_status(type_)
    documents = (d for locale in (default, *others) for d in context.snapshot.list(type_, locale, status))
    return next((d for d in documents if key in (d.document_id, str(d.id))), None)
