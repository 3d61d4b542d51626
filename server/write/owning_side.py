"""Changes to relations that are stored in the files of the related documents."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.encode import encode
from server.index.effective_version import edited_status
from server.schema.model import Attribute, Type
from server.write.context import Context, values_of
from server.write.draft_merge import drop_equal_draft
from server.write.relation_input import Links

NO_IDS: Set[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class RelationWriter:
    """Writer for relations in one locale that are stored in the files of the related documents.

    Relations that exist only in drafts hidden from the author are not published.
    """

    context: Context
    locale: str
    drafts_only: bool
    sees_drafts: Callable[[Type], bool]

    def next_step(self, locale: str) -> "RelationWriter":
        return replace(self, context=self.context.next_step(), locale=locale)

    def update_derived_relation(
        self, type_: Type, document_id: str, attribute: Attribute, links: Links
    ) -> None:
        owner, owning, target = self._owning_side(type_, document_id, attribute)
        current = self._owners(owner, owning, target, edited_status(owner))
        ordered = links.apply(current, to_many=attribute.to_many)
        old_owners, new_owners = {*current}, {*ordered}
        own = document_id if owner is type_ else None
        removed = old_owners - new_owners
        if not type_.draft_publish:
            removed |= self._removed_from_published(owner, owning, target, attribute, links) - new_owners
        for each in sorted(removed - {own}):
            self._relink(owner, owning, each, remove={target})
        named = set() if type_.draft_publish else {*(links.set or ()), *(c.target for c in links.connect)}
        for added in (i for i in ordered if (i not in old_owners or i in named) and i != own):
            self._relink(owner, owning, added, add=target)
        if owning.relation == "oneToOne" and new_owners:
            self._remove_in_other_locales(owner, owning, (target,), new_owners)
        if self.drafts_only or not type_.draft_publish:
            return
        if not self.sees_drafts(owner):
            shown = self._owners(owner, owning, target, PUBLISHED)
            published = set(links.apply(shown, to_many=attribute.to_many))
            self._publish(owner, owning, target, published, but=old_owners ^ new_owners | {own})
        else:
            kept = old_owners & new_owners
            self._publish(owner, owning, target, kept, but=(old_owners | new_owners | {own}) - kept)

    def _removed_from_published(
        self, owner: Type, owning: Attribute, target: Any, attribute: Attribute, links: Links
    ) -> set[str]:
        # Use the published relation, because the draft's relation can differ.
        live = self._owners(owner, owning, target, PUBLISHED)
        return {*live} - {*replace(links, strict=False).apply(live, to_many=attribute.to_many)}

    def publish_derived_relation(self, type_: Type, document_id: str, attribute: Attribute) -> None:
        """Copy a relation from the drafts of the related documents to their published versions.

        Do nothing if the author may not read these drafts.
        """
        owner, owning, target = self._owning_side(type_, document_id, attribute)
        if not self.sees_drafts(owner):
            return
        drafts = set(self._owners(owner, owning, target, DRAFT))
        self._publish(owner, owning, target, drafts, but={document_id} if owner is type_ else set())

    def _publish(
        self, owner: Type, owning: Attribute, target: Any, drafts: set[str], but: set[str | None]
    ) -> None:
        # Afterwards, exactly the documents in `drafts` refer to `target`. Documents in `but` are left
        # unchanged.
        if not owner.draft_publish:
            return
        live = set(self._owners(owner, owning, target, PUBLISHED))
        for other in sorted((drafts ^ live) - but):
            published, draft = self.context.versions(owner, other, self._locale(owner))
            if published is None:
                continue
            current = tuple(published.get(owning.name))
            new = _with(current, target, owning) if other in drafts else _without(current, {target})
            self._put(published, owning, new)
            if draft:
                values = {**values_of(published), owning.name: new}
                drop_equal_draft(self.context, published, draft, values, values_of(draft))

    def take(self, type_: Type, document_id: str, attribute: Attribute, targets: tuple[Any, ...]) -> None:
        # Removes the targets from other documents, for relations in which a target can belong to only one
        # document.
        self._remove_from_others(type_, attribute, targets, {document_id})
        self._remove_in_other_locales(type_, attribute, targets, {document_id})

    def _remove_from_others(
        self, type_: Type, attribute: Attribute, targets: Iterable[Any], kept: Set[str]
    ) -> None:
        targets_by_owner: dict[str, set[Any]] = {}
        for target, status in product(targets, self._statuses(type_)):
            for owner in self._owners(type_, attribute, target, status):
                targets_by_owner.setdefault(owner, set()).add(target)
        for owner in sorted(targets_by_owner.keys() - kept):
            self._relink(type_, attribute, owner, remove=targets_by_owner[owner])

    def _remove_in_other_locales(
        self, type_: Type, attribute: Attribute, targets: Iterable[Any], kept: Set[str]
    ) -> None:
        # A target that is not localized can belong to only one document across all locales.
        found = self.context.snapshot.schema.types.get(attribute.target or "")
        if found is None or found.localized or not type_.localized:
            return
        for locale in self.context.settings.locales.available:
            if locale != self.locale:
                replace(self, locale=locale)._remove_from_others(type_, attribute, targets, kept)

    def _statuses(self, type_: Type) -> tuple[str, ...]:
        return (DRAFT,) if self.drafts_only and type_.draft_publish else (DRAFT, PUBLISHED)

    def _owning_side(
        self, type_: Type, document_id: str, attribute: Attribute
    ) -> tuple[Type, Attribute, Any]:
        owner = self.context.snapshot.schema.types[attribute.target or ""]
        owning = owner.attributes[attribute.mapped_by or ""]
        return owner, owning, (type_.uid, document_id) if owning.morph else document_id

    def _owners(self, type_: Type, attribute: Attribute, target: Any, status: str) -> tuple[str, ...]:
        status = status if type_.draft_publish else PUBLISHED
        locale = self._locale(type_)
        found = self.context.snapshot.linking(type_, attribute.name, target, locale, status)
        return tuple(document.document_id for document in found)

    def _locale(self, type_: Type) -> str:
        return self.locale if type_.localized else self.context.settings.locales.default

    def _relink(
        self,
        type_: Type,
        attribute: Attribute,
        document_id: str,
        *,
        add: Any = None,
        remove: Set[Any] = NO_IDS,
    ) -> None:
        context = self.context
        published, draft = context.versions(type_, document_id, self._locale(type_))
        only_draft = self.drafts_only and type_.draft_publish
        for document in (draft, None if only_draft and draft else published):
            if document is None:
                continue
            current = tuple(document.get(attribute.name))
            new = _with(current, add, attribute) if add is not None else _without(current, remove)
            # The published version must not change, so this creates a draft.
            if only_draft and document is published and new != current:
                path = context.sibling(document.path, draft=True)
                changes = {attribute.name: encode(attribute, new)}
                context.put(path, context.text_with_changes(document, changes))
            else:
                self._put(document, attribute, new)

    def _put(self, document: Document, attribute: Attribute, new: tuple[Any, ...]) -> None:
        if new != tuple(document.get(attribute.name)):
            self.context.rewrite(document, {attribute.name: encode(attribute, new)})


def _with(current: tuple[Any, ...], target: Any, attribute: Attribute) -> tuple[Any, ...]:
    if target in current:
        return current
    return (*current, target) if attribute.to_many else (target,)


def _without(current: tuple[Any, ...], targets: Set[Any]) -> tuple[Any, ...]:
    return tuple(other for other in current if other not in targets)
