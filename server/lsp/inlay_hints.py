"""Inlay hints that show the titles of documents next to their ids."""

from server.index.dangling import MEDIA
from server.lsp.protocol import Json
from server.lsp.view import View

MAX_HINTS = 200
MAX_HINT_CHARS = 50


def inlay_hints(view: View, path: str, params: Json) -> list[Json]:
    """Return inlay hints with the titles of the documents that are referenced in a range of a file."""
    source, range_ = view.source(path), params.get("range")
    if source is None:
        return []
    start, end = (
        source.text.index_of_position(range_.get(k)) if isinstance(range_, dict) else 0
        for k in ("start", "end")
    )
    hints: list[Json] = []
    for node in source.nodes:
        if not node.value or not start <= node.value[1] <= end or len(hints) >= MAX_HINTS:
            continue
        target = source.target_at(node.path)
        if target is None or target[1][0] == MEDIA:
            continue
        uid, document_id = target[1]
        entry = view.titles.titles_of(view.snapshot, uid).get(document_id)
        document = view.find((uid, document_id), source.claim.locale)
        title = entry.title_in(document.locale) if entry and document else ""
        if title and title != document_id:
            after = node.value[1] + (source.text.value[node.value[1] : node.value[1] + 1] in ("'", '"'))
            label = title if len(title) <= MAX_HINT_CHARS else f"{title[:MAX_HINT_CHARS]}…"
            position = source.text.position(after)
            hints.append({"position": position, "label": label, "paddingLeft": True})
    return hints
