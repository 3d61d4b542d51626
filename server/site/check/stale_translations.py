"""Check for outdated translations."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path

from server.documents.document import PUBLISHED
from server.documents.timestamps import from_seconds
from server.errors import GitError
from server.formats.regular_files import read_regular_file
from server.paths import cache_folder
from server.problems import Problem
from server.site.check.audit import Audit
from server.storage.git.log import Commit, CommitLog
from server.storage.git.refs import head_commit
from server.storage.git.repository import prefix_of
from server.storage.git.uncommitted import changed_paths

IGNORED_COMMITS = ".git-blame-ignore-revs"  # lists commits that only reformat files, as for `git blame`


def find_stale_translations(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each translation that is older than the document in the default locale.

    All changes in one commit count as simultaneous, and so do all uncommitted changes.
    """
    default = audit.settings.locales.default
    if not any(type_.localized for type_ in audit.types) or len(audit.settings.locales.available) < 2:
        return
    times = last_changes(audit.root)
    for type_ in audit.types if times else ():
        by_id: dict[str, dict[str, str]] = defaultdict(dict)
        for (document_id, locale, status), document in audit.snapshot.tables[type_.uid].versions.items():
            if status == PUBLISHED:
                by_id[document_id][locale] = document.path
        for paths in by_id.values():
            source = paths.pop(default, "")
            for path in paths.values():
                if times.get(source, 0) > times.get(path, inf):
                    yield _problem(path, source, times)


def _problem(path: str, source: str, times: Mapping[str, float]) -> Problem:
    changed = "has uncommitted changes" if times[source] == inf else f"changed on {_day(times[source])}"
    message = (
        f"this translation (last changed on {_day(times[path])}) is older than the document in the default "
        f"locale, {source} ({changed})"
    )
    fix = "update the translation"
    return Problem(path, None, message, fix, "warning", None, "stale-translation")


def _day(seconds: float) -> str:
    return from_seconds(seconds)[:10]


def last_changes(root: Path) -> dict[str, float]:
    """Return the time at which each file last changed, in seconds since 1970.

    For files with uncommitted changes, the time is infinity.
    """
    try:
        head = head_commit(root)
        if not head:
            return {}
        log = CommitLog(root, cache_folder(root))
        log.update(head)
        times = content_times(log.history_of(head), ignored_commits(root))
        uncommitted = changed_paths(root, cache=cache_folder(root))
    except GitError:
        return {}
    return {**times, **dict.fromkeys(uncommitted, inf)}


def content_times(commits: Iterable[Commit], ignored: frozenset[str] = frozenset()) -> dict[str, float]:
    """Return the time at which the content of each file last changed, in seconds since 1970.

    `commits` must be sorted from newest to oldest. Commits whose ids are in `ignored` do not count.
    """
    times: dict[str, float] = {}
    names: dict[str, str] = {}  # the current path of each renamed file, by its earlier path
    for commit in commits:
        for change in commit.changes:
            path = names.get(change.path, change.path)
            if change.status == "R":
                names.pop(change.path, None)
                names[change.before] = path
            is_same = change.status == "R" and change.similarity_percent == 100
            if not is_same and commit.id not in ignored:
                times[path] = max(times.get(path, 0), commit.committed)
    return times


def ignored_commits(root: Path) -> frozenset[str]:
    top = root.joinpath(*[".."] * prefix_of(root).count("/"))
    try:
        text = read_regular_file(top / IGNORED_COMMITS).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(line.partition("#")[0].strip() for line in text.splitlines())
