"""What a request body says of a relation: set, connect, disconnect, in short and in long form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.errors import ValidationError
from server.formats.positions import KeyPath
from server.schema.model import Attribute

OPERATIONS = ("set", "connect", "disconnect")
POSITIONS = ("start", "end", "before", "after")

Target = Any  # a documentId, or (uid, documentId) of a morph relation
# What finds the target that an item names; the last argument says whether it must exist.
Resolve = Callable[[Attribute, Any, KeyPath, bool], Target]


@dataclass(frozen=True, slots=True)
class Connect:
    """One target to connect, and where: `start`, `end`, or `before` or `after` another target."""

    target: Target
    place: str = "end"
    other: Target = None


@dataclass(frozen=True, slots=True)
class Links:
    """A change of a relation: `set` replaces (None: does not), then disconnect, then connect in order."""

    set: tuple[Target, ...] | None = None
    connect: tuple[Connect, ...] = ()
    disconnect: tuple[Target, ...] = ()

    def apply(self, current: tuple[Target, ...], *, to_many: bool) -> tuple[Target, ...]:
        """The targets after the change. Raises ValidationError for a position next to nothing."""
        targets = list(current if self.set is None else dict.fromkeys(self.set))
        for target in self.disconnect:
            if target in targets:
                targets.remove(target)
        for connect in self.connect:
            _place(targets, connect)
        return tuple(targets) if to_many else tuple(targets[-1:])

    def applied_to_itself(
        self, document_id: str, target: Target, current: tuple[Target, ...], to_many: bool
    ) -> tuple[Target, ...]:
        """The stored side of a relation of a document's type to itself, where the derived side is written.

        `target` is what stands in `current` where the document relates to itself.
        """
        named = target in current if self.set is None else document_id in self.set
        named = (named and document_id not in self.disconnect) or any(
            connect.target == document_id for connect in self.connect
        )
        if named == (target in current):
            return current
        if not named:
            return tuple(other for other in current if other != target)
        return (*current, target) if to_many else (target,)


def _place(targets: list[Target], connect: Connect) -> None:
    if connect.place in ("before", "after") and connect.other not in targets:
        raise ValidationError(
            f'"{_name(connect.target)}" can\'t be placed {connect.place} "{_name(connect.other)}", '
            "which is not connected; connect that first"
        )
    if connect.target in targets:
        if connect.place == "end" and connect.other is None:
            return  # connected already, and no place asked for
        targets.remove(connect.target)
    if connect.place == "start":
        targets.insert(0, connect.target)
    elif connect.place in ("before", "after"):
        targets.insert(targets.index(connect.other) + (connect.place == "after"), connect.target)
    else:
        targets.append(connect.target)


def _name(target: Target) -> str:
    return str(target[1] if isinstance(target, tuple) else target)


def read_links(attribute: Attribute, value: Any, path: KeyPath, resolve: Resolve) -> Links:
    """The change that a body describes (spec.md 4.3.3). `resolve` finds a target or refuses it.

    Targets may be given as they were populated: what an item says beside who it is, is ignored.
    Raises ValidationError for what is no relation value.
    """
    if value is None:
        return Links(set=())
    if not isinstance(value, dict) or _is_item(value):
        return Links(set=tuple(resolve(attribute, item, path, True) for item in _items(value)))
    refuse_operations(value, path)
    wanted = None
    if "set" in value:
        wanted = tuple(resolve(attribute, item, path, True) for item in _items(value["set"]))
    return Links(
        wanted,
        tuple(_connect(attribute, item, path, resolve) for item in _items(value.get("connect"))),
        tuple(resolve(attribute, item, path, False) for item in _items(value.get("disconnect"))),
    )


def read_media_links(value: Any, path: KeyPath, find: Callable[[Any, bool], Target | None]) -> Links:
    """The change that a body describes of a media attribute.

    `find` gives the file that an item names, or None; the second argument says whether it must exist.
    What is connected goes to the end; an empty object clears, as it does in Strapi.
    """

    def found(items: Any, existing: bool = True) -> tuple[Target, ...]:
        return tuple(target for i in _items(items) if (target := find(i, existing)) is not None)

    if not isinstance(value, dict) or _is_item(value):
        return Links(set=found(value))
    refuse_operations(value, path)
    wanted = found(value["set"]) if "set" in value else () if not value else None
    connect = tuple(Connect(target, "last") for target in found(value.get("connect")))
    return Links(wanted, connect, found(value.get("disconnect"), existing=False))


def refuse_operations(value: dict[str, Any], path: KeyPath) -> None:
    """Raise ValidationError for a key that is no operation on a relation."""
    for key in value:
        if key not in OPERATIONS:
            dotted = ".".join(map(str, path))
            details = {"key": key, "path": dotted, "source": "body"}
            raise ValidationError(f"Invalid key {key} at {dotted}", details)


def _is_item(value: dict[str, Any]) -> bool:
    return "documentId" in value or "id" in value or "__type" in value


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _connect(attribute: Attribute, item: Any, path: KeyPath, resolve: Resolve) -> Connect:
    target = resolve(attribute, item, path, True)
    position = item.get("position") if isinstance(item, dict) else None
    if position is None:
        return Connect(target)
    if not _is_position(position):
        raise ValidationError(f"Invalid position at {'.'.join(map(str, path))}: use {', '.join(POSITIONS)}")
    for place in ("before", "after"):
        if place in position:
            other = resolve(attribute, position[place], path, False)
            if other == target:
                raise ValidationError(f'"{_name(target)}" can\'t be placed {place} itself')
            return Connect(target, place, other)
    return Connect(target, "start" if position.get("start") else "last")


def _is_position(value: Any) -> bool:
    if not isinstance(value, dict) or not value or not value.keys() <= set(POSITIONS):
        return False
    return all(isinstance(value[flag], bool) for flag in ("start", "end") if flag in value)
