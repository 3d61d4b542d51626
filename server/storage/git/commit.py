"""Commits that contain exactly the bytes that were written, even if the files have changed since."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from server.errors import CommitError
from server.storage.git.command import git_as_owner, git_or_fail
from server.storage.git.full_disk import write_objects_as_owner
from server.storage.git.index import OWN_INDEX, copy_index, set_files
from server.storage.git.repository import GitFile, Repository, Tree
from server.storage.git.written import KnownVersions, OthersCommits, committed_by_others, store_blob

_FORBIDDEN_NAME_CHARS = re.compile(r"[\x00-\x1f\x7f<>]+")
_AUTHOR_VARIABLES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")  # These override the configured author.
_FILE_MODE = "100644"
_MESSAGE_FILE = "bifolio-message"  # name of a file in the repository's folder
# fast-import unpacks its pack immediately, so compression is useless. Disabling it makes a commit in a folder
# of 5,000 files 6 ms faster.
_UNPACKED_ENVIRONMENT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "pack.compression",
    "GIT_CONFIG_VALUE_0": "0",
}


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a git commit."""

    name: str
    email: str

    @classmethod
    def parse(cls, ident: str) -> "Person":
        name, _, email = ident.rpartition(" <")
        return cls(name, email.rstrip(">"))

    def author(self, name: str, email: str) -> "Person":
        return Person(name or self.name, email or self.email)

    @property
    def ident(self) -> str:
        name = " ".join(_FORBIDDEN_NAME_CHARS.sub(" ", self.name).split()).strip(".,:;\"'") or "unknown"
        return f"{name} <{_FORBIDDEN_NAME_CHARS.sub('', self.email).strip()}>"

    def environment(self, role: str, unix_time: int) -> dict[str, str]:
        name, _, email = self.ident.rpartition(" <")
        return {
            f"GIT_{role}_NAME": name,
            f"GIT_{role}_EMAIL": email[:-1],
            f"GIT_{role}_DATE": f"@{unix_time} +0000",
        }


def local_author(root: Path) -> Person | None:
    """Return the author that `git commit` would use, or None if no author is configured."""
    overrides = {name: os.environ[name] for name in _AUTHOR_VARIABLES if name in os.environ}
    try:
        ident = git_as_owner(root, "var", "GIT_AUTHOR_IDENT", environment=overrides).decode(errors="replace")
    except CommitError:
        return None
    return Person.parse(ident.rpartition(">")[0] + ">")


@dataclass(frozen=True, slots=True)
class NewCommit:
    """Input for a commit. Times are in seconds since 1970."""

    files: Mapping[str, bytes | Path | None]  # new contents: bytes, a file to copy, or None to delete
    message: str
    author: Person
    author_time: int
    committer: Person
    commit_time: int
    base: str = ""  # the commit that was checked out when the files were written, or "" if unknown
    joins: str = ""  # the second parent of a merge commit
    ready: str = ""  # an existing commit with this content, used if `base` is still checked out
    known: Mapping[str, GitFile] = field(default_factory=dict)  # contents that are already in git
    exact: bool = False  # If `ready` can't be used, no commit is created.
    bases: Mapping[str, KnownVersions] = field(default_factory=dict)  # known versions of files, by path


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """Commit that no branch points to yet. `commit` is "" if nothing has changed.

    `changed_files` is None if git hooks may have changed additional files.
    """

    commit: str = ""
    changed_files: Tree | None = None
    created_at: int | None = None


# --- the contents ------------------------------------------------------------------------------------


def store_changed_files(repository: Repository, new: NewCommit, head: str) -> Tree:
    """Store the new contents in git, and return the files that a commit on top of `head` must change.

    Files that are unchanged, or that others have committed since the write, are left out. Ignored files and
    files in nested repositories are left out too, except in a merge. Raises CommitError if git fails.
    """
    root, paths = repository.root, list(new.files)
    committed = repository.tree(head, paths)
    # In a merge, ignored and nested files are committed too. Otherwise the merge would delete them.
    ours = {path for path in paths if new.joins or not is_nested(root, path)}
    new_paths = [path for path in paths if path in ours and path not in committed]
    ignored = set() if new.joins else _ignored_paths(root, new_paths)
    changed: dict[str, GitFile | None] = {}
    for path in paths:
        if path not in ours or path in ignored:
            continue
        before, content = committed.get(path), new.files[path]
        after = new.known.get(path)
        if after is None and content is not None:
            after = GitFile(_mode(before), store_blob(root, path, content))
        basis = new.bases.get(path, KnownVersions(new.base))
        if (
            after != before
            and committed_by_others(repository, path, content, basis, head) is OthersCommits.NOTHING_NEWER
        ):
            changed[path] = after
    return changed


def _mode(before: GitFile | None) -> str:
    return before.mode if before and before.mode.startswith("100") else _FILE_MODE


def is_nested(root: Path, path: str) -> bool:
    folders = list((root / path).parents)
    return any(os.path.lexists(folder / ".git") for folder in folders[: folders.index(root)])


def _ignored_paths(root: Path, paths: list[str]) -> set[str]:
    if not paths:
        return set()
    options = ("--others", "--ignored", "--exclude-standard", "-z", "--", *paths)
    return set(os.fsdecode(git_as_owner(root, "ls-files", *options)).split("\0"))


# --- the commit --------------------------------------------------------------------------------------


