"""Files in the content folders that are no document, with the likely reason."""

import os.path
from collections.abc import Iterator

from server.documents.path_rules import ENDINGS, MARKDOWN, is_partial
from server.paths import CONTENT, UPLOADS
from server.problems import Problem
from server.schema.spelling import suggestion
from server.site.check.audit import Audit, is_upload
from server.storage.media import DESCRIPTION


def unclaimed(audit: Audit) -> Iterator[Problem]:
    """Files in the content folders that no type claims, and descriptions of missing media files."""
    in_bucket = {file.path for file in audit.snapshot.media.values() if file.get("provider_metadata")}
    for path in sorted(audit.files - audit.claims.keys()):
        if is_upload(path):
            described = path.removesuffix(DESCRIPTION)
            lost = described not in audit.files and described not in in_bucket
            if lost and path.endswith(DESCRIPTION) and os.path.splitext(described)[1]:
                yield _lost_description(audit, path, described)
        elif _should_be_claimed(audit, path):
            message, fix = _why_unclaimed(audit, path)
            yield Problem(path, None, message, fix, "warning", None, "unclaimed")


def _should_be_claimed(audit: Audit, path: str) -> bool:
    """Whether a file is where only documents should be. Trees of site generators hold other files, too."""
    if all(t.files for t in audit.types):
        read = (*MARKDOWN, *(os.path.splitext(p)[1] for t in audit.types for p in t.files))
        if not path.endswith(read):
            return False
    patterns = [p for t in audit.types for p in t.files if "{name}" in p]
    trees = {p.partition("{")[0].rpartition("/")[0] for p in patterns}
    around = [tree for tree in trees if path.startswith(f"{tree}/") or not tree]
    if not around or (around == [""] and path.startswith(f"{CONTENT}/")):
        return path.startswith(f"{CONTENT}/")
    if is_partial(path):
        return False
    endings = {os.path.splitext(p)[1] for p in patterns}
    # Where the whole site is such a tree, it has its own files and those of the repository as well.
    if around == [""]:
        return "/" in path and not path.startswith("content-types/") and path.endswith(tuple(endings))
    return path.endswith((*MARKDOWN, *endings))


def _lost_description(audit: Audit, path: str, described: str) -> Problem:
    folder = os.path.dirname(path)
    beside = [f for f in audit.files if os.path.dirname(f) == folder and not f.endswith(DESCRIPTION)]
    fix = suggestion(described, beside) or "add the file, or remove its description"
    return Problem(path, None, f"describes {described}, which is not there", fix, "warning", None, "dangling")


def _why_unclaimed(audit: Audit, path: str) -> tuple[str, str]:
    """Why no type claims a file, judged by its path, and how to fix it."""
    if not path.endswith(ENDINGS):
        return "is no document", f"move it to {UPLOADS}, or remove it"
    name = path.removeprefix(f"{CONTENT}/")
    folder, inside, _ = name.partition("/")
    plurals = [t.plural for t in audit.types if t.kind == "collectionType" and not t.files]
    if path.startswith(f"{CONTENT}/") and inside:
        near = next((t.plural for t in audit.types if t.singular == folder), "")
        near = f'did you mean "{CONTENT}/{near}"?' if near else suggestion(folder, plurals)
        return f'no content type has the folder "{folder}"', near or "move it, or add a content type for it"
    singles = [t.singular for t in audit.types if t.kind == "singleType" and not t.files]
    if path.startswith(f"{CONTENT}/"):
        stem = folder.partition(".")[0]
        return f'no single type is named "{stem}"', suggestion(
            stem, singles
        ) or "move it into a type's folder"
    patterns = ", ".join(p for t in audit.types for p in t.files if path.startswith(p.partition("{")[0]))
    return "no content type claims it", f"options.files here: {patterns}" if patterns else "move it"
