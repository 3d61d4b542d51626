"""Resolution of git names and times to commits."""

import os
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from server.errors import GitError
from server.storage.files import file_mark_of
from server.storage.git.command import git, git_or_fail
from server.storage.git.log import CommitLog
from server.storage.git.repository import head_by_git, location

MAX_NAME_CHARS = 200
BRANCH_PREFIX, TAG_PREFIX, REMOTE_PREFIX = "refs/heads/", "refs/tags/", "refs/remotes/"
_PUBLIC_PREFIXES = (BRANCH_PREFIX, TAG_PREFIX, REMOTE_PREFIX)
_HEAD_LIKE = re.compile(r"(?:[A-Z]+_)*HEAD")
_SHORTEST_ID = re.compile(r"[0-9a-f]{4,6}", re.IGNORECASE)
_SHORT_ID = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)  # long enough to be unlikely to be a name
_REFTABLE_HEAD = "refs/heads/.invalid"  # The file HEAD contains this if git stores refs in a reftable.
# A name or id with an optional suffix such as `~2` or `^`. Excludes everything that git could parse as an
# option.
_NAME = re.compile(r"(?!-)[\w./+@#=,%-]+(?:[~^]\d*)*")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+ -]\d\d:\d\d)?)?")
COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def head_commit(root: Path) -> str:
    """Return the id of the checked-out commit, or "" in a repository without commits. Raises GitError."""
    name = _read_head(root)
    if commit := name if COMMIT_ID.fullmatch(name) else _read_ref_file(root, name):
        return commit
    return head_by_git(root)


def checked_out_branch(root: Path) -> str:
    """Return the name of the checked-out branch, or "" if HEAD is detached."""
    name = _read_head(root) or (git(root, "symbolic-ref", "--quiet", "HEAD") or "").rstrip("\n")
    return name.removeprefix(BRANCH_PREFIX) if name.startswith(BRANCH_PREFIX) else ""


def ref_commit(root: Path, name: str) -> str:
    """Return the commit of a ref such as `refs/heads/main`, or "" if the ref does not exist."""
    if ".." in name:  # Git allows no such ref, and it could be the path of another file.
        return ""
    if commit := _read_ref_file(root, name):
        return commit
    if not _may_exist(root, name):
        return ""
    # `show-ref --verify` can't be used, because its exit status is the same for a missing ref and a failure.
    output = git(root, "for-each-ref", "--format=%(objectname) %(refname)", "--", name) or ""
    ids = {one: id_ for id_, one in (line.split(" ", 1) for line in output.splitlines())}
    return ids.get(name, "")


def _read_head(root: Path) -> str:
    place = location(root)
    try:  # Reading the file is faster than starting git, which is run only if this returns "".
        text = (place.folder / "HEAD").read_text().strip() if place else ""
    except (OSError, UnicodeDecodeError):
        return ""
    name = text.removeprefix("ref: ")
    return "" if name == _REFTABLE_HEAD else name


def _read_ref_file(root: Path, name: str) -> str:
    place = location(root) if name.startswith("refs/") else None
    try:
        # A packed ref has no file, so the result is "".
        text = (place.common / name).read_text().strip() if place else ""
    except (OSError, UnicodeDecodeError):
        return ""
    return text if COMMIT_ID.fullmatch(text) else ""


def _may_exist(root: Path, name: str) -> bool:
    """Check, without starting git, whether a ref may exist. Return False if it certainly does not exist."""
    place = location(root)
    if place is None:
        return False
    # git writes to packed-refs before it deletes a ref's own file, so the file must be looked for first.
    if os.path.isfile(place.common / name) or (place.common / "reftable").is_dir():
        return True
    try:
        packed = (place.common / "packed-refs").read_text(errors="surrogateescape")
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return f" {name}\n" in packed


def find_commit(root: Path, name: str) -> str:
    """Return the id of the commit that `name` refers to, or "" if it refers to no commit.

    The name can be a commit id, a tag, a local branch, a remote branch or another name that git accepts. If
    it is ambiguous, the first of these is used.
    """
    if len(name) > MAX_NAME_CHARS:
        return ""
    base, suffix = _split(name)
    if is_special_git_name(base) or COMMIT_ID.fullmatch(base):
        return _parse(root, name)
    commit = _by_short_id(root, base) or _tag_commit(root, base) or branch_commit(root, base)
    return _parse(root, f"{commit or base}{suffix}") if suffix or not commit else commit


def find_public_commit(root: Path, name: str) -> str:
    """Return the id of the commit that `name` refers to, or "" if it refers to no commit.

    In contrast to `find_commit`, only commit ids, HEAD, tags, branches and remote branches are found. Git's
    other names, such as `stash`, refer to work that its author has not committed.
    """
    if len(name) > MAX_NAME_CHARS:
        return ""
    base, suffix = _split(name)
    if COMMIT_ID.fullmatch(base) or base in ("HEAD", "@") or base.startswith(_PUBLIC_PREFIXES):
        return _parse(root, name)
    commit = _by_short_id(root, base) or _tag_commit(root, base) or branch_commit(root, base)
    if not commit and base.startswith(("heads/", "tags/", "remotes/")):
        return _parse(root, f"refs/{name}")
    commit = commit or _remote_commit(root, base) or _by_short_id(root, base, _SHORTEST_ID)
    return _parse(root, f"{commit}{suffix}") if commit and suffix else commit


def is_special_git_name(name: str) -> bool:
    return name in ("@", "stash") or name.startswith("refs/") or bool(_HEAD_LIKE.fullmatch(name))


def _split(name: str) -> tuple[str, str]:
    at = re.search(r"[~^]", name)
    return (name[: at.start()], name[at.start() :]) if at else (name, "")


