"""Check for images without alternative text."""

from collections import Counter
from collections.abc import Collection, Iterator

from server.documents.document import VALUES, Document
from server.formats.text_positions import KeyPath, line_and_column
from server.formats.tree import SyntaxProblem
from server.index.dangling import targets_in
from server.index.snapshot import Snapshot
from server.problems import Problem
from server.site.check.page import Page
from server.storage.media import SIDECAR_SUFFIX, mime_type

TEXT = "alternativeText"


def find_images_without_text(
    page: Page, document: Document, snapshot: Snapshot, keys: Collection[str] | None = None
) -> Iterator[Problem]:
    """Yield a problem for each image that is used in a document but has no alternative text.

    If `keys` is given, only the media files with these keys are checked.
    """
    counts: Counter[KeyPath] = Counter()
    for attribute, at, key in targets_in(snapshot.schema, document.type, document.read_row()[VALUES], ()):
        if attribute.type != "media":
            continue
        place = (*at, counts[at]) if attribute.multiple else at
        counts[at] += 1
        file = snapshot.media.get(key) if keys is None or key in keys else None
        if file is not None and mime_type(key).startswith("image/") and not _text(file):
            yield _problem(page, ".".join(map(str, at)), key, file.path, place)


def _text(file: Document) -> str:
    return str(file.read_row()[file.type.position[TEXT]] or "").strip()


def _problem(page: Page, name: str, key: str, path: str, key_path: KeyPath) -> Problem:
    try:
        line, column = line_and_column(page.position(key_path))
    except SyntaxProblem:
        line, column = None, None
    message = f"{name}: the image {key} has no alternative text"
    fix = f"add {TEXT} to {path}{SIDECAR_SUFFIX}"
    return Problem(page.path, line, message, fix, "warning", column, "missing-alt", key_path)
