"""Creation of commits that contain exactly the given files and contents. All other changes in the site stay
uncommitted.

A commit contains what was written, even if the files on disk have changed since then. First, the git objects
for the commit are created (`prepare_commit`). Then, while git's index is locked, the branch and the index are
moved to the new commit (`storage.git.index`).
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from server.errors import CommitError
from server.storage.git.command import git_as_owner, git_or_fail
from server.storage.git.index import OWN_INDEX, copy_index, set_files
from server.storage.git.repository import Repository, Staged, Tree
from server.storage.git.written import Basis, ByOthers, committed_by_others, store_blob

_FORBIDDEN_NAME_CHARS = re.compile(r"[\x00-\x1f\x7f<>]+")
_AUTHOR_VARIABLES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")  # These override the configured author.
_FILE_MODE = "100644"
_MESSAGE_FILE = "bifolio-message"  # file name in the repository's folder
# fast-import unpacks its pack immediately. Without compression, this takes 6 ms less for a folder of 5,000
# files.
_UNPACKED_ENVIRONMENT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "pack.compression",
    "GIT_CONFIG_VALUE_0": "0",
}


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit."""

    name: str
    email: str

    @classmethod
    def of(cls, ident: str) -> "Person":
        name, _, email = ident.rpartition(" <")
        return cls(name, email.rstrip(">"))

    def author(self, name: str, email: str) -> "Person":
        """Return the author of a commit whose committer is this person. If the name or the email address is
        "", the committer's is used.
        """
        return Person(name or self.name, email or self.email)

    @property
    def ident(self) -> str:
        """Return the name and email address as `Name <email>`, without characters that git does not allow."""
        name = " ".join(_FORBIDDEN_NAME_CHARS.sub(" ", self.name).split()).strip(".,:;\"'") or "unknown"
        return f"{name} <{_FORBIDDEN_NAME_CHARS.sub('', self.email).strip()}>"

    def environment(self, role: str, at: int) -> dict[str, str]:
        name, _, email = self.ident.rpartition(" <")
        return {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email[:-1], f"GIT_{role}_DATE": f"@{at} +0000"}


def local_author(root: Path) -> Person | None:
    """Return the author that `git commit` would use for the repository at `root`, or None if none is
    configured.
    """
    overrides = {name: os.environ[name] for name in _AUTHOR_VARIABLES if name in os.environ}
    try:
        ident = git_as_owner(root, "var", "GIT_AUTHOR_IDENT", environment=overrides).decode(errors="replace")
    except CommitError:
        return None
    return Person.of(ident.rpartition(">")[0] + ">")


