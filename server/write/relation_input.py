"""What a request body says of a relation: set, connect, disconnect, in short and in long form."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.documents.values import identify
from server.errors import ValidationError
from server.formats.text_positions import KeyPath, attribute_path
from server.schema.model import Attribute

OPERATIONS = ("set", "connect", "disconnect")
POSITIONS = ("start", "end", "before", "after")
CIRCULAR_MESSAGE = (
    "A circular reference was found in the connect array. One relation is trying to connect before/after "
    "another one that is trying to connect before/after it"
)

Target = Any  # a documentId, or (uid, documentId) of a morph relation
# What finds the target that an item names; the last argument says whether it must exist: if not, and there
# is none of a number, it gives None.
Resolve = Callable[[Attribute, Any, KeyPath, bool], Target]


@dataclass(frozen=True, slots=True)
class Connect:
    """One target to connect, and where: `start`, `end`, or `before` or `after` another target."""

    target: Target
    place: str = "end"
    other: Target = None


@dataclass(frozen=True, slots=True)
class Links:
    """A change of a relation: `set` replaces all there is (None: does not), and then nothing else counts.

    It does not replace targets of the types `kept`, which who sends it can't see.
    """

    set: tuple[Target, ...] | None = None
    connect: tuple[Connect, ...] = ()
    disconnect: tuple[Target, ...] = ()
    kept: frozenset[str] = frozenset()

    def apply(self, current: tuple[Target, ...], *, to_many: bool) -> tuple[Target, ...]:
        """The targets after the change. Raises ValidationError for a position next to nothing."""
        if self.set is not None:
            wanted = tuple(dict.fromkeys(self.set)) if to_many else self.set[-1:]
            return self._with_kept(wanted, current, to_many=to_many) if self.kept else wanted
        if not to_many:
            left = tuple(target for target in current if target not in self.disconnect)
            return (self.connect[-1].target,) if self.connect else left[-1:]
        targets = _Sequence(current)
        for connect in _in_order(self.connect, current):
            targets.place(connect)
        gone = {*self.disconnect} - {connect.target for connect in self.connect}
        return tuple(target for target in targets if target not in gone)

    def _with_kept(
        self, wanted: tuple[Target, ...], current: tuple[Target, ...], *, to_many: bool
    ) -> tuple[Target, ...]:
        """Return the targets that were set, with the kept ones at their places; one alone gives way."""
        if wanted and not to_many:
            return wanted
        found = list(wanted)
        for place, target in enumerate(current):
            if target[0] in self.kept and target not in wanted:
                found.insert(place, target)
        return tuple(found)

    def applied_to_itself(
        self, document_id: str, target: Target, current: tuple[Target, ...], to_many: bool
    ) -> tuple[Target, ...]:
        """The stored side of a relation of a document's type to itself, where the derived side is written.

        `target` is what stands in `current` where the document relates to itself. Its place among others is
        for the derived side to say.
        """
        if self.set is not None:
            named = document_id in self.set
        elif any(connect.target == document_id for connect in self.connect):
            named = True
        else:
            named = target in current and document_id not in self.disconnect
        if named == (target in current):
            return current
        if not named:
            return tuple(other for other in current if other != target)
        return (*current, target) if to_many else (target,)


class _Sequence:
    """Targets in an order, each once. To place one takes the same time however many there are.

    Each target has the one before and the one after it; None is before the first and after the last.
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
        """Put the target of a connect where that says; it is taken from where it was."""
        target, place = connect.target, connect.place
        if target in self._after:
            self._join(self._before[target], self._after[target])
        other = connect.other if place in ("before", "after") else None
        before = other if place in ("start", "after") else self._before[other]
        after = self._after[before]
        self._join(before, target)
        self._join(target, after)

    def _join(self, before: Target, after: Target) -> None:
        self._after[before], self._before[after] = after, before


def _in_order(connects: tuple[Connect, ...], targets: Iterable[Target]) -> Iterator[Connect]:
    """The connects in an order in which each comes after the one that it is placed next to.

    Of those that can be placed as soon as each other, it is the order in which they are given.
    """
    there, ready = set(targets), list[int]()
    waiting: dict[Target, list[int]] = {}  # the numbers of those to be placed next to a target
    for number, connect in enumerate(connects):
        if connect.place not in ("before", "after") or connect.other in there:
            ready.append(number)
        else:
            waiting.setdefault(connect.other, []).append(number)
    while ready:
        yield from (connects[number] for number in ready)
        placed = dict.fromkeys(connects[number].target for number in ready)
        ready = sorted(number for target in placed for number in waiting.pop(target, ()))
    if waiting:
        raise _misplaced([connects[number] for numbers in waiting.values() for number in numbers])


