"""Relations written from the side that derives them, and targets that only one document may have.

A relation is stored in the files of its owning side. Writing the other side changes those files, in
the versions that the request is about.
"""

from dataclasses import dataclass
from typing import Any

from server.documents.document import edited_status
from server.documents.encode import encode
from server.schema.model import Attribute, Type
from server.write.context import Context
from server.write.relation_input import Links


@dataclass(frozen=True, slots=True)
class Relinker:
    """Changes relations in the files of other documents. `drafts_only`: the request writes a draft."""

    context: Context
    locale: str
    drafts_only: bool

    def write_derived(self, type_: Type, document_id: str, attribute: Attribute, links: Links) -> None:
        """Make the owners of a derived relation point at a document, or no longer."""
        owner = self.context.snapshot.schema.types[attribute.target or ""]
        owning = owner.attributes[attribute.mapped_by or ""]
        target = (type_.uid, document_id) if owning.morph else document_id
        current = self._owners(owner, owning, target)
        wanted = links.apply(current, to_many=attribute.to_many)
        for gone in (i for i in current if i not in wanted):
            self._relink(owner, owning, gone, remove=target)
        for come in (i for i in wanted if i not in current):
            self._relink(owner, owning, come, add=target)

    def take(self, type_: Type, document_id: str, attribute: Attribute, targets: tuple[Any, ...]) -> None:
        """One-to-one: whoever else points at one of the targets does so no more."""
        for target in targets:
            for other in self._owners(type_, attribute, target):
                if other != document_id:
                    self._relink(type_, attribute, other, remove=target)

    def _owners(self, type_: Type, attribute: Attribute, target: Any) -> tuple[str, ...]:
        status = edited_status(type_)
        locale = self._locale(type_)
        found = self.context.snapshot.linking(type_, attribute.name, target, locale, status)
        return tuple(document.document_id for document in found)

    def _locale(self, type_: Type) -> str:
        return self.locale if type_.localized else self.context.settings.default_locale

    def _relink(
        self, type_: Type, attribute: Attribute, document_id: str, *, add: Any = None, remove: Any = None
    ) -> None:
        """Add a target to a relation of another document, or take one from it."""
        context = self.context
        published, draft = context.versions(type_, document_id, self._locale(type_))
        only_draft = self.drafts_only and type_.draft_publish
        for document in (draft, None if only_draft and draft else published):
            if document is None:
                continue
            current = tuple(document.get(attribute.name))
            new = (
                _with(current, add, attribute)
                if add is not None
                else tuple(t for t in current if t != remove)
            )
            if new == current:
                continue
            changes = {attribute.name: encode(attribute, new)}
            if only_draft and document is published:  # a draft of its own, since only that is meant
                path = context.sibling(document.path, draft=True)
                context.changeset.put(path, context.changed(document, changes))
            else:
                context.touch(document, changes)


def _with(current: tuple[Any, ...], target: Any, attribute: Attribute) -> tuple[Any, ...]:
    if target in current:
        return current
    return (*current, target) if attribute.to_many else (target,)
