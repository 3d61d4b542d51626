"""Parser for the values of media attributes in request bodies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.documents.document import PUBLISHED, Document
from server.documents.ids import to_nfc
from server.errors import ValidationError
from server.formats.text_positions import KeyPath, attribute_path
from server.index.snapshot import Snapshot
from server.schema.model import UPLOAD
from server.storage.media import media_key
from server.write.body_values import shown
from server.write.faults import Fault
from server.write.relation_input import OPERATIONS, require_known_operations

# Other keys that media files have in Strapi. Clients can send them back.
_IGNORED_KEYS = frozenset(
    ("folder", "folderPath", "createdBy", "updatedBy", "localizations", "isUrlSigned", "options", *OPERATIONS)
)


@dataclass(frozen=True, slots=True)
class MediaInput:
    """Parser for the values of media attributes. Errors are appended to `faults`."""

    snapshot: Snapshot
    locale: str  # the site's default locale, in which all media files are stored
    faults: list[Fault] = field(default_factory=list)
    # files by numeric id, filled at the first lookup
    numbers: dict[str, Document] = field(default_factory=dict)

    def read(self, value: Any, path: KeyPath, current: tuple[str, ...], *, multiple: bool) -> tuple[str, ...]:
        """Apply `value` from a request body to `current`, the upload paths in a media attribute.

        Return the new paths. Raises ValidationError if an object in `value` has unknown keys.
        """
        if isinstance(value, dict) and value and not _is_file(value):
            files = self._apply_changes(value, path, current)
        else:
            files = self._files(value, path)
        return files if multiple else files[:1]

    def _apply_changes(
        self, value: Mapping[str, Any], path: KeyPath, current: tuple[str, ...]
    ) -> tuple[str, ...]:
        # `disconnect` and `connect` are applied only without `set`.
        require_known_operations(dict(value), path)
        added, removed = (_as_list(value.get(key)) for key in ("connect", "disconnect"))
        if value.get("set") is not None or ("set" in value and not added and not removed):
            return self._files(value["set"], path, known=False)
        removed_files = self._files(removed, path, known=False, must_exist=False)
        added_files = self._files(added, path, known=False)
        return (*(file for file in current if file not in {*removed_files, *added_files}), *added_files)

    def _files(
        self, value: Any, path: KeyPath, *, known: bool = True, must_exist: bool = True
    ) -> tuple[str, ...]:
        # Missing files are recorded as faults. If `known` is set, unknown keys raise ValidationError.
        found: dict[str, None] = {}
        for item in _as_list(value):
            if known and isinstance(item, dict):
                self._refuse_keys(item, path)
            file = self._find(item)
            if file is not None:
                found[file] = None
            elif must_exist or not _is_number(item):
                self.faults.append(
                    Fault(path, f"names a file that does not exist: {_name(item)}", shown(item))
                )
        return tuple(found)

    def _refuse_keys(self, item: Mapping[str, Any], path: KeyPath) -> None:
        for key in item:
            if key not in self.snapshot.schema.types[UPLOAD].columns and key not in _IGNORED_KEYS:
                dotted = attribute_path(path)
                details = {"key": key, "path": dotted, "source": "body"}
                raise ValidationError(f"Invalid key {key} at {dotted}", details)

    def _find(self, item: Any) -> str | None:
        type_ = self.snapshot.schema.types[UPLOAD]
        key = item.get("documentId", item.get("id")) if isinstance(item, dict) else item
        file = None
        if _is_number(item):
            if not self.numbers:
                files = self.snapshot.list(type_, self.locale, PUBLISHED)
                self.numbers.update((str(file.id), file) for file in reversed(list(files)))
            file = self.numbers.get(str(key))
        if (
            file is None
            and isinstance(key, str)
            and not (isinstance(item, dict) and "documentId" not in item)
        ):
            file = self.snapshot.get(type_, to_nfc(key), self.locale, PUBLISHED)
        return media_key(file.path) if file else None


def _is_file(value: Mapping[str, Any]) -> bool:
    return "documentId" in value or "id" in value


def _is_number(item: Any) -> bool:
    key = item.get("id") if isinstance(item, dict) and "documentId" not in item else item
    return type(key) is int or (isinstance(key, str) and key.isascii() and key.isdecimal())


def _as_list(value: Any) -> list[Any]:
    items = value if isinstance(value, list) else [] if value == {} else [value]
    return [item for item in items if item is not None]


def _name(item: Any) -> Any:
    return shown(item.get("documentId", item.get("id")) if isinstance(item, dict) else item)