def _parse(root: Path, name: str) -> str:
    if not _NAME.fullmatch(name) or ".." in name or "@{" in name:
        return ""
    options = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    commit = (git(root, "rev-parse", *options) or "").strip()
    return commit if COMMIT_ID.fullmatch(commit) else ""


def _by_short_id(root: Path, text: str, form: re.Pattern[str] = _SHORT_ID) -> str:
    if not form.fullmatch(text):
        return ""
    ids = (git(root, "rev-parse", f"--disambiguate={text.lower()}") or "").split()
    if not ids:
        return ""
    kinds = git_or_fail(root, "cat-file", "--batch-check", stdin="".join(f"{id_}\n" for id_ in ids))
    commits = [line.split()[0] for line in kinds.splitlines() if line.split()[1:2] == ["commit"]]
    return commits[0] if len(commits) == 1 else ""


def _tag_commit(root: Path, name: str) -> str:
    if not name or not name.isprintable():
        return ""
    return ref_commit(root, TAG_PREFIX + name) and _peel(root, TAG_PREFIX + name)


def _remote_commit(root: Path, name: str) -> str:
    if not name or not name.isprintable():
        return ""
    ref = REMOTE_PREFIX + name
    return ref_commit(root, ref) or ref_commit(root, f"{ref}/HEAD")


def _peel(root: Path, name: str) -> str:
    commit = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return (commit or "").strip()


def branch_commit(root: Path, name: str) -> str:
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        return ""
    return ref_commit(root, BRANCH_PREFIX + name)


def is_ancestor(root: Path, commit: str, later: str) -> bool:
    """Return True if `commit` is `later` or one of its ancestors. Raises GitError if git fails."""
    try:
        return (bool(commit) and commit == later) or _is_ancestor(root, commit, later)
    except LookupError:
        return False


# The cache reduces the time to apply a commit from a remote from 64 to 59.5 ms. Its hit rate is two thirds.
@lru_cache(maxsize=1024)
def _is_ancestor(root: Path, commit: str, later: str) -> bool:
    try:
        output = git(root, "merge-base", "--is-ancestor", commit, later)
    except GitError:
        if are_commits(root, commit, later):
            raise
        output = None
    if output is None:
        raise LookupError  # Not cached, because a fetch may add missing commits.
    return True


def are_commits(root: Path, *ids: str) -> bool:
    """Return True if every id is the id of an existing commit. Raises GitError if git fails."""
    lines = git_or_fail(root, "cat-file", "--batch-check", stdin="".join(f"{id_}\n" for id_ in ids))
    return all(line.split()[1:2] == ["commit"] for line in lines.splitlines())


def commits_outside_history(root: Path, commits: Collection[str], later: str) -> set[str]:
    """Return the commits that don't exist or are not in the history of `later`.

    Raises GitError if git fails.
    """
    requested = sorted(commits)
    lines = git_or_fail(root, "cat-file", "--batch-check", stdin="".join(f"{id_}\n" for id_ in requested))
    existing = {words[0] for line in lines.splitlines() if len(words := line.split()) == 3}
    revisions = "".join(f"{line}\n" for line in (*sorted(existing & {*requested}), f"^{later}"))
    unreachable = (
        set(git_or_fail(root, "rev-list", "--stdin", stdin=revisions).split()) if existing else set[str]()
    )
    return {id_ for id_ in requested if id_ not in existing or id_ in unreachable}


def parse_time(text: str, *, end: bool = True) -> float | None:
    """Convert a date or time to seconds since 1970. Return None if it is invalid.

    A date without a time means the end of that day in UTC or, if `end` is False, its start.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    day, clock, zone = match.groups()
    # In a URL's query, an unescaped "+" is decoded as a space.
    zone = "+00:00" if zone in (None, "Z") else zone.replace(" ", "+")
    try:
        at = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}")
        return (
            (at if clock or not end else at + timedelta(days=1, microseconds=-1)).astimezone(UTC).timestamp()
        )
    except (ValueError, OverflowError):
        return None


def commit_at(log: CommitLog, head: str, time: float) -> str:
    """Return the id of the newest commit that is not later than `time`, or "" if all commits are later.

    Only `head` and its chain of first parents are searched.
    """
    log.update(head)
    return next((one.id for one in log.main_line(head) if one.committed <= time), "")


def refs_cache_key(folder: Path, name: str) -> object:
    """Return a key that changes whenever the commit that `name` refers to may have changed."""
    common, base = folder / "commondir", re.split(r"[~^]", name, maxsplit=1)[0]
    try:
        shared = folder / common.read_text().strip() if common.exists() else folder
        symbolic = (
            folder / "HEAD",
            shared / "refs" / "remotes" / base,
            shared / "refs" / "remotes" / base / "HEAD",
        )
        places = [shared / target for place in symbolic if (target := _symbolic_target(place))]
    except (OSError, UnicodeDecodeError):
        return object()
    places += [shared / "refs" / kind / base for kind in ("", "heads", "tags", "remotes")]
    places += [folder / base, shared / base, *symbolic]
    places += [shared / "packed-refs", shared / "reftable" / "tables.list"]
    return tuple(file_mark_of(place) for place in places)


def _symbolic_target(place: Path) -> str:
    if not place.is_file():
        return ""
    kind, _, target = place.read_text().partition(":")
    return target.strip() if kind == "ref" else ""


def date_and_subject(root: Path, commit: str) -> tuple[str, str]:
    output = git(root, "log", "-1", "--no-show-signature", "--format=%cI%x00%s", "--end-of-options", commit)
    date, _, subject = (output or "").strip().partition("\0")
    return date, subject
