"""Writer that creates, updates and deletes the files of a document."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.ids import new_document_id
from server.documents.values import same_values
from server.errors import ConflictError, ForbiddenError, NotFoundError
from server.index.dangling import with_missing_targets
from server.index.effective_version import edited_status
from server.index.snapshot import Snapshot
from server.index.uniqueness import REPEATED_MESSAGE, TAKEN_MESSAGE, find_repeated_values, find_taken_values
from server.schema.model import Type
from server.write.body_values import default_of
from server.write.context import Context, Values, values_of
from server.write.draft_merge import AffectedVersions, plan_merge, write_draft, write_published
from server.write.faults import Fault, error_of_body
from server.write.new_file import unused_path, write_new
from server.write.owning_side import RelationWriter
from server.write.readable import ReadAccess
from server.write.request import Address
from server.write.shared_attributes import write_shared_values
from server.write.validate import Change, check

# Errors quote values of these types exactly as they are stored.
_QUOTED = (str, int, float, Decimal)


def single_type_document_id(snapshot: Snapshot, settings: Settings, type_: Type, locale: str) -> str | None:
    """Return the id of a single type's document, or None if there is no document.

    If documents in different locales have different ids, the one in `locale` is preferred.
    """
    status = edited_status(type_)
    for each in (locale, *settings.locales.available):
        for document in snapshot.list(type_, each, status).slice(0, 1):
            return document.document_id
    return None


@dataclass(frozen=True, slots=True)
class Writer:
    """Writer for one change to one document.

    If `hides_drafts` is set, the author may not read drafts, so writes do not publish them. If `access` is
    None, the author may read everything.
    """

    context: Context
    hides_drafts: bool = False
    access: ReadAccess | None = None

    @property
    def tells_private(self) -> bool:
        return self.access is None or self.access.private_values

    # --- operations ----------------------------------------------------------------------------

    def create(self, address: Address, change: Change) -> str:
        if address.document_id or address.type.kind == "singleType":
            self.context.require_served(address.type, address.document_id, (address.locale,))
        document_id = address.document_id or new_document_id()
        missing = (a for a in address.type.attributes.values() if a.name not in change.values)
        defaults = {a.name: default_of(a) for a in missing}
        values = self.values_after(address.type, document_id, defaults, change)
        self.require_valid(address, document_id, values, change, lambda _: True)
        path = unused_path(self.context, address, document_id, values)
        write_new(self.context, address, document_id, values, path)
        self._link_back(address, document_id, change, values)
        return document_id

    def put_single(self, address: Address, change: Change) -> str:
        document_id = self._single_id(address)
        if document_id is None:
            return self.create(address, change)
        if address.document_id not in (None, document_id):
            raise ConflictError(
                f"The {address.type.singular} document was created during this write; try again"
            )
        return self.update(replace(address, document_id=document_id), change)

    def base(self, address: Address) -> Document | None:
        if address.document_id is None and address.type.kind == "singleType":
            address = replace(address, document_id=self._single_id(address))
        return self._merge(address).base

    def replaced(self, address: Address) -> list[Document]:
        # The last version in the list is the one whose values the update changes.
        merge = self._merge(address)
        versions = (merge.base,) if address.draft else (merge.published, merge.draft)
        return [version for version in versions if version]

    def _merge(self, address: Address) -> AffectedVersions:
        published, draft = self.context.versions(address.type, address.document_id or "", address.locale)
        return plan_merge(published, draft, of_draft=address.draft, hides_drafts=self.hides_drafts)

    def update(self, address: Address, change: Change) -> str:
        """Change a version of a document, and return the document's id.

        If the document does not exist in this locale, the locale is added. Raises NotFoundError if the
        document does not exist in any locale.
        """
        document_id = address.document_id or ""
        merge = self._merge(address)
        published, hidden = merge.published, merge.hidden_draft
        if merge.base is None:
            self.context.require_served(address.type, document_id, (address.locale,))
            if hidden:
                raise ForbiddenError()  # This would publish a draft that the author is not allowed to see.
            self._add_locale(address, document_id, change)
            return document_id
        old = values_of(merge.base)
        new = self.values_after(address.type, document_id, old, change)
        touched = {*change.values, *change.links}
        # Publishing checks all values, but faults must not reveal values in a draft that the author is not
        # allowed to see.
        publishes = address.type.draft_publish and not address.draft
        whole = publishes or (merge.draft is not None and not self.hides_drafts)
        self.require_valid(address, document_id, new, change, lambda name: name in touched or whole)
        write = write_draft if address.draft else write_published
        guesses = self._guesses(address.type, change)
        mended = self.context.invalid_attributes(merge.base) & touched
        write(
            self.context, published, merge.draft, new, even_if_unchanged=bool(guesses), rewritten_names=mended
        )
        if hidden:
            values = self.values_after(address.type, document_id, values_of(hidden), change.lenient())
            write_draft(self.context, published, hidden, values, even_if_unchanged=bool(guesses))
        before = old if address.draft or published is None else values_of(published)
        changed = {n: v for n, v in new.items() if not (same_values(v, old[n]) and same_values(v, before[n]))}
        guessed = {n: new[n] for n in guesses & new.keys()}
        write_shared_values(self.context, address, document_id, {**guessed, **changed}, guesses)
        self._link_back(address, document_id, change, new)
        if address.type.draft_publish and not address.draft and not self.hides_drafts:
            self._publish_relations(address, document_id, change, new)
        return document_id

    def delete(self, address: Address, locales: tuple[str, ...]) -> str:
        """Delete a document's files in the given locales.

        Return the document's id, or "" if a single type has no document. Raises ConflictError if a file has
        an error.
        """
        document_id = address.document_id or self._single_id(address) or ""
        self.context.require_served(address.type, document_id or None, locales)
        for locale in locales:
            for status in (PUBLISHED, DRAFT):
                document = self.context.only_version(address.type, document_id, locale, status)
                if document:
                    self.context.remove(document)
        return document_id

    def _single_id(self, address: Address) -> str | None:
        return single_type_document_id(
            self.context.snapshot, self.context.settings, address.type, address.locale
        )

    def _guesses(self, type_: Type, change: Change) -> frozenset[str]:
        return self.access.guesses(type_, change.body) if self.access else frozenset()

    def _sees_drafts(self, type_: Type) -> bool:
        # Authors who can't see the written document's draft publish only the relations that they name.
        return not self.hides_drafts and (self.access is None or self.access.covers_target(type_))

    # --- values --------------------------------------------------------------------------------

    def values_after(self, type_: Type, document_id: str, old_values: Values, change: Change) -> Values:
        """Return `old_values` with `change` applied. Derived relations, which other documents store, are
        omitted.
        """
        new = {**old_values, **change.values}
        for name in (name for name in type_.attributes if name in change.links):
            attribute, links = type_.attributes[name], change.links[name]
            if not attribute.derived:
                stored = tuple(new.get(name) or ())
                sent = links.apply(stored, to_many=attribute.to_many)
                if links.set is not None:
                    sent = with_missing_targets(self.context.snapshot, attribute, stored, sent)
                new[name] = sent
            elif attribute.target == type_.uid:
                owning = type_.attributes[attribute.mapped_by or ""]
                target = (type_.uid, document_id) if owning.morph else document_id
                new[owning.name] = links.apply_to_same_document(
                    document_id, target, new[owning.name], owning.to_many
                )
        return new

    def require_valid(
        self,
        address: Address,
        document_id: str,
        values: Values,
        change: Change,
        is_checked: Callable[[str], bool],
    ) -> None:
        """Raise ValidationError if values are invalid or not unique, or if the request body has faults."""
        faults = check(address.type, values, change.faults, is_checked, address.draft)
        if not address.draft:
            table = self.context.snapshot.tables[address.type.uid]
            row = [values[name] for name in address.type.attributes]
            conflicts = find_taken_values(table, address.type, row, document_id, address.locale, is_checked)
            faults += [Fault(path, TAKEN_MESSAGE) for path, _ in conflicts]
            repeated = (path for path in find_repeated_values(address.type, row) if is_checked(str(path[0])))
            faults += [Fault(path, REPEATED_MESSAGE) for path in repeated]
        if faults:
            body = {**self._quotable(address.type, values), **change.body}
            raise error_of_body(faults, self.context.snapshot.schema, address.type, body)

    def _quotable(self, type_: Type, values: Values) -> Values:
        return {
            name: value
            for name, value in values.items()
            if isinstance(value, _QUOTED) and (self.tells_private or type_.attributes[name].visible)
        }

    # --- other files ---------------------------------------------------------------------------

    def _add_locale(self, address: Address, document_id: str, change: Change) -> None:
        # Copies the values that all locales share.
        other = self._other_locale(address, document_id)
        if other is None:
            locales = self.context.settings.locales
            self.context.require_served(address.type, document_id, (locales.default, *locales.available))
            raise NotFoundError()
        attributes = address.type.attributes.values()
        shared = {a.name for a in attributes if not a.localized}
        changed_values = {n: v for n, v in change.values.items() if v is not None or n not in shared}
        change = replace(change, values=changed_values)
        values = {a.name: default_of(a) for a in attributes if a.name not in shared}
        other_values = values_of(other)
        values.update({name: other_values[name] for name in shared})
        values = self.values_after(address.type, document_id, values, change)
        self.require_valid(address, document_id, values, change, lambda _: True)
        # If drafts are marked by a key in the file, their file names do not differ.
        draft = address.draft and not address.type.draft_key
        path = self.context.sibling(other.path, draft=draft, locale=address.locale)
        write_new(self.context, address, document_id, values, path)
        changed = {n: values[n] for n in change.values if not same_values(values[n], other_values[n])}
        guesses = self._guesses(address.type, change)
        guessed = {n: values[n] for n in guesses & values.keys() & change.values.keys()}
        write_shared_values(self.context, address, document_id, {**guessed, **changed}, guesses)
        self._link_back(address, document_id, change, values)

    def _other_locale(self, address: Address, document_id: str) -> Document | None:
        # Returns a version in another locale, preferably with the same status.
        locales = (self.context.settings.locales.default, *self.context.settings.locales.available)
        versions = [
            self.context.versions(address.type, document_id, locale)
            for locale in (locales if address.type.localized else ())
        ]
        drafts, live = [d or p for p, d in versions], [p for p, _ in versions]
        if address.draft:
            return next(filter(None, drafts), None)
        return next(filter(None, live if self.hides_drafts else [*live, *drafts]), None)

    def _link_back(self, address: Address, document_id: str, change: Change, values: Values) -> None:
        # Updates other documents' files.
        relation_writer = RelationWriter(self.context, address.locale, address.draft, self._sees_drafts)
        for name, links in change.links.items():
            attribute = address.type.attributes[name]
            if attribute.derived:
                for locale, part in change.by_locale.get(name, {address.locale: links}).items():
                    relation_writer = relation_writer.next_step(locale)
                    relation_writer.update_derived_relation(address.type, document_id, attribute, part)
            elif attribute.relation in ("oneToOne", "oneToMany") and attribute.inversed_by:
                relation_writer = relation_writer.next_step(address.locale)
                relation_writer.take(address.type, document_id, attribute, values[name])

    def _publish_relations(self, address: Address, document_id: str, change: Change, values: Values) -> None:
        relation_writer = RelationWriter(self.context, address.locale, False, self._sees_drafts)
        for attribute in address.type.attributes.values():
            if attribute.type != "relation" or attribute.name in change.links:
                continue
            relation_writer = relation_writer.next_step(address.locale)
            if attribute.derived:
                relation_writer.publish_derived_relation(address.type, document_id, attribute)
            elif attribute.relation == "oneToOne" and attribute.inversed_by:
                relation_writer.take(address.type, document_id, attribute, values[attribute.name])
