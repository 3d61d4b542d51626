"""Checks for differences that a row in docs/differences.md explains and that no pattern can describe."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.differential.difference import Difference
from bench.differential.model import LOCALES, hidden
from bench.differential.request import GET, Answer, Request
from bench.differential.shapes import Shapes
from bench.differential.world import World

_NAME = re.compile(r"doc:([^»\s]+)")


@dataclass(frozen=True, slots=True)
class Context:
    """The requests that led to a difference, and both responses to the last one."""

    requests: Sequence[Request]
    theirs: Answer
    ours: Answer
    shapes: Shapes
    world: World
    names: Mapping[str, str]  # names of documents, by Bifolio's documentId
    their_names: Mapping[str, str]  # names of documents, by Strapi's documentId

    @property
    def write(self) -> Request | None:
        first = self.requests[0]
        return first if first.method in ("POST", "PUT", "DELETE") else None


def other_version(context: Context, found: Difference) -> bool:
    """Return whether the difference is in a version that was not written. If there was no write, return
    whether the document has more than one version.
    """
    write = context.write
    if write is None:
        document = context.world.documents.get(_name(context, found).removeprefix("doc:"))
        return document is not None and len(document.versions) > 1
    wrote, read = dict(write.query), dict(context.requests[-1].query)
    locale = found.holder.get("locale", LOCALES[0])
    return (locale, read.get("status", "published")) != (
        wrote.get("locale", LOCALES[0]),
        wrote.get("status", "published"),
    )


def other_document(context: Context, found: Difference) -> bool:
    """Return whether the difference is in a document that was not written."""
    write = context.write
    if write is None:
        return False
    named = _NAME.search(write.path)
    return named is None or _name(context, found) != f"doc:{named[1]}"


def _name(context: Context, found: Difference) -> str:
    return context.names.get(str(found.holder.get("documentId")), "")


def other_locale_there(context: Context, found: Difference) -> bool:
    if isinstance(found.theirs, dict):
        name = context.their_names.get(str(found.theirs.get("documentId")), "")
        return _is_elsewhere(context, name, found.theirs.get("locale"))
    extra = [label for label in found.theirs or () if label not in (found.ours or ())]
    parts = (str(label).partition(" ") for label in extra)
    return bool(extra) and all(_is_elsewhere(context, name, locale) for name, _, locale in parts)


def _is_elsewhere(context: Context, name: str, locale: str | None) -> bool:
    query = dict(context.requests[-1].query)
    asked = query.get("locale", LOCALES[0])
    if locale:
        return locale != asked
    document = context.world.documents.get(name.removeprefix("doc:"))
    return document is not None and (asked, query.get("status", "published")) not in document.versions


def sorted_by(context: Context, found: Difference) -> bool:
    name = found.where.rpartition(".")[2]
    query = context.requests[-1].query
    sorts = [f"{key} {value}" for key, value in query if re.search(r"(^|\[)sort", key)]
    return any(name in re.findall(r"\w+", text) for text in sorts)


def has_ambiguous_order(context: Context, found: Difference) -> bool:
    """Return whether the list may have both orders: there is no sort key, or the values are equal."""
    names = [name.removesuffix("[]") for name in found.where.split(".")]
    steps = [rf"\[{name}\](\[on\]\[[^\]]*\])?" for name in names if name not in ("data", "attributes", "")]
    sort = re.compile("populate" + r"\[populate\]".join(steps) + r"\[sort\]")
    keys = [
        (key[found_sort.end() :], value)
        for key, value in context.requests[-1].query
        if (found_sort := sort.match(key))
    ]
    return not keys or _equal_where_it_differs(found, keys)


def _equal_where_it_differs(found: Difference, keys: Sequence[tuple[str, str]]) -> bool:
    # Both orders are correct if they agree on the attributes in the sort keys.
    *_, name = (part.removesuffix("[]") for part in found.where.removesuffix(".data").split("."))
    inner = found.holder.get("attributes", found.holder).get(name)
    items = inner.get("data") if isinstance(inner, dict) else inner
    words = [word for key, value in keys for word in re.findall(r"[A-Za-z_]\w*", f"{key} {value}")]
    names = [word for word in words if word.lower() not in ("asc", "desc")]
    if not isinstance(items, list) or len(found.ours) != len(items):
        return False
    shown = [item.get("attributes", item) for item in items]
    if not all(name in item for item in shown for name in names):
        return False
    by_label = {label: [item[name] for name in names] for label, item in zip(found.ours, shown, strict=True)}
    return [by_label.get(label) for label in found.theirs] == [by_label[label] for label in found.ours]


def was_related_from_other_side(context: Context, found: Difference) -> bool:
    """Return whether all targets that only Bifolio returns refer to the document themselves."""
    holder, only_here = _name(context, found), _only_here(context, found)
    return bool(holder and only_here) and all(_relates(context, name, holder) for name in only_here)


def is_target_of_a_draft(context: Context, found: Difference) -> bool:
    """Return whether another document, which has a draft, refers to the target that only Bifolio returns."""
    name = found.where.removesuffix(".data").rpartition(".")[2]
    related = f"«{''.join(_only_here(context, found))}»"
    holder = context.world.documents.get(_name(context, found).removeprefix("doc:"))
    return holder is not None and any(
        other is not holder
        and related in str(other.said.get(name))
        and any(status == "draft" for _, status in other.versions)
        for other in context.world.of(holder.uid)
    )


def have_several_versions(context: Context, found: Difference) -> bool:
    """Return whether all targets that only Bifolio returns have more than one version."""
    only_here = _only_here(context, found)
    documents = [context.world.documents.get(name.removeprefix("doc:")) for name in only_here]
    return bool(documents) and all(d is not None and len(d.versions) > 1 for d in documents)


def was_related_again(context: Context, found: Difference) -> bool:
    """Return whether the target that only Strapi returns was related to another document afterwards."""
    holder = context.world.documents.get(_name(context, found).removeprefix("doc:"))
    name = context.their_names.get(_document_id(found.theirs), "")
    related = context.world.documents.get(name.removeprefix("doc:"))
    if holder is None or related is None or len(related.versions) < 2:
        return False
    attribute = found.where.removesuffix(".data").rpartition(".")[2]
    relation = context.world.type_of(holder).attributes.get(attribute, {})
    said = str(related.said.get(str(relation.get("inversedBy"))) or holder.reference)
    return holder.reference not in said


def _document_id(shown: Mapping[str, Any]) -> str:
    inner = shown if "documentId" in shown else shown.get("data")
    return str(inner.get("documentId")) if isinstance(inner, Mapping) else ""


def _only_here(context: Context, found: Difference) -> list[str]:
    if isinstance(found.ours, dict):
        return [context.names.get(_document_id(found.ours), "")]
    if not isinstance(found.ours, list) or not isinstance(found.theirs, list):
        return []
    there = {str(label).partition(" ")[0] for label in found.theirs}
    return [name for label in found.ours if (name := str(label).partition(" ")[0]) not in there]


def _relates(context: Context, name: str, holder: str) -> bool:
    document = context.world.documents.get(name.removeprefix("doc:"))
    said = [document.said if document else {}, context.write.body if context.write else {}]
    number = holder.replace("doc:", "«id:")
    return f"«{holder}»" in str(said) or f"{number}:" in str(said)


def key_of_a_morph_relation(context: Context, found: Difference) -> bool:
    """Return whether Strapi rejects the value of a morph relation."""
    # Strapi rejects any value for a to-one relation, and null for a to-many relation. A value that was copied
    # from a response counts as null.
    write = context.requests[0]
    head = "/".join(write.path.split("/")[:3])
    type_ = next((t for t in context.world.model.types.values() if t.path == head), None)
    name = str((context.theirs.body["error"].get("details") or {}).get("path"))
    relation = type_.attributes.get(name, {}).get("relation") if type_ else None
    data = write.body.get("data") if isinstance(write.body, dict) else None
    value = data.get(name) if isinstance(data, dict) else None
    is_null = value is None or (isinstance(value, dict) and GET in value)
    return relation == "morphToOne" or (relation == "morphToMany" and is_null)


def differs_in_repetition(context: Context, found: Difference) -> bool:
    """Return whether the servers differ only in how often they report an error."""
    return bool(found.theirs == found.ours)


def matches_hidden_values(context: Context, found: Difference) -> bool:
    """Return whether `_q` matches an id, a locale or a private value in each document that only Strapi
    finds.
    """
    word = dict(context.requests[-1].query)["_q"].lower()
    there, here = context.theirs.data or [], context.ours.data or []
    if not isinstance(there, list) or not isinstance(here, list):
        return False
    shown = {context.names.get(document["documentId"]) for document in here}
    documents = [item for item in there if context.their_names.get(item["documentId"]) not in shown]
    return bool(documents) and all(
        any(word in str(text).lower() for text in _hidden(context, item)) for item in documents
    )


def _hidden(context: Context, item: Mapping[str, Any]) -> Iterator[Any]:
    # First the ids and the locale, then the values that responses do not contain.
    yield from (item["documentId"], item["id"], item.get("locale") or LOCALES[0])
    document = context.world.documents.get(
        context.their_names.get(item["documentId"], "").removeprefix("doc:")
    )
    if document is not None:
        attributes = context.world.type_of(document).attributes
        yield from (value for n, value in document.said.items() if n in attributes and hidden(attributes[n]))


CHECKS: Mapping[str, Callable[[Context, Difference], bool]] = {
    "also related by the draft of another": is_target_of_a_draft,
    "found by what is hidden": matches_hidden_values,
    "key of a morph relation": key_of_a_morph_relation,
    "named by the other side": was_related_from_other_side,
    "not sorted there": has_ambiguous_order,
    "other document than was written": other_document,
    "other locale there": other_locale_there,
    "other version than was written": other_version,
    "related to another since": was_related_again,
    "several versions of what is related": have_several_versions,
    "sorted by": sorted_by,
    "told again there": differs_in_repetition,
}
