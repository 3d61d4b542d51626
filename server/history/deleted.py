"""The documents of a type that a commit has, and the site has no more."""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from server.documents.document import DRAFT, PUBLISHED
from server.history.versions import Timeline, Version
from server.schema.model import Type
from server.site.site import State
from server.storage.git.log import Commit

Deleted = tuple[str, list[Version]]  # a documentId, and what was deleted of it: a version of each file
_UNCOMMITTED = -1  # the place of what is not committed before all commits, the newest of which has 0


def deleted_documents(
    state: State, type_: Type, timeline: Timeline, root: Path, *, drafts: bool
) -> list[Deleted]:
    """The documents that were deleted and are not there again, the last deleted first; not what was renamed.

    The versions of each begin with that of the default locale. Without `drafts`, those that were published.
    """
    lasts = _last_changes(timeline)
    there = {key[1] for key in state.snapshot.claims if key[0] == type_.uid}
    found = []
    for (uid, document_id), paths in timeline.paths.items():
        if uid != type_.uid or document_id in there or any((root / path).is_file() for path in paths):
            continue
        gone = list(_gone(timeline, lasts, paths, drafts=drafts))
        if gone:
            first = state.settings.locales.default
            versions = sorted(
                (v for _, v in gone), key=lambda v: (v.locale != first, v.locale, v.status == DRAFT)
            )
            found.append((min(place for place, _ in gone), document_id, versions))
    return [(document_id, versions) for _, document_id, versions in sorted(found, key=itemgetter(0, 1))]


def _last_changes(timeline: Timeline) -> dict[str, tuple[str, int, Commit]]:
    """What the last commit did that touched a path, its place among the commits, and itself."""
    lasts: dict[str, tuple[str, int, Commit]] = {}
    for place, commit in enumerate(timeline.commits):
        for change in commit.changes:
            lasts.setdefault(change.path, (change.status, place, commit))
            if change.status == "R":
                lasts.setdefault(change.before, ("renamed", place, commit))
    return lasts


def _gone(
    timeline: Timeline, lasts: dict[str, tuple[str, int, Commit]], paths: set[str], *, drafts: bool
) -> Iterator[tuple[int, Version]]:
    """The deletion of each file that was not renamed: its place among the commits, and the version."""
    for path in sorted(paths):
        claim = timeline.claims[path]
        status, place, commit = lasts[path]
        if status == "renamed" or (claim.draft and not drafts):
            continue
        which = DRAFT if claim.draft else PUBLISHED
        if status == "D":
            parent = commit.parents[0] if commit.parents else ""
            yield place, Version(commit, parent, "", path, claim.locale, which, "delete")
        else:
            yield _UNCOMMITTED, Version(None, timeline.head, "", path, claim.locale, which, "delete")
