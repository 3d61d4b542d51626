"""The syntax tree of a YAML or JSON text: nodes with their spans, in indexes of its characters.

`edit_yaml` and `edit_json` change a file by cutting at these spans, so that all else keeps its bytes.
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["scalar", "map", "list", "alias"]


@dataclass(slots=True)
class Node:
    """One value: where it stands, how it is written, and what is inside of it.

    `end` is behind its last character: comments and blank lines after it are not part of it.
    `style` is that of a scalar (`'`, `"`, `|`, `>`, or "" without quotes) or of a collection (`flow`
    or `block`). A node is `anchored` where it has an anchor or a tag.
    """

    kind: Kind
    start: int
    end: int
    style: str = ""
    value: str = ""
    keys: list["Node"] = field(default_factory=list)
    items: list["Node"] = field(default_factory=list)
    anchored: bool = False

    def find(self, key: str) -> int:
        """The index of a key in a mapping, or -1."""
        return next((i for i, node in enumerate(self.keys) if node.value == key), -1)
