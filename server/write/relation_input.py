"""Parser for relations in request bodies, including the keys `set`, `connect` and `disconnect`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from server.documents.values import derive_id
from server.errors import ValidationError
from server.formats.text_positions import KeyPath, attribute_path
from server.schema.model import Attribute

OPERATIONS = ("set", "connect", "disconnect")
POSITIONS = ("start", "end", "before", "after")
CIRCULAR_MESSAGE = (
    "A circular reference was found in the connect array. One relation is trying to connect before/after "
    "another one that is trying to connect before/after it"
)

Target = Any  # a documentId; in a morph relation, a pair (uid, documentId)
# Returns the target for an item. If the last argument is False, the target need not exist, and the result is
# None for an unknown numeric id.
Resolve = Callable[[Attribute, Any, KeyPath, bool], Target]


@dataclass(frozen=True, slots=True)
class Connect:
    """A target to add to a relation.

    `position` is "start", "end", "before" or "after"; the last two are relative to the target `neighbor`.
    """

    target: Target
    position: str = "end"
    neighbor: Target = None


@dataclass(frozen=True, slots=True)
class Links:
    """A change to a relation. If `set` is given, `connect` and `disconnect` are ignored.

    Targets of the content types in `kept_types` are not removed, because the caller may not `find` them.
    """

    set: tuple[Target, ...] | None = None
    connect: tuple[Connect, ...] = ()
    disconnect: tuple[Target, ...] = ()
    kept_types: frozenset[str] = frozenset()
    strict: bool = field(default=True, compare=False)

    def apply(self, current: tuple[Target, ...], *, to_many: bool) -> tuple[Target, ...]:
        """Apply this change to `current`, the targets of a relation, and return the new targets.

        If `strict` is set, raises ValidationError for a position next to a missing target.
        """
        if self.set is not None:
            targets_set = tuple(dict.fromkeys(self.set)) if to_many else self.set[-1:]
            return self._with_kept(targets_set, current, to_many=to_many) if self.kept_types else targets_set
        if not to_many:
            remaining = tuple(target for target in current if target not in self.disconnect)
            return (self.connect[-1].target,) if self.connect else remaining[-1:]
        targets = _TargetList(current)
        for connect in _in_order(self.connect, current, strict=self.strict):
            targets.place(connect)
        removed = {*self.disconnect} - {connect.target for connect in self.connect}
        return tuple(target for target in targets if target not in removed)

    def _with_kept(
        self, targets_set: tuple[Target, ...], current: tuple[Target, ...], *, to_many: bool
    ) -> tuple[Target, ...]:
        # In a to-one relation, a new target replaces the old one, even if the old one is hidden.
        if targets_set and not to_many:
            return targets_set
        targets = list(targets_set)
        for place, target in enumerate(current):
            if target[0] in self.kept_types and target not in targets_set:
                targets.insert(place, target)
        return tuple(targets)

    def apply_to_same_document(
        self, document_id: str, target: Target, current: tuple[Target, ...], to_many: bool
    ) -> tuple[Target, ...]:
        """Change a derived relation's link from a document to itself, which the document itself stores.

        `current` contains the targets of the attribute that stores this link, and `target` is the link as
        that attribute contains it. Return the attribute's new targets.
        """
        if self.set is not None:
            is_linked = document_id in self.set
        elif any(connect.target == document_id for connect in self.connect):
            is_linked = True
        else:
            is_linked = target in current and document_id not in self.disconnect
        if is_linked == (target in current):
            return current
        if not is_linked:
            return tuple(other for other in current if other != target)
        return (*current, target) if to_many else (target,)


class _TargetList:
    """Doubly linked list of distinct targets. Moving a target takes constant time.

    None represents the place before the first target and after the last one.
    """

    def __init__(self, targets: Iterable[Target]) -> None:
        ring = [None, *dict.fromkeys(targets)]
        self._after: dict[Target, Target] = dict(zip(ring, [*ring[1:], None], strict=True))
        self._before: dict[Target, Target] = dict(zip([*ring[1:], None], ring, strict=True))

    def __iter__(self) -> Iterator[Target]:
        target = self._after[None]
        while target is not None:
            yield target
            target = self._after[target]

    def place(self, connect: Connect) -> None:
        target, place = connect.target, connect.position
        if target in self._after:
            self._join(self._before[target], self._after[target])
        other = connect.neighbor if place in ("before", "after") else None
        before = other if place in ("start", "after") else self._before[other]
        after = self._after[before]
        self._join(before, target)
        self._join(target, after)

    def _join(self, before: Target, after: Target) -> None:
        self._after[before], self._before[after] = after, before


def _in_order(connects: tuple[Connect, ...], targets: Iterable[Target], *, strict: bool) -> Iterator[Connect]:
    # Yields each target after the target next to which it is placed. If that target is missing, an error is
    # raised (if `strict` is set), or the position becomes the end of the list.
    placed_targets, ready = set(targets), list[int]()
    # by target: the indexes of the `connects` that must be placed after it
    waiting: dict[Target, list[int]] = {}
    for number, connect in enumerate(connects):
        if connect.position not in ("before", "after") or connect.neighbor in placed_targets:
            ready.append(number)
        else:
            waiting.setdefault(connect.neighbor, []).append(number)
    yield from (connects[number] for number in _with_waiting(ready, connects, waiting))
    if waiting and strict:
        raise _misplaced([connects[number] for numbers in waiting.values() for number in numbers])
    placed = set[int]()
    for first in sorted(number for numbers in waiting.values() for number in numbers):
        if first not in placed:
            placed.add(first)
            yield replace(connects[first], position="end", neighbor=None)
            target = connects[first].target
            behind = sorted({*waiting.pop(target, ())} - placed)
            for number in _with_waiting(behind, connects, waiting):
                if number not in placed:
                    placed.add(number)
                    yield connects[number]


def _with_waiting(
    ready: list[int], connects: tuple[Connect, ...], waiting: dict[Target, list[int]]
) -> Iterator[int]:
    while ready:
        yield from ready
        placed = dict.fromkeys(connects[number].target for number in ready)
        ready = sorted(number for target in placed for number in waiting.pop(target, ()))


def _misplaced(waiting: Iterable[Connect]) -> ValidationError:
    # The positions form a cycle or refer to a missing target.
    others = {connect.target: connect.neighbor for connect in waiting}
    target, seen = next(iter(others)), set[Target]()
    while others[target] in others:
        seen.add(target)
        target = others[target]
        if target in seen:
            return ValidationError(CIRCULAR_MESSAGE)
    return ValidationError(
        f'"{_name(target)}" can\'t be placed next to "{_name(others[target])}", '
        "which is not connected; connect it first"
    )


def _name(target: Target) -> str:
    return str(target[1] if isinstance(target, tuple) else target)


def read_links(attribute: Attribute, value: Any, path: KeyPath, resolve: Resolve) -> Links:
    """Parse the value of a relation in a request body (spec.md 4.3.3).

    `resolve` finds the target that an item refers to. Raises ValidationError if the value is invalid.
    """
    if value is None:
        return Links(set=())
    if not isinstance(value, dict) or _is_item(attribute, value):
        return Links(set=tuple(resolve(attribute, item, path, True) for item in _items(value)))
    # On the derived side of a morph relation, Strapi ignores unknown keys.
    if not (attribute.morph and attribute.derived):
        require_known_operations(value, path)
    targets_set = None
    if value.get("set") is not None:
        targets_set = tuple(resolve(attribute, item, path, True) for item in _items(value["set"]))
    removed = (resolve(attribute, item, path, False) for item in _items(value.get("disconnect")))
    return Links(
        targets_set,
        tuple(_connect(attribute, item, path, resolve) for item in _items(value.get("connect"))),
        tuple(target for target in removed if target is not None),
    )


def split_by_locale(
    attribute: Attribute, value: Any, locales: Collection[str], default: str
) -> dict[str, Any]:
    """Split a relation's value in a request body by the locales of its targets.

    A target that has no `locale` and no numeric id is assigned to the locale `default`.
    """
    uid = attribute.target or ""

    def locale_of(item: Any) -> Any:
        if not isinstance(item, dict):
            return default
        document_id, number = item.get("documentId"), item.get("id")
        if item.get("locale") or not isinstance(document_id, str) or not isinstance(number, int):
            return item.get("locale") or default
        return next((code for code in locales if derive_id(uid, document_id, code) == number), default)

    def part(items: Any, locale: str) -> list[Any]:
        return [item for item in _items(items) if locale_of(item) == locale]

    if not isinstance(value, dict) or _is_item(attribute, value):
        return {locale: part(value, locale) for locale in locales}
    return {
        locale: {
            key: part(items, locale)
            for key, items in value.items()
            if key in OPERATIONS and items is not None
        }
        for locale in locales
    }


def require_known_operations(value: dict[str, Any], path: KeyPath) -> None:
    for key in value:
        if key not in (*OPERATIONS, "options"):  # `options` is allowed, but has no effect.
            dotted = attribute_path(path)
            details = {"key": key, "path": dotted, "source": "body"}
            raise ValidationError(f"Invalid key {key} at {dotted}", details)


def targets_in(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in _items(value) if isinstance(item, dict))


def morph_targets(attribute: Attribute, value: Any) -> Iterator[Any]:
    """Yield the targets in the value of a polymorphic relation.

    For a to-many relation, a value that is not a list is yielded as None.
    """
    if value is True:
        return  # Yield nothing: such a value is rejected when the relation is validated.
    operations = isinstance(value, dict) and any(key in value for key in (*OPERATIONS, "options"))
    for items in [value.get(key) or [] for key in OPERATIONS] if operations else [value]:
        if isinstance(items, list):
            yield from _items(items)
        elif items is not None:
            yield None if attribute.to_many else items


def _is_item(attribute: Attribute, value: dict[str, Any]) -> bool:
    return "documentId" in value or "id" in value or ("__type" in value and attribute.polymorphic)


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return [item for item in value if item is not None] if isinstance(value, list) else [value]


def _connect(attribute: Attribute, item: Any, path: KeyPath, resolve: Resolve) -> Connect:
    target = resolve(attribute, item, path, True)
    position = item.get("position") if isinstance(item, dict) else None
    if position is None or position == {}:
        return Connect(target)
    if not _is_position(position):
        raise ValidationError(f"Invalid position at {'.'.join(map(str, path))}: use {', '.join(POSITIONS)}")
    for place in ("before", "after"):
        if place in position:
            neighbour = position[place]
            if attribute.polymorphic and isinstance(item, dict):
                uid = position.get("__type", item.get("__type"))
                neighbour = {"__type": uid, "documentId": neighbour}
            # A draft that the caller is not allowed to see is treated as missing.
            other = resolve(attribute, neighbour, path, True)
            if other == target:
                raise ValidationError(CIRCULAR_MESSAGE)
            return Connect(target, place, other)
    return Connect(target, "start" if position.get("start") else "end")


def _is_position(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {*POSITIONS, "__type"}:
        return False
    return all(isinstance(value[flag], bool) for flag in ("start", "end") if flag in value)
