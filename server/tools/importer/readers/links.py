"""Links in an export archive. Links to a draft and to its published version are combined into one."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.schema.model import UPLOAD, USER
from server.tools.importer.source import ImportNotes, SchemaJson, to_stored_targets

RowKey = tuple[str, int]  # (uid, row number)
Owner = tuple[str, int, str]  # (uid, row number, attribute)


@dataclass(slots=True)
class LinkTable:
    """Links between database rows. `targets` maps each row and attribute to the linked rows, in order.

    `mirrored` contains the same links in the opposite direction.
    """

    uids: Mapping[str, str]  # Bifolio's uids, by Strapi's uids
    ids: Mapping[RowKey, str]  # documentIds by row
    paths: Mapping[int, str]  # upload paths by row number
    notes: ImportNotes
    targets: dict[Owner, list[tuple[float, Any]]] = field(default_factory=lambda: defaultdict(list))
    mirrored: dict[Owner, list[tuple[float, RowKey]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, link: Mapping[str, Any]) -> None:
        left, right = link["left"], link["right"]
        if left["type"] == UPLOAD:
            if left.get("field") == "related":
                owner = (self._uid(right), right["ref"], str(right.get("field")))
                self.targets[owner].append((_order_of(right), left["ref"]))
        elif left.get("field"):
            ordered = right if link.get("kind") == "relation.morph" else left
            owner = (self._uid(left), left["ref"], left["field"])
            self.targets[owner].append((_order_of(ordered), (self._uid(right), right["ref"])))
            # Users are not stored in files, so the other side stores the relation.
            if right.get("field") and left["type"] == USER:
                other = (self._uid(right), right["ref"], right["field"])
                self.targets[other].append((_order_of(right), (USER, left["ref"])))
            elif right.get("field") and right.get("pos") is not None:
                mirror = (self._uid(right), right["ref"], right["field"])
                self.mirrored[mirror].append((_order_of(right), (self._uid(left), left["ref"])))

    def _uid(self, end: Mapping[str, Any]) -> str:
        return self.uids.get(end["type"], end["type"])

    def targets_of(self, uid: str, row: int, name: str, attribute: SchemaJson) -> Any:
        found = [t for _, t in sorted(self.targets.get((uid, row, name), ()), key=lambda pair: pair[0])]
        if attribute["type"] == "media":
            named: list[Any] = [self.paths[file] for file in found if file in self.paths]
        elif str(attribute.get("relation")).startswith("morph"):
            named = [{"__type": t[0], "documentId": self.ids[t]} for t in found if t in self.ids]
        else:
            named = [self.ids[t] for t in found if t in self.ids]
        if len(named) < len(found):
            what = f'"{name}" pointed to a document or file that is not in the export'
            self.notes.add(uid, what, len(found) - len(named))
        # Remove duplicates, because two rows can belong to the same document.
        unique = {str(target): target for target in named}
        return to_stored_targets(attribute, list(unique.values()))

    def note_lost_orders(self, created_at: Mapping[RowKey, str]) -> None:
        """Add a note about each relation whose inverse side loses its order.

        Bifolio sorts the inverse side by creation time.
        """
        for (uid, _, name), found in self.mirrored.items():
            owners = [owner for _, owner in sorted(found, key=lambda pair: pair[0]) if owner in created_at]
            order = list(dict.fromkeys(self.ids[owner] for owner in owners))
            made = sorted({(created_at[owner], self.ids[owner]) for owner in owners})
            if order != list(dict.fromkeys(document_id for _, document_id in made)):
                self.notes.add(
                    uid,
                    f'Bifolio returns "{name}" in the order of creation, unless a request contains "sort"',
                )


def _order_of(end: Mapping[str, Any]) -> float:
    position = end.get("pos")
    return float(position) if position is not None else 0.0
