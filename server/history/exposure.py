"""Comparison of two schemas, to find out whether one reveals values that the other hides."""

from collections.abc import Iterator
from itertools import product

from server.documents.addresses import ALIAS_KEYS
from server.documents.file_keys import FIELD
from server.schema.model import Attribute, Schema, Type

# Two places in a file that have no key of their own. No attribute has these names.
_OTHER_KEYS = "*"  # all keys that are not attributes
_TEXT = "\n"  # the text below the front matter
_NO_COMPONENT = Type("", "component", "", "", "", {})


def reveals_more(schema: Schema, other: Schema, uid: str, *, if_in_doubt: bool = False) -> bool:
    """Return whether `schema` could reveal values of the content type `uid` that are hidden by `other`.

    Also returns True if the two schemas disagree about which files are documents or drafts. With
    `if_in_doubt`, uncertain cases count as True.
    """
    if schema is other:
        return False
    type_, earlier = schema.types.get(uid), other.types.get(uid)
    if type_ is None or earlier is None:
        return True
    return (
        _rules(type_) != _rules(earlier)
        or _reveals_file_names(type_, earlier)
        or _reveals_aliases(type_, earlier)
        or any(_reveals_in_inverse(schema, other, uid, name) for name in earlier.attributes)
        or _reveals_values(schema, other, (type_, earlier), if_in_doubt)
    )


def _rules(type_: Type) -> tuple[object, ...]:
    return type_.draft_publish, type_.draft_key, type_.files


def _reveals_file_names(type_: Type, earlier: Type) -> bool:
    names = (field.partition(".")[0] for field in FIELD.findall(earlier.file_name or ""))
    is_hidden = any(not earlier.attributes[name].visible for name in names)
    return is_hidden and type_.file_name != earlier.file_name


def _reveals_aliases(type_: Type, earlier: Type) -> bool:
    # Redirects use these keys even if they are not attributes.
    hidden = {attribute.name for attribute in earlier.attributes.values() if not attribute.visible}
    return any(key in hidden and key not in type_.attributes for key in ALIAS_KEYS)


def _reveals_in_inverse(schema: Schema, other: Schema, uid: str, name: str) -> bool:
    if other.types[uid].attributes[name].visible:
        return False
    return _shows_inverse(schema, uid, name) and not _shows_inverse(other, uid, name)


def _shows_inverse(schema: Schema, uid: str, name: str) -> bool:
    attributes = (a for type_ in schema.types.values() for a in type_.attributes.values())
    return any((a.target, a.mapped_by, a.visible) == (uid, name, True) for a in attributes)


def _reveals_values(schema: Schema, other: Schema, pair: tuple[Type, Type], if_in_doubt: bool) -> bool:
    """Return whether any value in a document's file is visible in `schema` but hidden in `other`."""
    waiting, seen = [pair], {(pair[0].uid, pair[1].uid)}
    while waiting:
        type_, earlier = waiting.pop()
        if any(
            _reveals(type_, earlier, key, if_in_doubt)
            for key in {*type_.attributes, *earlier.attributes, _OTHER_KEYS, _TEXT}
        ):
            return True
        inner = set(_component_pairs(type_, earlier)) - seen
        seen |= inner
        waiting += [(schema.types.get(uid, _NO_COMPONENT), other.types[before]) for uid, before in inner]
    return False


def _reveals(type_: Type, earlier: Type, key: str, if_in_doubt: bool) -> bool:
    attribute, before = _attribute_of(type_, key), _attribute_of(earlier, key)
    if attribute is None:
        # No response contains the value, but a later merge or schema could reveal it.
        return if_in_doubt and before is not None and not before.visible and not before.derived
    if not attribute.visible:
        return False
    if before is None:
        return if_in_doubt and key == _OTHER_KEYS
    if if_in_doubt and before.type == "relation" and attribute.target != before.target:
        return True  # `before` showed its targets only to callers who can `find` its target type.
    # JSON shows everything that a component contains, even its unknown keys.
    return not before.visible or (before.holds_components and not attribute.holds_components)


def _attribute_of(type_: Type, key: str) -> Attribute | None:
    name = type_.body if key == _TEXT else type_.other_keys
    if key in type_.attributes and key != name:
        name = key
    return type_.attributes[name] if name else None


def _component_pairs(type_: Type, earlier: Type) -> Iterator[tuple[str, str]]:
    """Yield pairs of component uids, one from each schema, that can occur in the same place in a file.

    The first uid is "" if only the earlier schema allows components there.
    """
    for name, before in earlier.attributes.items():
        attribute = type_.attributes.get(name)
        if before.visible and (attribute is None or attribute.visible):
            uids, earlier_uids = _components_of(attribute), _components_of(before)
            yield from ((uid, uid) for uid in uids & earlier_uids)
            yield from product(uids - earlier_uids or {""}, earlier_uids - uids)


def _components_of(attribute: Attribute | None) -> set[str]:
    return {*attribute.component_uids} if attribute else set()
