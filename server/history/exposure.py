"""Comparison of which values two schemas hide. If one schema hides a value, the value must not be revealed by
a response that uses the other schema.
"""

from collections.abc import Iterator

from server.schema.model import Schema, Type


def shows_more(schema: Schema, other: Schema, uid: str) -> bool:
    """Return whether a content type may show more under `schema` than under `other`. The result is True in
    these cases:

    - `other` does not contain the content type.
    - `other` hides an attribute that `schema` shows. The attribute may be in a component.
    - The two schemas have different rules about which files are documents or drafts of this content type.
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
    """Yield the visible attributes of a content type and its components, or the hidden attributes if
    `visible` is False. Each is paired with the uid of the content type or component that defines it.
    """
    waiting, seen = [type_], {type_.uid}
    while waiting:
        one = waiting.pop()
        for attribute in one.attributes.values():
            if attribute.visible is visible:
                yield one.uid, attribute.name
            inner = {uid for uid in (attribute.component, *attribute.components) if uid} - seen
            seen |= inner
            waiting += [schema.types[uid] for uid in inner]
