"""Comparison of the values that two schemas hide."""

from collections.abc import Iterator

from server.schema.model import Schema, Type


def shows_more(schema: Schema, other: Schema, uid: str) -> bool:
    """Return whether `schema` could reveal more of the content type `uid` than `other` does.

    Also returns True if the schemas differ in which files are documents or drafts.
    """
    if schema is other:
        return False
    type_, earlier = schema.types.get(uid), other.types.get(uid)
    if type_ is None or earlier is None:
        return True
    return _rules(type_) != _rules(earlier) or bool(
        set(_attributes(other, earlier, visible=False)) & set(_attributes(schema, type_, visible=True))
    )


def _rules(type_: Type) -> tuple[object, ...]:
    return type_.draft_publish, type_.draft_key, type_.files


def _attributes(schema: Schema, type_: Type, *, visible: bool) -> Iterator[tuple[str, str]]:
    """Yield the visible (or hidden) attributes of a content type and its components, as (uid, name)."""
    waiting, seen = [type_], {type_.uid}
    while waiting:
        one = waiting.pop()
        for attribute in one.attributes.values():
            if attribute.visible is visible:
                yield one.uid, attribute.name
            inner = {uid for uid in (attribute.component, *attribute.components) if uid} - seen
            seen |= inner
            waiting += [schema.types[uid] for uid in inner]
