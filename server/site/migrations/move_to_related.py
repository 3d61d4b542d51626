"""The `move` migration to a related content type."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from server.documents.file_keys import is_marked_as_draft
from server.documents.path_rules import MARKDOWN, Layout
from server.documents.readers import READERS, InvalidValue
from server.errors import ConflictError, ValidationError
from server.formats.edits import REMOVE, is_same_value
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.schema.model import Attribute, Schema, Type
from server.site.configure import Configuration
from server.site.migrations.attributes import configure_after, keep_markdown_body, replace_references
from server.site.migrations.draft import AttributeMapping, Draft
from server.site.migrations.edits import Edits
from server.site.migrations.migration import Migration, require_attribute
from server.site.migrations.query_names import NewNames
from server.storage.read import parse


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    document_id: str
    locale: str
    draft: bool
    tree: Mapping[str, Tree]


@dataclass(slots=True)
class _Move:
    """A move of the attribute `name` from the type `source` to the type `target`.

    `relation` is the attribute that connects the two types. It is stored in the documents of the type
    `owner`.
    """

    source: Type
    target: Type
    name: str
    owner: Type
    relation: Attribute
    # the new value of each file of the target, and the file from which it comes
    values: dict[str, tuple[Tree, _File]] = field(default_factory=dict)

    @property
    def paths_from_source(self) -> tuple[tuple[str, ...], ...]:
        if self.owner is self.source:
            return ((self.relation.name, self.name),)
        inverse = self.relation.inversed_by
        return ((inverse, self.name),) if inverse else ()


def move_to_related(draft: Draft, migration: Migration, source: Type, target: Type, *, is_new: bool) -> None:
    """Move an attribute and its values to the documents of a related type."""
    before = draft.configuration()
    name = str(migration.arguments["attribute"]).rpartition(".")[2]
    move = _find_relation(before.schema, source, target, name, str(migration.arguments.get("via", "")))
    after = before
    if is_new:
        _edit_schemas(draft, before, move)
        draft.require_possible()
        after = configure_after(draft, before)
        keep_markdown_body(draft, target, after.schema, target.body)
        after = draft.configuration()
        draft.more_arguments["via"] = move.relation.name
    elif name in source.attributes or name not in target.attributes:
        return
    _find_values(draft, before, move, is_new=is_new)
    draft.require_possible()

    def removes(mapping: AttributeMapping) -> Edits:
        return Edits(values={(name,): REMOVE}) if name in mapping.values else Edits()

    def adds(mapping: AttributeMapping) -> Edits:
        found = move.values.get(mapping.path)
        return (
            Edits(values={(name,): deepcopy(found[0])}) if found and name not in mapping.values else Edits()
        )

    draft.edit_documents(before, after, source.uid, removes, (name,))
    draft.edit_documents(before, after, target.uid, adds, ())


def _find_relation(schema: Schema, source: Type, target: Type, name: str, via: str) -> _Move:
    found = [
        _Move(source, target, name, owner, attribute)
        for owner, other in ((source, target), (target, source))
        for attribute in owner.attributes.values()
        if attribute.type == "relation" and attribute.target == other.uid and not attribute.derived
        if via in ("", attribute.name)
    ]
    if not found:
        raise ValidationError(
            f"Neither {source.uid} nor {target.uid} holds the other as a single component, and no relation "
            "connects them; move the values with a script"
        )
    if len(found) > 1:
        names = ", ".join(f"{each.owner.singular}.{each.relation.name}" for each in found)
        raise ValidationError(f"Several relations connect {source.uid} and {target.uid}: {names}; "
                              "choose one with --via")  # fmt: skip
    return found[0]


def _edit_schemas(draft: Draft, before: Configuration, move: _Move) -> None:
    source, target, name = move.source, move.target, move.name
    require_attribute(source, name)
    attribute = source.attributes[name]
    if name in target.attributes:
        raise ValidationError(f'{target.uid} already has an attribute "{name}"')
    if attribute is move.relation or attribute.inversed_by or attribute.mapped_by:
        raise ValidationError(f"{source.uid}.{name} is a relation with another side, so it can't be moved")
    if name == source.body:
        raise ValidationError(f"{source.uid}.{name} is the body of Markdown files")
    replace_references(draft, before.schema, source, NewNames(source.uid, name, move.paths_from_source))
    raw: dict[str, Any] = dict(source.raw["attributes"][name])
    if not target.localized and isinstance(raw.get("pluginOptions"), dict):
        raw["pluginOptions"] = {key: value for key, value in raw["pluginOptions"].items() if key != "i18n"}
        if not raw["pluginOptions"]:
            del raw["pluginOptions"]
    draft.edit_configuration(source.path, Edits(values={("attributes", name): REMOVE}))
    draft.edit_configuration(target.path, Edits(values={("attributes", name): raw}))


# --- values ---------------------------------------------------------------------------------------


def _find_values(draft: Draft, before: Configuration, move: _Move, *, is_new: bool) -> None:
    layout = Layout(before.schema, before.settings)
    sources = list(_parsed_files(draft, layout, move.source))
    targets = list(_parsed_files(draft, layout, move.target))
    used = set[str]()
    for source, target in _file_pairs(move, sources, targets):
        value = source.tree.get(move.name)
        used.add(source.path)
        if is_null(value) or move.name not in source.tree:
            continue
        if move.name in target.tree and (is_new or not is_same_value(target.tree[move.name], value)):
            what = f'already contains the key "{move.name}"'
            draft.refuse(target.path, f"{what}, which {source.path} also has", "remove one of them",
                         (move.name,))  # fmt: skip
        known = move.values.setdefault(target.path, (value, source))
        if not is_same_value(known[0], value):
            what = (
                f'"{move.name}" has another value than in {known[1].path}, but both belong to {target.path}'
            )
            draft.refuse(source.path, what, "make them equal", (move.name,))
    kept = [source for source in sources if source.path in used]
    for source in sources:
        value = source.tree.get(move.name)
        if source.path in used or is_null(value):
            continue
        siblings = (each for each in kept if each.document_id == source.document_id)
        if not any(is_same_value(each.tree.get(move.name), value) for each in siblings):
            draft.add_loss(
                source.path, (move.name,), f'"{move.name}" has a value that no related document would get'
            )


def _parsed_files(draft: Draft, layout: Layout, type_: Type) -> Iterator[_File]:
    for path, claim in draft.document_files(layout, (type_.uid,)):
        try:
            tree = parse(path, draft.text(path), type_.body if path.endswith(MARKDOWN) else None)
        except (SyntaxProblem, ConflictError) as error:
            draft.refuse(path, error.message)
            continue
        own_id = tree.get("documentId")
        document_id = str(own_id) if isinstance(own_id, str) else claim.document_id
        is_draft = claim.draft or is_marked_as_draft(claim.type, claim.name, tree)
        yield _File(path, document_id, claim.locale, is_draft, tree)


def _file_pairs(move: _Move, sources: list[_File], targets: list[_File]) -> Iterator[tuple[_File, _File]]:
    """Yield pairs of files: a file of the source type, and a file of the target type that gets the value.

    If the target file is a draft, it gets the value of the source's draft or, if the source has no draft, the
    value of its published version.
    """
    by_id: dict[str, list[_File]] = {}
    for file in sources:
        by_id.setdefault(file.document_id, []).append(file)
    related = _related_source_ids(move, sources, targets)
    for target in targets:
        for document_id in sorted(related.get(target.document_id, ())):
            files = [
                file
                for file in by_id.get(document_id, ())
                if file.locale == target.locale or not (move.source.localized and move.target.localized)
            ]
            has_draft = {file.locale for file in files if file.draft}
            for file in files:
                if file.draft == target.draft or (target.draft and file.locale not in has_draft):
                    yield file, target


def _related_source_ids(move: _Move, sources: list[_File], targets: list[_File]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in sources if move.owner is move.source else targets:
        try:
            ids = READERS["relation"](file.tree.get(move.relation.name), move.relation)
        except InvalidValue:
            continue
        for other in ids or ():
            source, target = (file.document_id, str(other))
            if move.owner is move.target:
                source, target = target, source
            found.setdefault(target, set()).add(source)
    return found
