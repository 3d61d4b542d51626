"""A change of a document → the texts of the files that it touches (design: a write touches only what
changed). Nothing is written here: the files are collected in a changeset, and `site` commits them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from server.documents.constraints import unique_values
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.encode import changed_keys, encode_attributes
from server.documents.ids import new_document_id
from server.documents.layout import ENDINGS, Claim
from server.documents.values import Path
from server.errors import ConflictError, NotFoundError
from server.formats.edit_yaml import REMOVE
from server.formats.tree import Plain
from server.schema.model import Type
from server.storage.document_text import new_text
from server.write.context import Values, Versions, values_of
from server.write.relations import Relinker
from server.write.validate import Change, check_published, default_of, not_unique

NAME_BYTES = 120
_FORMATS: Mapping[str, str] = {"md": ".md", "json": ".json", "yaml": ".yaml"}
_FORBIDDEN = frozenset('/\\:*?"<>|')


@dataclass(frozen=True, slots=True)
class Place:
    """Which version of a document a request writes."""

    type: Type
    document_id: str | None
    locale: str
    draft: bool


@dataclass(frozen=True, slots=True)
class Writer:
    """Prepares one change of one document."""

    versions: Versions

    # --- the three things that can be done -----------------------------------------------------

    def create(self, place: Place, change: Change) -> str:
        """A new document; returns its id."""
        document_id = place.document_id or new_document_id()
        defaults = {a.name: default_of(a) for a in place.type.attributes.values()}
        values = self._merged(place.type, defaults, change)
        self._check(place, document_id, values, lambda _: True)
        self._new_file(place, document_id, values, self.free_name(place, document_id, values))
        self._link_back(place, document_id, change, values)
        return document_id

    def put_single(self, place: Place, change: Change) -> str:
        """New values for the document of a single type, which is made where there is none."""
        document_id = self._single_id(place)
        if document_id is None:
            return self.create(place, change)
        return self.update(replace(place, document_id=document_id), change)

    def update(self, place: Place, change: Change) -> str:
        """New values for a version of a document that exists in some locale; NotFoundError else."""
        document_id = place.document_id or ""
        published, draft = self.versions.of(place.type, document_id, place.locale)
        base = draft or published
        if base is None:
            self._add_locale(place, document_id, change)
            return document_id
        old = values_of(base)
        new = self._merged(place.type, old, change)
        touched = {*change.values, *change.links}
        self._check(place, document_id, new, lambda name: name in touched or draft is not None)
        if place.draft:
            self._write_draft(base, published, draft, old, new)
        else:
            self._write_published(base, published, draft, old, new)
        self._share(place, document_id, new)
        self._link_back(place, document_id, change, new)
        return document_id

    def delete(self, place: Place) -> None:
        """No more files of a document in a locale (`*`: in any); without an id, of a single type."""
        document_id = place.document_id or self._single_id(place) or ""
        locales = self.versions.settings.locales if place.locale == "*" else (place.locale,)
        for locale in locales:
            for status in (PUBLISHED, DRAFT):
                key = (place.type.uid, document_id, locale, status)
                for document in self.versions.snapshot.claims.get(key, ()):
                    self.versions.changeset.delete(document.path)

    def _single_id(self, place: Place) -> str | None:
        """The id of a single type's document, in the place's locale or else in any."""
        snapshot = self.versions.snapshot
        status = DRAFT if place.type.draft_publish else PUBLISHED
        for locale in (place.locale, *self.versions.settings.locales):
            for document in snapshot.list(place.type, locale, status).slice(0, 1):
                return document.document_id
        return None

    # --- values --------------------------------------------------------------------------------

    def _merged(self, type_: Type, old: Values, change: Change) -> Values:
        """The values after a change; relations of the other side keep none of their own."""
        new = {**old, **change.values}
        for name, links in change.links.items():
            attribute = type_.attributes[name]
            if not attribute.derived:
                new[name] = links.apply(tuple(old.get(name) or ()), to_many=attribute.to_many)
        return new

    def _check(self, place: Place, document_id: str, values: Values, only: Callable[[str], bool]) -> None:
        """Hold values against the options of a type, and unique ones against all other documents."""
        if place.draft:
            return
        check_published(place.type, values, only)
        row = [values[name] for name in place.type.attributes]
        taken = [
            path
            for path, value in unique_values(place.type, row)
            if only(str(path[0])) and self._taken(place, document_id, path, value)
        ]
        if taken:
            raise not_unique(taken)

    def _taken(self, place: Place, document_id: str, path: Path, value: Any) -> bool:
        """Whether another document of the type has a value at a path, in the same locale."""
        others = self.versions.snapshot.having(place.type, path, value, place.locale)
        return any(other.document_id != document_id for other in others)

    # --- versions --------------------------------------------------------------------------------

    def _write_draft(
        self, base: Document, published: Document | None, draft: Document | None, old: Values, new: Values
    ) -> None:
        changes = changed_keys(base.type, old, new)
        if not changes:
            return
        timestamps: Values = {"updatedAt": Plain(self.versions.now)}
        if draft is None and published is not None:
            timestamps["createdAt"] = Plain(base.get("createdAt"))
            timestamps["publishedAt"] = REMOVE
        text = self.versions.changed(base, {**changes, **timestamps})
        self.versions.changeset.put(
            draft.path if draft else self.versions.sibling(base.path, draft=True), text
        )

    def _write_published(
        self, base: Document, published: Document | None, draft: Document | None, old: Values, new: Values
    ) -> None:
        changes = changed_keys(base.type, old, new)
        if not changes and draft is None and published is not None:
            return
        timestamps = self._timestamps(published or base, published=base.type.draft_publish)
        text = self.versions.changed(base, {**changes, **timestamps})
        target = self.versions.sibling(base.path, draft=False) if draft else base.path
        if published and PurePosixPath(published.path).suffix == PurePosixPath(base.path).suffix:
            target = published.path
        elif published:
            self.versions.changeset.delete(published.path)
        self.versions.changeset.put(target, text)
        if draft:
            self.versions.changeset.delete(draft.path)

    def _timestamps(self, document: Document, *, published: bool) -> Values:
        """The timestamps that a written version's file says."""
        timestamps: Values = {
            "createdAt": Plain(document.get("createdAt")),
            "updatedAt": Plain(self.versions.now),
        }
        if published:
            timestamps["publishedAt"] = Plain(self.versions.now)
        return timestamps

    # --- new files -----------------------------------------------------------------------------

    def _new_file(self, place: Place, document_id: str, values: Values, path: str) -> None:
        type_ = place.type
        trees = encode_attributes(type_, [values[name] for name in type_.attributes])
        claim = self.versions.layout.claim(path)
        if claim is None or claim.document_id != document_id:
            trees["documentId"] = document_id
        trees["createdAt"] = trees["updatedAt"] = Plain(self.versions.now)
        if type_.draft_publish and not place.draft:
            trees["publishedAt"] = Plain(self.versions.now)
        self.versions.changeset.put(path, new_text(path, type_.body, trees))

    def free_name(self, place: Place, document_id: str, values: Values) -> str:
        """The path of a new document: named after its uid attribute, else after its id."""
        uid = next((values[a.name] for a in place.type.attributes.values() if a.type == "uid"), None)
        name = place.type.singular if place.type.kind == "singleType" else document_id
        if isinstance(uid, str) and _is_name(uid) and place.type.kind != "singleType":
            name = uid
        ending = _FORMATS[place.type.format]
        for candidate in (name, f"{name}-{document_id}"):
            claim = Claim(place.type, candidate, place.locale, place.draft)
            path = self.versions.layout.path_of(claim, ending)
            free = place.type.kind == "singleType" or not self._claimed(claim)
            if free and self.versions.layout.claim(path) == claim:
                return path
        raise ConflictError(f"there is no free name for a document at {path}")

    def _claimed(self, claim: Claim) -> bool:
        """Whether some file has a name already, in any locale, status and format."""
        for locale in self.versions.settings.locales if claim.type.localized else (claim.locale,):
            for draft in (False, True):
                path = self.versions.layout.path_of(Claim(claim.type, claim.name, locale, draft), "")
                stem = path if not claim.type.files else path.rpartition(".")[0]
                if any(self.versions.changeset.exists(stem + ending) for ending in ENDINGS):
                    return True
        return False

    # --- locales -------------------------------------------------------------------------------

    def _add_locale(self, place: Place, document_id: str, change: Change) -> None:
        """A document's first version in a locale, with what its locales share."""
        other = self._any_version(place, document_id)
        if other is None:
            raise NotFoundError()
        values = {a.name: default_of(a) for a in place.type.attributes.values()}
        theirs = values_of(other)
        values.update({a.name: theirs[a.name] for a in place.type.attributes.values() if not a.localized})
        values = self._merged(place.type, values, change)
        self._check(place, document_id, values, lambda _: True)
        path = self.versions.sibling(other.path, draft=place.draft, locale=place.locale)
        if self.versions.changeset.exists(path):
            raise ConflictError(f"{path} is there already, and is not this document")
        self._new_file(place, document_id, values, path)
        self._share(place, document_id, values)
        self._link_back(place, document_id, change, values)

    def _any_version(self, place: Place, document_id: str) -> Document | None:
        locales = (self.versions.settings.default_locale, *self.versions.settings.locales)
        for locale in locales if place.type.localized else ():
            published, draft = self.versions.of(place.type, document_id, locale)
            if draft or published:
                return draft or published
        return None

    def _share(self, place: Place, document_id: str, new: Values) -> None:
        """Give every other locale the values of attributes that are not localised.

        What is a draft is shared with drafts only, until it is published.
        """
        if not place.type.localized:
            return
        for locale in self.versions.settings.locales:
            if locale == place.locale:
                continue
            published, draft = self.versions.of(place.type, document_id, locale)
            for document in (draft, None if place.draft else published):
                if document is not None:
                    self._share_with(document, new)

    def _share_with(self, document: Document, new: Values) -> None:
        old = values_of(document)
        shared = {
            name: new[name] if not a.localized else old[name] for name, a in document.type.attributes.items()
        }
        changes = changed_keys(document.type, old, shared)
        if changes:
            self.versions.touch(document, changes)

    def _link_back(self, place: Place, document_id: str, change: Change, values: Values) -> None:
        """Write relations where they are stored, and take targets that only one may have."""
        relinker = Relinker(self.versions, place.locale, place.draft)
        for name, links in change.links.items():
            attribute = place.type.attributes[name]
            if attribute.derived:
                relinker.write_derived(place.type, document_id, attribute, links)
            elif attribute.relation == "oneToOne" and attribute.inversed_by:
                relinker.take(place.type, document_id, attribute, values[name])


def _is_name(text: str) -> bool:
    """Whether a uid can be a file's name on every system."""
    return (
        0 < len(text.encode()) <= NAME_BYTES
        and not text.startswith((".", "-", "#"))
        and not text.endswith((".", "~", " "))
        and not _FORBIDDEN & set(text)
        and text.isprintable()
    )