def prepare_commit(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Create a commit on top of `head`, without moving the branch or running hooks, and return its id."""
    lines = [
        b"commit refs/bifolio/next\nmark :1",
        f"author {new.author.ident} {new.author_time} +0000".encode(),
        f"committer {new.committer.ident} {new.commit_time} +0000".encode(),
        b"data %d\n%b" % (len(message := new.message.encode()), message),
    ]
    if head:
        lines.append(f"from {head}".encode())
    if new.joins:
        lines.append(f"merge {new.joins}".encode())
    for path, file in changed.items():
        name = quote_path(os.fsencode(repository.prefix + path))
        lines.append(b"M %b %b %b" % (file.mode.encode(), file.id.encode(), name) if file else b"D " + name)
    none = repository.null_id.encode()
    # Delete the temporary ref. The branch is moved later, when the new index is ready.
    lines.append(b"\nget-mark :1\nreset refs/bifolio/next\nfrom %b\n\n" % none)
    options = ("--quiet", "--cat-blob-fd=1", "--date-format=raw", "--force")
    stream, began = b"\n".join(lines), time.time()
    try:
        printed = write_objects_as_owner(
            repository.root, "fast-import", *options, stdin=stream, environment=_UNPACKED_ENVIRONMENT
        )
    except CommitError:
        _remove_crash_reports(repository, began)
        raise
    return printed.decode().strip()


def _remove_crash_reports(repository: Repository, since: float) -> None:
    for report in repository.folder.glob("fast_import_crash_*"):
        with suppress(OSError):
            if report.stat().st_mtime > since - 1:
                report.unlink()


def quote_path(path: bytes) -> bytes:
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"' % path


def prepare_by_git(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Create a commit as `git commit` does, with hooks and a signature, but without moving a branch.

    Return its id, or "" if nothing has changed. Raises CommitError if git or a hook fails.
    """
    index, message = repository.folder / OWN_INDEX, repository.folder / _MESSAGE_FILE
    with _own_files(repository, new) as environment:
        # Copy the index with the files' times, so that git commands in hooks need not read all files.
        copy_index(repository, index)
        base = ("--reset", head) if head else ("--empty",)
        git_as_owner(repository.root, "read-tree", *base, environment=environment)
        set_files(repository, changed, index)
        message.write_bytes(new.message.encode())
        kinds = ("pre-merge-commit", "merge") if new.joins else ("pre-commit", "message")
        run_hook(repository, environment, kinds[0])
        run_hook(repository, environment, "prepare-commit-msg", str(message), kinds[1])
        run_hook(repository, environment, "commit-msg", str(message))
        return _commit_tree(repository, new, head, environment)


def rebase(
    repository: Repository, new: NewCommit, commit: str, head: str, files: Tree, *, by_git: bool
) -> str:
    """Create a new commit on top of `head` with the changes of `commit`, without hooks, and return its id.

    `by_git` is True if `prepare_by_git` created `commit`. Only in this case, return "" if `head` already
    contains the changes.
    """
    if not by_git:
        return prepare_commit(repository, new, head, files)
    with _own_files(repository, new) as environment:
        git_as_owner(repository.root, "read-tree", head, environment=environment)
        set_files(repository, files, repository.folder / OWN_INDEX)
        message = git_as_owner(repository.root, "log", "-1", "--format=%B", commit)
        (repository.folder / _MESSAGE_FILE).write_bytes(message)
        return _commit_tree(repository, new, head, environment)


@contextmanager
def _own_files(repository: Repository, new: NewCommit) -> Iterator[dict[str, str]]:
    index, message = repository.folder / OWN_INDEX, repository.folder / _MESSAGE_FILE
    author = new.author.environment("AUTHOR", new.author_time)
    committer = new.committer.environment("COMMITTER", new.commit_time)
    try:
        yield {"GIT_INDEX_FILE": str(index), **author, **committer}
    finally:
        index.unlink(missing_ok=True)
        message.unlink(missing_ok=True)


def _commit_tree(repository: Repository, new: NewCommit, head: str, environment: dict[str, str]) -> str:
    root = repository.root
    tree = git_as_owner(root, "write-tree", environment=environment).decode().strip()
    if (
        head
        and not new.joins
        and tree == git_as_owner(root, "rev-parse", f"{head}^{{tree}}").decode().strip()
    ):
        return ""
    sign = ("-S",) if repository.signs else ()
    parents = [word for parent in (head, new.joins) if parent for word in ("-p", parent)]
    message = str(repository.folder / _MESSAGE_FILE)
    command = ("commit-tree", *sign, *parents, "-F", message, tree)
    return git_as_owner(root, *command, environment=environment).decode().strip()


def run_hook(repository: Repository, environment: dict[str, str], name: str, *arguments: str) -> None:
    """Run a git hook if it exists. Raises CommitError if it fails."""
    command = ("hook", "run", "--ignore-missing", name, "--", *arguments)
    try:
        git_as_owner(repository.root, *command, environment=environment)
    except CommitError as error:
        reason = str(error).removeprefix("git hook: ")
        raise CommitError(f"git commit: {reason}", refused=error.refused) from error


def is_own_commit(repository: Repository, commit: str, paths: Iterable[str]) -> bool:
    """Return True if Bifolio created this commit, and the commit changes one of the paths.

    Raises GitError if git fails.
    """
    form = "--format=%H %(trailers:key=Bifolio-Actor,valueonly)"
    last = git_or_fail(repository.root, "log", "-1", form, commit, "--", *paths).split()
    return last[:1] == [commit] and len(last) > 1
