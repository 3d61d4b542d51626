"""What a request body says of a relation: set, connect, disconnect, in short and in long form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.errors import ValidationError
from server.formats.positions import KeyPath
from server.schema.model import Attribute

OPERATIONS = ("set", "connect", "disconnect")
POSITIONS = ("start", "end", "before", "after")
_ITEM_KEYS = ("documentId", "id", "position", "locale", "status", "__type", "__temp_key__")

Target = Any  # a documentId, or (uid, documentId) of a morph relation
Resolve = Callable[[Attribute, Any, KeyPath], Target]


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

    Raises ValidationError for what is no relation value.
    """
    if value is None:
        return Links(set=())
    if isinstance(value, dict) and not _is_item(value):
        for key in value:
            if key not in OPERATIONS:
                dotted = ".".join(map(str, path))
                details = {"key": key, "path": dotted, "source": "body"}
                raise ValidationError(f"Invalid key {key} at {dotted}", details)
        return Links(
            tuple(_target(attribute, i, path, resolve) for i in _items(value["set"]))
            if "set" in value
            else None,
            tuple(_connect(attribute, i, path, resolve) for i in _items(value.get("connect"))),
            tuple(_known(i, path) for i in _items(value.get("disconnect"))),
        )
    return Links(set=tuple(_target(attribute, item, path, resolve) for item in _items(value)))


def _is_item(value: dict[str, Any]) -> bool:
    return "documentId" in value or "id" in value or "__type" in value


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _target(attribute: Attribute, item: Any, path: KeyPath, resolve: Resolve) -> Target:
    _refuse_keys(item, path)
    return resolve(attribute, item, path)


def _refuse_keys(item: Any, path: KeyPath) -> None:
    for key in item if isinstance(item, dict) else ():
        if key not in _ITEM_KEYS:
            dotted = ".".join(map(str, path))
            details = {"key": key, "path": dotted, "source": "body"}
            raise ValidationError(f"Invalid key {key} at {dotted}", details)


def _connect(attribute: Attribute, item: Any, path: KeyPath, resolve: Resolve) -> Connect:
    target = _target(attribute, item, path, resolve)
    position = item.get("position") if isinstance(item, dict) else None
    if position is None:
        return Connect(target)
    if not _is_position(position):
        raise ValidationError(f"Invalid position at {'.'.join(map(str, path))}: use {', '.join(POSITIONS)}")
    for place in ("before", "after"):
        if place in position:
            other = _known(position[place], path)
            if other == target:
                raise ValidationError(f'"{_name(target)}" can\'t be placed {place} itself')
            return Connect(target, place, other)
    return Connect(target, "start" if position.get("start") else "last")


def _is_position(value: Any) -> bool:
    if not isinstance(value, dict) or not value or not value.keys() <= set(POSITIONS):
        return False
    return all(isinstance(value[flag], bool) for flag in ("start", "end") if flag in value)


def _known(item: Any, path: KeyPath) -> Target:
    """A target that need not exist: one to disconnect, or one to be placed next to."""
    _refuse_keys(item, path)
    document_id, uid = (
        (item.get("documentId"), item.get("__type")) if isinstance(item, dict) else (item, None)
    )
    if not isinstance(document_id, str) or not document_id:
        dotted = ".".join(map(str, path))
        raise ValidationError(f"Invalid relation at {dotted}: relate by documentId", {"path": dotted})
    return (uid, document_id) if uid else document_id
