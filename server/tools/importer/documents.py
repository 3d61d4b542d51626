"""Conversion of imported document versions to the values that are stored in files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from server.config.model import Settings
from server.documents.encode import Reading, encode_attributes, read_attributes
from server.documents.timestamps import read_timestamp
from server.formats.tree import Plain, Tree
from server.schema.model import Attribute, Schema, Type
from server.tools.importer.source import ImportNotes, Source, SourceVersion
from server.write.body_values import default_of
from server.write.write_timestamps import known_timestamps

SourceKey = tuple[str, str, str]  # (uid, documentId, locale)


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """A document version to write to a file.

    `provided` contains the names of the attributes that are present in the source.
    """

    type: Type
    document_id: str
    locale: str
    draft: bool
    values: Mapping[str, Any]
    provided: frozenset[str]
    timestamps: Mapping[str, Plain]

    def trees(self) -> dict[str, Tree]:
        return encode_attributes(self.type, [self.values[name] for name in self.type.attributes])


def target_versions(
    source: Source, schema: Schema, settings: Settings, notes: ImportNotes
) -> Iterator[list[TargetVersion]]:
    """Yield the versions of each document as a list. The first version determines the file name."""
    versions = [v for v in source.versions if v.uid in schema.types]
    published = {_key(v, settings) for v in versions if not v.draft}
    for group in _group_versions(versions).values():
        made = []
        for version in sorted(group, key=lambda v: _rank(v, settings)):
            published_version = _counterpart(version, group)
            if (
                version.draft
                and published_version
                and _equals_published(schema, version, published_version, published, settings)
            ):
                continue
            # If the draft is the same, use its values, because its relations include documents that exist
            # only as drafts.
            draft = None if version.draft else _counterpart(version, group)
            same = draft is not None and _equals_published(schema, draft, version, published, settings)
            tree = draft.tree if draft is not None and same else version.tree
            made.append(_read(version, tree, schema, settings, notes))
        yield made


def _group_versions(versions: Iterable[SourceVersion]) -> dict[tuple[str, str], list[SourceVersion]]:
    groups: dict[tuple[str, str], list[SourceVersion]] = {}
    for version in versions:
        groups.setdefault((version.uid, version.document_id), []).append(version)
    return groups


def _rank(version: SourceVersion, settings: Settings) -> tuple[bool, int, bool]:
    # Sort key: the default locale and published versions come first.
    known = version.locale in settings.locales.available
    number = settings.locales.available.index(version.locale) if known else 0
    return (version.locale not in ("", settings.locales.default), number, version.draft)


def _key(version: SourceVersion, settings: Settings) -> SourceKey:
    return (version.uid, version.document_id, version.locale or settings.locales.default)


def _counterpart(version: SourceVersion, group: Sequence[SourceVersion]) -> SourceVersion | None:
    return next((v for v in group if v.locale == version.locale and v.draft != version.draft), None)


def _equals_published(
    schema: Schema,
    draft: SourceVersion,
    published_version: SourceVersion,
    published_keys: set[SourceKey],
    settings: Settings,
) -> bool:
    def pruned(tree: Mapping[str, Tree], type_: Type) -> dict[str, Tree]:
        return {name: value(tree.get(name), a) for name, a in type_.attributes.items()}

    def value(tree: Tree, a: Attribute) -> Tree:
        if a.type == "relation" and a.target and isinstance(tree, str | list):
            targets = tree if isinstance(tree, list) else [tree]
            return [t for t in targets if _is_shown(a.target, str(t))]
        if a.type == "component" and tree:
            inner = schema.types[a.component or ""]
            return [pruned(i, inner) for i in tree] if isinstance(tree, list) else pruned(tree, inner)
        if a.type == "dynamiczone" and tree:
            uids = [str(item["__component"]) for item in tree]
            return [
                (uid, pruned(item, schema.types[uid])) if uid in schema.types else (uid, item)
                for uid, item in zip(uids, tree, strict=True)
            ]
        return tree

    def _is_shown(uid: str, document_id: str) -> bool:
        target = schema.types.get(uid)
        if target is None or not target.draft_publish:
            return True
        locale = draft.locale or settings.locales.default if target.localized else settings.locales.default
        return (uid, document_id, locale) in published_keys

    type_ = schema.types[draft.uid]
    return pruned(draft.tree, type_) == pruned(published_version.tree, type_)


def _read(
    version: SourceVersion, tree: Mapping[str, Tree], schema: Schema, settings: Settings, notes: ImportNotes
) -> TargetVersion:
    type_ = schema.types[version.uid]
    locale = version.locale if type_.localized and version.locale else settings.locales.default
    reading = Reading(schema.types, "")
    provided = {name: t for name, t in tree.items() if name in type_.attributes and t is not None}
    values = dict(zip(type_.attributes, read_attributes(type_, provided, (), reading), strict=True))
    for name, attribute in type_.attributes.items():
        # If the source contains null, store null instead of the attribute's default.
        if tree.get(name, "") is None:
            values[name] = () if isinstance(values[name], tuple) else None
        elif name not in tree:
            values[name] = default_of(attribute)
    for wrong in reading.mismatches:
        where = ".".join(map(str, wrong.path))
        notes.add(version.uid, f"{version.document_id}: {where} {wrong.message}; the import leaves it out")
    published = read_timestamp(version.published) if version.published and not version.draft else None
    return TargetVersion(
        type_,
        version.document_id,
        locale,
        version.draft,
        values,
        frozenset(tree) & type_.attributes.keys(),
        known_timestamps(read_timestamp(version.created), read_timestamp(version.updated), published),
    )
