"""Inference of attributes from the pages of a group.

Values such as 1.10 or NO, which would change if parsed as a number or boolean, are treated as text.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from server.documents.encode import Reading, read_value
from server.documents.ids import id_of_name, id_of_reference
from server.documents.path_rules import MARKDOWN
from server.formats.tree import Tree, is_null
from server.schema.model import FILE_FIELDS, RESERVED_FIELDS, Attribute
from server.tools.init.groups import PageGroup, PageMember
from server.tools.init.kinds import (
    OWN_TEXTS,
    KeyValues,
    TypeProposal,
    propose_collection_type,
    propose_scalar_type,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# A key can become a relation if at least this share of its distinct values name documents.
MIN_RELATED_SHARE = 0.9
MAX_KEYS = 100  # Data files with more keys are treated as maps.


@dataclass(frozen=True)
class ProposedAttribute:
    """A proposed attribute. `file_count` is the number of files that contain a value for it."""

    name: str
    schema: Mapping[str, Any]
    file_count: int
    notes: tuple[str, ...] = ()


# names of documents, by the uid of their content type
DocumentIds = Mapping[str, frozenset[str]]


def propose_attributes(
    group: PageGroup, document_ids: DocumentIds, uid: str
) -> tuple[list[ProposedAttribute], ProposedAttribute | None]:
    """Return a content type's proposed attributes, and the one of them that collects all remaining keys.

    The second value is None if every key has its own attribute. `document_ids` maps each content type to the
    ids of its documents.
    """
    keys = Counter(key for m in group.members for key in m.page.tree)
    valid_keys = [key for key in keys if _NAME.fullmatch(key) and key not in RESERVED_FIELDS]
    if _are_maps(group, keys):
        valid_keys = [key for key in valid_keys if keys[key] * 2 > len(group.members) > 1]
    found = [_attribute(group, KeyValues.of(key, group.members), document_ids, uid) for key in valid_keys]
    if any(m.page.has_body for m in group.members):
        name = next(n for n in ("body", "content", "markdown", "text") if n not in keys)
        schema: dict[str, Any] = {"type": "richtext"}
        found.append(
            ProposedAttribute(
                name, schema, sum(m.page.has_body for m in group.members), ("the Markdown body",)
            )
        )
    if group.localized:
        found = [_mark_localized(group, each, (each.name,)) for each in found]
    others = [key for key in keys if key not in valid_keys and key not in FILE_FIELDS]
    if not others:
        return found, None
    rest = _catch_all_attribute(group, others, {*keys, *(each.name for each in found)})
    if group.localized:
        rest = _mark_localized(group, rest, others)
    return [*found, rest], rest


def _are_maps(group: PageGroup, keys: Mapping[str, int]) -> bool:
    # In a map, keys are entries (such as words) rather than attributes.
    files = len(group.members)
    if any(member.page.path.endswith(MARKDOWN) for member in group.members):
        return False
    return len(keys) > MAX_KEYS or (len(keys) > files > 1 and sum(keys.values()) < 0.5 * files * len(keys))


def _catch_all_attribute(
    group: PageGroup, others: Collection[str], used_names: Collection[str]
) -> ProposedAttribute:
    name = next(n for n in chain(("data", "extra"), map("data{}".format, count(2))) if n not in used_names)
    files = sum(any(key in member.page.tree for key in others) for member in group.members)
    shown = (
        f"{len(others)} keys that are not attributes: "
        if len(others) > 1
        else "a key that is not an attribute: "
    )
    return ProposedAttribute(name, {"type": "json"}, files, (shown + ", ".join(others),))


def _attribute(group: PageGroup, key: KeyValues, document_ids: DocumentIds, uid: str) -> ProposedAttribute:
    files = len(group.members)
    relation = _propose_relation(key, document_ids, uid)
    made = relation or propose_scalar_type(key) or propose_collection_type(key)
    schema: dict[str, Any] = dict(made[0])
    notes = list(made[1]) if relation else [*made[1], *_why_no_relation(key, document_ids)]
    wrong = _why_refused(schema, key)
    if wrong:
        schema, notes = {"type": "json"}, [f"not {schema['type']}: {wrong}"]
    if len(key.values) == files > 1 and all(v not in ("", []) for _, v in key.values):
        schema["required"] = True
    return ProposedAttribute(key.name, schema, len(key.values), tuple(notes))


def _why_refused(schema: Mapping[str, Any], key: KeyValues) -> str:
    options = {name: schema[name] for name in ("relation", "target") if name in schema}
    attribute = Attribute(key.name, schema["type"], enum=tuple(schema.get("enum", ())), **options)
    reading = Reading({}, "")
    for _, value in key.values:
        read_value(attribute, value, (), reading)
    return reading.mismatches[0].message if reading.mismatches else ""


def _propose_relation(key: KeyValues, document_ids: DocumentIds, uid: str) -> TypeProposal | None:
    entries = _entries(key)
    if key.name in OWN_TEXTS or not entries or not all(isinstance(entry, str) for _, entry in entries):
        return None
    distinct = {id_of_reference(str(entry)) for _, entry in entries}
    many = any(isinstance(value, list) for _, value in key.values)
    for target, known in sorted(document_ids.items(), key=lambda pair: not _alike(key.name, pair[0])):
        matched = len(distinct & known)
        own = target == uid and any(id_of_reference(str(e)) == id_of_name(m.name) for m, e in entries)
        numbers = all(entry.isdigit() for entry in distinct)
        certain = (matched >= 2 and not numbers) or (matched >= 1 and _alike(key.name, target))
        if certain and not own and matched >= MIN_RELATED_SHARE * len(distinct):
            lost = sorted(distinct - known - {""})
            notes = [f"→ {target.rpartition('.')[2]}"] + ([f"missing: {', '.join(lost[:3])}"] if lost else [])
            kind = "manyToMany" if many else "manyToOne"
            return {"type": "relation", "relation": kind, "target": target}, notes
    return None


def _why_no_relation(key: KeyValues, document_ids: DocumentIds) -> list[str]:
    texts = [id_of_reference(str(entry)) for _, entry in _entries(key) if isinstance(entry, str)]
    stays = "a list of strings" if any(isinstance(value, list) for _, value in key.values) else "text"
    for target, known in document_ids.items():
        lost = sum(text not in known for text in texts)
        if key.name not in OWN_TEXTS and _alike(key.name, target) and lost * 2 < len(texts):
            singular = target.rpartition(".")[2]
            return [f"remains {stays}: {lost:,} of {len(texts):,} values match no {singular}"]
    return []


def _entries(key: KeyValues) -> list[tuple[PageMember, Tree]]:
    return [(m, e) for m, v in key.values for e in (v if isinstance(v, list) else [v]) if not is_null(e)]


def _alike(name: str, target: str) -> bool:
    # `authors` and `relatedAuthors` suggest a relation to `author`.
    singular = target.rpartition(".")[2].replace("-", "").lower()
    bare = name.replace("-", "").replace("_", "").lower()
    return bare.removesuffix("s").endswith(singular.removesuffix("s"))


def _mark_localized(
    group: PageGroup, attribute: ProposedAttribute, keys: Collection[str]
) -> ProposedAttribute:
    """Return the attribute, marked as localized if its values differ between locales."""
    values: dict[str, list[Any]] = {}
    for member in group.members:
        values.setdefault(member.name, []).append([member.page.tree.get(key) for key in keys])
    body = any(note == "the Markdown body" for note in attribute.notes)
    own = body or any(value != of_document[0] for of_document in values.values() for value in of_document)
    if not own or attribute.schema["type"] in ("relation", "uid"):
        return attribute
    i18n = {"pluginOptions": {"i18n": {"localized": own}}}
    return ProposedAttribute(
        attribute.name, {**attribute.schema, **i18n}, attribute.file_count, attribute.notes
    )
