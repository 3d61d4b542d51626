"""Merging of a change with other changes made since the client read the document."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from server.documents.document import Document
from server.documents.three_way_merge import Conflict, merge
from server.documents.values import same_values
from server.errors import LimitError, OverlapError, UnknownVersionError, ValidationError
from server.schema.model import Type
from server.storage.git.tree import merge_text
from server.write.context import Context, Values, values_of
from server.write.faults import error_of_body
from server.write.precondition import matches_document, version_of
from server.write.relation_input import Links, Target
from server.write.request import Address, WriteRequest
from server.write.validate import Change
from server.write.write import Writer

Targets = tuple[Target, ...]
SIDES = ("base", "ours", "theirs")


def earlier_version(if_match: str, current: Document, address: Address, context: Context) -> Document:
    for document in _versions_shown(current, address, context):
        if matches_document(if_match, document):
            return document
    raise UnknownVersionError(details={"version": version_of(current)})


def _versions_shown(current: Document, address: Address, context: Context) -> Iterator[Document]:
    # These are the versions that earlier GET requests for this address could have returned.
    published, _ = context.versions(current.type, current.document_id, current.locale)
    recent = context.find_recent(current.type, current.document_id, current.locale)
    for document in (*filter(None, [published]), *recent):
        if document.status == address.status:
            yield document
        elif address.draft:
            yield document.as_draft()


def rebase(
    request: WriteRequest,
    writer: Writer,
    change: Change,
    base_version: Document,
    new_versions: list[Document] | None = None,
) -> Change:
    """Return `change`, merged with the changes between `base_version` and `new_versions`.

    By default, `new_versions` are the versions that the write would replace. Raises OverlapError if the
    changes conflict, or ValidationError if `change` has faults.
    """
    if change.faults:
        raise error_of_body(change.faults, writer.context.snapshot.schema, base_version.type, change.body)
    type_, base = base_version.type, values_of(base_version)
    address = replace(request.address, type=type_, document_id=base_version.document_id)
    values, current, by_id = (
        writer.values_after(type_, base_version.document_id, base, change),
        base_version,
        True,
    )
    replaced = new_versions or writer.replaced(address)
    for current in replaced:
        merged = merge(type_, base, values, values_of(current), merge_text, ids_match=by_id)
        if merged.conflicts:
            versions = (base_version, base_version.with_values(values), current)
            shown = replaced[0].as_draft() if address.draft else replaced[0]
            details = _overlapping(request, writer.context, merged.conflicts, versions)
            raise OverlapError(details={"version": version_of(shown), "conflicts": details})
        # Compare ids only in the first merge, because only the request body can contain ids from the earlier
        # version.
        values, by_id = merged.values or values, False
    return _as_change(change, type_, values, values_of(current))


def _as_change(change: Change, type_: Type, values: Values, current: Values) -> Change:
    own = {name: a for name, a in type_.attributes.items() if not a.derived}
    changed = {name for name in own if not same_values(values[name], current[name])} | {*change.values}
    links = dict(change.links)
    for name in (changed | links.keys()) & own.keys():
        attribute = own[name]
        if attribute.type == "relation" and not _leads_to(
            links.get(name, Links()), current[name], values[name], to_many=attribute.to_many
        ):
            links[name] = Links(set=values[name])
    kept = {name: values[name] for name in changed if own[name].type != "relation"}
    return replace(change, values=kept, links=links)


def _leads_to(links: Links, current: Targets, targets: Targets, *, to_many: bool) -> bool:
    try:
        return links.apply(current, to_many=to_many) == targets
    except ValidationError:  # The position refers to a missing target.
        return False


def _overlapping(
    request: WriteRequest,
    context: Context,
    conflicts: Iterable[Conflict],
    versions: tuple[Document, Document, Document],
) -> list[dict[str, Any]]:
    # Each conflict has the values that the caller is allowed to see, unless they are too large.
    paths: dict[str, list[list[str]]] = {}
    for conflict in conflicts:
        paths.setdefault(str(conflict.path[0]), []).append([str(part) for part in conflict.path])
    try:
        shown = [request.show(context.snapshot, version, paths.keys()) for version in versions]
    except LimitError:
        return [{"attribute": name, "tooLarge": True} for name in paths]
    rows: list[dict[str, Any]] = []
    for name, inside in paths.items():
        row: dict[str, Any] = {"attribute": name}
        if all(name in side for side in shown):
            sides = {side: values[name] for side, values in zip(SIDES, shown, strict=True)}
            row |= {"paths": inside, **sides}
        rows.append(row)
    return rows