def _misplaced(waiting: Iterable[Connect]) -> ValidationError:
    """Return the error for connects that can't be placed: next to each other in a circle, or to nothing."""
    others = {connect.target: connect.other for connect in waiting}
    target, seen = next(iter(others)), set[Target]()
    while others[target] in others:
        seen.add(target)
        target = others[target]
        if target in seen:
            return ValidationError(CIRCULAR_MESSAGE)
    return ValidationError(
        f'"{_name(target)}" can\'t be placed next to "{_name(others[target])}", '
        "which is not connected; connect that first"
    )


def _name(target: Target) -> str:
    return str(target[1] if isinstance(target, tuple) else target)


def read_links(attribute: Attribute, value: Any, path: KeyPath, resolve: Resolve) -> Links:
    """The change that a body describes (spec.md 4.3.3). `resolve` finds a target or refuses it.

    Targets may be given as they were populated: what an item says beside who it is, is ignored.
    Raises ValidationError for what is no relation value.
    """
    if value is None:
        return Links(set=())
    if not isinstance(value, dict) or _is_item(attribute, value):
        return Links(set=tuple(resolve(attribute, item, path, True) for item in _items(value)))
    if not (attribute.morph and attribute.derived):  # There, Strapi looks at no other keys.
        refuse_operations(value, path)
    wanted = None
    if value.get("set") is not None:
        wanted = tuple(resolve(attribute, item, path, True) for item in _items(value["set"]))
    gone = (resolve(attribute, item, path, False) for item in _items(value.get("disconnect")))
    return Links(
        wanted,
        tuple(_connect(attribute, item, path, resolve) for item in _items(value.get("connect"))),
        tuple(target for target in gone if target is not None),
    )


def divide_by_locale(
    attribute: Attribute, value: Any, locales: Collection[str], default: str
) -> dict[str, Any]:
    """Return, by locale, the part of a relation value that names documents of the target in this locale.

    An item without `locale` is in the one that its `id` was made of, else in the default one.
    """
    uid = attribute.target or ""

    def locale_of(item: Any) -> Any:
        if not isinstance(item, dict):
            return default
        document_id, number = item.get("documentId"), item.get("id")
        if item.get("locale") or not isinstance(document_id, str) or not isinstance(number, int):
            return item.get("locale") or default
        return next((code for code in locales if identify(uid, document_id, code) == number), default)

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


def refuse_operations(value: dict[str, Any], path: KeyPath) -> None:
    """Raise ValidationError for a key that is no operation on a relation."""
    for key in value:
        if key not in (*OPERATIONS, "options"):  # These change nothing here.
            dotted = attribute_path(path)
            details = {"key": key, "path": dotted, "source": "body"}
            raise ValidationError(f"Invalid key {key} at {dotted}", details)


def targets_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a body that name targets, alone or in a list."""
    yield from (item for item in _items(value) if isinstance(item, dict))


def morph_targets(attribute: Attribute, value: Any) -> Iterator[Any]:
    """Yield what must name its type in a value of a stored morph relation; None for what is not one.

    To relate to many documents, a list is needed, also below each operation.
    """
    if value is True:
        return  # The check of relation values refuses it.
    operations = isinstance(value, dict) and any(key in value for key in (*OPERATIONS, "options"))
    for items in [value.get(key) or [] for key in OPERATIONS] if operations else [value]:
        if isinstance(items, list):
            yield from _items(items)
        elif items is not None:
            yield None if attribute.to_many else items


def _is_item(attribute: Attribute, value: dict[str, Any]) -> bool:
    """Whether an object names a target, and is no object of operations."""
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
            other = resolve(attribute, neighbour, path, True)  # A hidden draft is none.
            if other == target:
                raise ValidationError(CIRCULAR_MESSAGE)
            return Connect(target, place, other)
    return Connect(target, "start" if position.get("start") else "end")


def _is_position(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {*POSITIONS, "__type"}:
        return False
    return all(isinstance(value[flag], bool) for flag in ("start", "end") if flag in value)
