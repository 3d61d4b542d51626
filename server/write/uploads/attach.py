"""Attachment of uploaded files to documents (`ref`, `refId` and `field` in the upload form)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from server.auth.draft_visibility import may_read_drafts, may_read_source_of
from server.auth.permissions import Actor, forbidden
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import Component, components_in
from server.errors import ForbiddenError, ValidationError
from server.index.effective_version import edited_status
from server.schema.model import Attribute, Type
from server.write.context import Context, values_of


@dataclass(frozen=True, slots=True)
class Attachment:
    """The media attribute to which files are attached.

    `ref` is the uid of a content type or component, `ref_id` is the id of the document or component, and
    `field` is the attribute's name.
    """

    ref: str
    ref_id: str
    field: str


@dataclass(frozen=True, slots=True)
class _AttachmentTarget:
    document: Document
    attribute: Attribute
    with_files: Callable[[Any], Any]


def attach(context: Context, actor: Actor, attachment: Attachment, media_keys: list[str]) -> None:
    """Add files to a media attribute of a document, in both the published version and the draft.

    Raises ValidationError if there is no such attribute or document, or ForbiddenError if `actor` may not
    change it.
    """
    holder = _holder(context, actor, attachment, media_keys)
    type_, attribute = holder.document.type, holder.attribute
    # new values by status
    own, given = (holder.document.locale, dict[str, Any]())
    shared = type_.localized and not attribute.localized
    for locale in (own, *(other for other in context.settings.locales.available if shared and other != own)):
        for version in filter(None, context.versions(type_, holder.document.document_id, locale)):
            values = values_of(version)
            if locale == own:
                given[version.status] = holder.with_files(values[attribute.name])
            status = version.status if version.status in given else PUBLISHED
            values[attribute.name] = given.get(status, values[attribute.name])
            if changes := context.changed_keys(version, values):
                context.rewrite(version, changes)


def _holder(context: Context, actor: Actor, attachment: Attachment, new: list[str]) -> _AttachmentTarget:
    # Without permission, the error must not reveal whether the document exists.
    types = [t for t in context.snapshot.schema.content_types if actor.may(t.singular, "update")]
    try:
        return _find_holder(context, actor, types, attachment, new)
    except ValidationError:
        if actor.everything or any(type_.uid == attachment.ref for type_ in types):
            raise
        type_ = context.snapshot.schema.types.get(attachment.ref)
        raise (forbidden(actor, type_.singular, "update") if type_ else ForbiddenError()) from None


def _find_holder(
    context: Context, actor: Actor, types: Sequence[Type], attachment: Attachment, new: list[str]
) -> _AttachmentTarget:
    type_ = context.snapshot.schema.types.get(attachment.ref)
    attribute = type_.attributes.get(attachment.field) if type_ else None
    if type_ is None or attribute is None or attribute.type != "media" or not attachment.ref_id:
        raise ValidationError(
            '"ref" and "refId" must identify an existing document, and "field" must be one of its media '
            "attributes"
        )
    if type_.kind == "component":
        holder = _component_holder(context, actor, types, attachment, attribute, new)
    else:
        document = _document(context, type_, attachment.ref_id) if type_ in types else None
        holder = (
            _AttachmentTarget(document, attribute, lambda value: _add_files(attribute, value, new))
            if document
            else None
        )
    if holder is None:
        raise ValidationError(f'The type {attachment.ref} has no document with the id "{attachment.ref_id}"')
    return holder


def _add_files(attribute: Attribute, value: tuple[str, ...], new: list[str]) -> tuple[str, ...]:
    return (*value, *new) if attribute.multiple else tuple(new[-1:])


def _document(context: Context, type_: Type, key: str) -> Document | None:
    # The default locale is searched first.
    default = context.settings.locales.default
    others = [
        locale for locale in context.settings.locales.available if type_.localized and locale != default
    ]
    status = edited_status(type_)
    documents = (d for locale in (default, *others) for d in context.snapshot.list(type_, locale, status))
    return next((d for d in documents if key in (d.document_id, str(d.id))), None)


def _component_holder(
    context: Context,
    actor: Actor,
    types: Sequence[Type],
    attachment: Attachment,
    attribute: Attribute,
    new: list[str],
) -> _AttachmentTarget | None:
    def is_match(component: Component) -> bool:
        return component.type.uid == attachment.ref and str(component.id) == attachment.ref_id

    def with_files(value: Any) -> Any:
        changed = tuple(with_files_inside(component) for component in components_in(value))
        return changed if isinstance(value, tuple) else next(iter(changed), None)

    def with_files_inside(component: Component) -> Component:
        values = []
        for inner, value in zip(component.type.attributes.values(), component.values, strict=True):
            if inner is attribute and is_match(component):
                values.append(_add_files(inner, value, new))
            else:
                values.append(with_files(value) if inner.holds_components else value)
        return Component(component.type, (component.id, *values))

    for document, private in _searched(context, actor, types):
        attributes = document.type.attributes.values()
        for outer in (a for a in attributes if a.holds_components and (private or a.visible)):
            if any(map(is_match, _components(document.get(outer.name), private=private))):
                return _AttachmentTarget(document, outer, with_files)
    return None


def _searched(context: Context, actor: Actor, types: Sequence[Type]) -> Iterator[tuple[Document, bool]]:
    # Yields each readable version, and whether the actor is allowed to read private values in it.
    for type_ in types:
        if not any(attribute.holds_components for attribute in type_.attributes.values()):
            continue
        schema, drafts = context.snapshot.schema, may_read_drafts(actor, type_)
        private = {draft: may_read_source_of(actor, type_, schema, draft=draft) for draft in (True, False)}
        for document in context.snapshot.tables[type_.uid].versions.values():
            draft = document.status == DRAFT
            if drafts or not draft:
                yield document, private[draft]


def _components(outer: Any, *, private: bool) -> Iterator[Component]:
    for component in components_in(outer):
        yield component
        for inner, value in zip(component.type.attributes.values(), component.values, strict=True):
            if inner.holds_components and (private or inner.visible):
                yield from _components(value, private=private)