@dataclass(frozen=True, slots=True)
class NewCommit:
    """Input for the creation of a commit. Times are in seconds since 1970. Paths are relative to the site.

    - `files` maps each path to its new content: bytes, the path of a file to copy, or None for a deletion.
    - `base` is the commit that was checked out when the files were written, or "" if it is unknown.
    - `joins` is the second parent if this is a merge commit, and otherwise "".
    - `ready` is the id of an existing commit with the same content, or "". The existing commit is used if
      `base` is still checked out. Otherwise a new commit is created, unless `exact` is set.
    - `known` maps paths to contents that are already stored in git.
    - `bases` maps a path to the versions that the write to this file has replaced. For a file that is not in
      `bases`, this is its version in `base`.
    """

    files: Mapping[str, bytes | Path | None]
    message: str
    author: Person
    authored: int
    committer: Person
    committed: int
    base: str = ""
    joins: str = ""
    ready: str = ""
    known: Mapping[str, Staged] = field(default_factory=dict)
    exact: bool = False
    bases: Mapping[str, Basis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """A commit that was created but is not on any branch yet. `commit` is "" if there was nothing to commit.

    `changed` contains the files that the commit changes. It is None if these may differ from the files that
    were passed in. `at` is the time of the commit in seconds since 1970.
    """

    commit: str = ""
    changed: Tree | None = None
    at: int | None = None


# --- the contents ------------------------------------------------------------------------------------


def changes_of(repository: Repository, new: NewCommit, head: str) -> Tree:
    """Store the new contents in git. Return the files that the new commit must change, compared with HEAD.

    These files are omitted:
    - unchanged files, ignored files, and files in nested repositories;
    - files for which other people have already committed this write or a newer version, if the file on disk
      differs from what was written.

    Raises CommitError.
    """
    root, paths = repository.root, list(new.files)
    committed = repository.tree(head, paths)
    # In a merge, ignored and nested files are committed too. Otherwise the merge would delete them.
    ours = {path for path in paths if new.joins or not is_nested(root, path)}
    new_paths = [path for path in paths if path in ours and path not in committed]
    ignored = set() if new.joins else _ignored_paths(root, new_paths)
    changed: dict[str, Staged | None] = {}
    for path in paths:
        if path not in ours or path in ignored:
            continue
        before, content = committed.get(path), new.files[path]
        after = new.known.get(path)
        if after is None and content is not None:
            after = Staged(_mode(before), store_blob(root, path, content))
        basis = new.bases.get(path, Basis(new.base))
        if (
            after != before
            and committed_by_others(repository, path, content, basis, head) is ByOthers.NOTHING_NEWER
        ):
            changed[path] = after
    return changed


def _mode(before: Staged | None) -> str:
    return before.mode if before and before.mode.startswith("100") else _FILE_MODE


def is_nested(root: Path, path: str) -> bool:
    """Whether a file belongs to a repository that is nested in the site, such as a submodule."""
    folders = list((root / path).parents)
    return any(os.path.lexists(folder / ".git") for folder in folders[: folders.index(root)])


def _ignored_paths(root: Path, paths: list[str]) -> set[str]:
    if not paths:
        return set()
    options = ("--others", "--ignored", "--exclude-standard", "-z", "--", *paths)
    return set(os.fsdecode(git_as_owner(root, "ls-files", *options)).split("\0"))


# --- the commit --------------------------------------------------------------------------------------


def prepare_commit(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Create a commit on top of the commit `head`, and return its id. The branch is not moved."""
    lines = [
        b"commit refs/bifolio/next\nmark :1",
        f"author {new.author.ident} {new.authored} +0000".encode(),
        f"committer {new.committer.ident} {new.committed} +0000".encode(),
        b"data %d\n%b" % (len(message := new.message.encode()), message),
    ]
    if head:
        lines.append(f"from {head}".encode())
    if new.joins:
        lines.append(f"merge {new.joins}".encode())
    for path, file in changed.items():
        name = quote_path(os.fsencode(repository.prefix + path))
        lines.append(b"M %b %b %b" % (file.mode.encode(), file.id.encode(), name) if file else b"D " + name)
    none = repository.nothing.encode()
    # Delete the temporary ref. The branch is moved later, when the new index is ready.
    lines.append(b"\nget-mark :1\nreset refs/bifolio/next\nfrom %b\n\n" % none)
    options = ("--quiet", "--cat-blob-fd=1", "--date-format=raw", "--force")
    stream, began = b"\n".join(lines), time.time()
    try:
        printed = git_as_owner(
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
    """Quote a path in the way that `git fast-import` requires."""
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"' % path


def prepare_by_git(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Create a commit with `git commit`, on top of the commit `head` or as the first commit. Hooks and the
    signing program run. The branch is not moved.

    Return the id of the new commit, or "" if the hooks have undone all changes. Raises CommitError if a hook
    rejects the commit.
    """
    index, message = repository.folder / OWN_INDEX, repository.folder / _MESSAGE_FILE
    with _own_files(repository, new) as environment:
        copy_index(repository, index)  # It includes the files' times, so that hooks need not read all files.
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
    """Create a prepared commit again on top of a different commit, `head`. Hooks are not run again.

    `files` contains the files that the commit changes. Return the id of the new commit, or "" if `head`
    already contains the changes. `by_git` means that the original commit was created by `prepare_by_git`.
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
    """Context manager: yield the environment variables for git commands that create a commit with a separate
    index.

    At the end of the block, the separate index and the file with the commit message are deleted.
    """
    index, message = repository.folder / OWN_INDEX, repository.folder / _MESSAGE_FILE
    author = new.author.environment("AUTHOR", new.authored)
    committer = new.committer.environment("COMMITTER", new.committed)
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
    """Whether a commit was created by Bifolio and changes at least one of the given files.

    Raises GitError.
    """
    form = "--format=%H %(trailers:key=Bifolio-Actor,valueonly)"
    last = git_or_fail(repository.root, "log", "-1", form, commit, "--", *paths).split()
    return last[:1] == [commit] and len(last) > 1
