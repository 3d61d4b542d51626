"""Values of unique attributes that several documents have."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from server.documents.document import Document
from server.formats.text_positions import KeyPath, Position, line_and_column
from server.problems import Problem
from server.site.check.audit import Audit
from server.storage.read import parsed


def duplicate_values(audit: Audit) -> Iterator[Problem]:
    """Values of unique attributes that more than one document of a locale has."""
    for uid, table in audit.snapshot.tables.items():
        for (name, value, _), documents in table.unique.items():
            if len(documents) > 1 and len({d.document_id for d in documents}) > 1:
                yield from _shared(audit, uid, name, value, documents)


def _shared(
    audit: Audit, uid: str, name: str, value: Any, documents: tuple[Document, ...]
) -> Iterator[Problem]:
    by_id: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        by_id[document.document_id].append(document.path)
    owner, *others = sorted(by_id.values(), key=min)
    shown = str(value) if len(str(value)) <= 40 else f"{str(value)[:39]}…"
    for path in sorted({path for paths in others for path in paths}):
        what = f'{name}: "{shown}" must be unique, and {min(owner)} has it'
        position = _position_of_value(audit, path, name, value)
        line, column = line_and_column(position)
        fix, at = "give it another value", tuple(name.split("."))
        yield Problem(path, line, what, fix, "warning", column, "duplicate-value", at)


def _position_of_value(audit: Audit, path: str, name: str, value: Any) -> Position | None:
    """The position of an attribute's value; `name` is the dotted path, without indexes of lists."""
    tree, positions = parsed(audit.root, path)
    named = [at for at in positions if ".".join(k for k in at if isinstance(k, str)) == name]
    exact = [at for at in named if str(_value(tree, at)) == str(value)]
    return next((positions[at] for at in (*exact, *named)), None)


def _value(tree: Any, at: KeyPath) -> Any:
    """The value at a path; None where there is none."""
    for key in at:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree
