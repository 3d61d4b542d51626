"""Makes a commit of exactly some files, with contents that are given: all else, staged or changed, stays.

The contents are those that were written, not those that are on disk by now. A commit is made of objects first
(`prepare_commit`), which nobody sees. Then the branch moves to it, and the index with it, under the lock of
the index (`storage.git.index`).
"""

import filecmp
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from server.errors import CommitError
from server.storage.git.command import git_as_owner, git_or_fail
from server.storage.git.index import OWN_INDEX, copy_index, set_files
from server.storage.git.refs import are_commits
from server.storage.git.repository import Repository, Staged, Tree

_FORBIDDEN_NAME_CHARS = re.compile(r"[\x00-\x1f\x7f<>]+")
_AUTHOR_VARIABLES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")  # in the environment, before what is configured
_FILE_MODE = "100644"
_MESSAGE_FILE = "bifolio-merge-message"  # in the folder of the repository
_ACTOR_TRAILER = "Bifolio-Actor: "  # in every commit of ours
# What fast-import packs it unpacks at once: a folder of 5,000 files takes 6 ms less to pack so.
_UNPACKED_ENVIRONMENT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "pack.compression",
    "GIT_CONFIG_VALUE_0": "0",
}


@dataclass(frozen=True, slots=True)
class Person:
    """Who is named in a commit."""

    name: str
    email: str

    @classmethod
    def of(cls, ident: str) -> "Person":
        """Who `Name <e-mail>` is."""
        name, _, email = ident.rpartition(" <")
        return cls(name, email.rstrip(">"))

    @property
    def ident(self) -> str:
        """As git has it, `Name <e-mail>`, without what would end either."""
        name = " ".join(_FORBIDDEN_NAME_CHARS.sub(" ", self.name).split()).strip(".,:;\"'") or "unknown"
        return f"{name} <{_FORBIDDEN_NAME_CHARS.sub('', self.email).strip()}>"

    def environment(self, role: str, at: int) -> dict[str, str]:
        """What tells git who this is, for AUTHOR or COMMITTER."""
        name, _, email = self.ident.rpartition(" <")
        return {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email[:-1], f"GIT_{role}_DATE": f"@{at} +0000"}


def local_author(root: Path) -> Person | None:
    """The author that `git commit` would name at `root`; None where git does not know one."""
    given = {name: os.environ[name] for name in _AUTHOR_VARIABLES if name in os.environ}
    try:
        ident = git_as_owner(root, "var", "GIT_AUTHOR_IDENT", environment=given).decode(errors="replace")
    except CommitError:
        return None
    return Person.of(ident.rpartition(">")[0] + ">")


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A commit that is to be made. `files` have bytes, the file that holds them, or None where one is gone.

    Paths are relative to the site. `base` is the commit that was checked out when the files were written,
    "" where that is not known. Times are seconds since 1970. `joins` is the second parent of a merge; `ready`
    is a commit with all of this, which is made already and counts where `base` is still checked out. `known`
    are files whose contents git has already. `exact`: the commit is the one that is ready, or none.
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


@dataclass(frozen=True, slots=True)
class Made:
    """A commit that is made, and to which nothing leads yet; "" where there is nothing to commit.

    `changed` are the files that it changes, None where it may be others than were asked for. `at` is its time
    in seconds since 1970.
    """

    commit: str = ""
    changed: Tree | None = None
    at: int | None = None


# --- what is to be committed -------------------------------------------------------------------------


def changes_of(repository: Repository, new: NewCommit, head: str) -> Tree:
    """What a commit changes of the one that is checked out, with all of its contents known to git.

    Left out are files that are so already, that git ignores or that are another repository's, and those that
    somebody has committed since they were written and has changed again. Raises CommitError.
    """
    root, paths = repository.root, list(new.files)
    there = repository.tree(head, paths)
    # What was merged is in a commit already, and without it this one would take it out again.
    ours = {path for path in paths if new.joins or not is_nested(root, path)}
    new_paths = [path for path in paths if path in ours and path not in there]
    ignored = set() if new.joins else _ignored_paths(root, new_paths)
    changed: dict[str, Staged | None] = {}
    for path in paths:
        if path not in ours or path in ignored:
            continue
        before, content = there.get(path), new.files[path]
        after = new.known.get(path)
        if after is None and content is not None:
            after = Staged(_mode(before), _hash(root, path, content))
        if after != before and not is_overtaken(root, path, content, new.base, head):
            changed[path] = after
    return changed


def _mode(before: Staged | None) -> str:
    return before.mode if before and before.mode.startswith("100") else _FILE_MODE


def _hash(root: Path, path: str, content: bytes | Path) -> str:
    """The id of a content in git, as its filters make it."""
    if isinstance(content, Path):
        # The filters are those of the file's own path, not of the path where the content is kept.
        content = content.read_bytes() if content.stat().st_size < 1_000_000 else content
    if isinstance(content, bytes):
        printed = git_as_owner(root, "hash-object", "-w", "--stdin", f"--path={path}", given=content)
    else:
        printed = git_as_owner(root, "hash-object", "-w", f"--path={path}", "--", str(content.resolve()))
    return printed.decode().strip()


def is_nested(root: Path, path: str) -> bool:
    """Whether a file is in another repository inside of the site, such as a submodule."""
    folders = list((root / path).parents)
    return any(os.path.lexists(folder / ".git") for folder in folders[: folders.index(root)])


def _ignored_paths(root: Path, paths: list[str]) -> set[str]:
    """Those of some new paths that git ignores."""
    if not paths:
        return set()
    options = ("--others", "--ignored", "--exclude-standard", "-z", "--", *paths)
    return set(os.fsdecode(git_as_owner(root, "ls-files", *options)).split("\0"))


def is_overtaken(root: Path, path: str, content: bytes | Path | None, base: str, head: str) -> bool:
    """Whether somebody else has committed a file since it was written, and it is not as it was written."""
    if not base or base == head or is_on_disk(root / path, content):
        return False
    if not head or not are_commits(root, base):  # git has forgotten it, as after a rewritten history.
        return False
    others = ("--invert-grep", f"--grep=^{_ACTOR_TRAILER}", "--end-of-options", f"{base}..{head}", "--", path)
    return bool(git_or_fail(root, "log", "-1", "--format=%H", *others))


def is_on_disk(file: Path, content: bytes | Path | None) -> bool:
    """Whether a file has a content, which is bytes or the file that holds them; or is gone, for None."""
    try:
        if content is None:
            return not os.path.lexists(file)
        if isinstance(content, Path):
            return file.samefile(content) or filecmp.cmp(file, content, shallow=False)
        return file.read_bytes() == content
    except OSError:
        return False


# --- making it ---------------------------------------------------------------------------------------


def prepare_commit(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Make the objects of a commit on top of another; nothing leads to them yet. Returns its id."""
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
    # No name is to be left of it: the branch moves to it by itself, when the index is ready.
    lines.append(b"\nget-mark :1\nreset refs/bifolio/next\nfrom %b\n\n" % none)
    options = ("--quiet", "--cat-blob-fd=1", "--date-format=raw", "--force")
    stream, began = b"\n".join(lines), time.time()
    try:
        printed = git_as_owner(
            repository.root, "fast-import", *options, given=stream, environment=_UNPACKED_ENVIRONMENT
        )
    except CommitError:
        _remove_crash_reports(repository, began)
        raise
    return printed.decode().strip()


def _remove_crash_reports(repository: Repository, since: float) -> None:
    """Remove what fast-import has written about its failure: it is in the error already."""
    for report in repository.folder.glob("fast_import_crash_*"):
        with suppress(OSError):
            if report.stat().st_mtime > since - 1:
                report.unlink()


def quote_path(path: bytes) -> bytes:
    """A path as fast-import reads any."""
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        path = path.replace(plain, escaped)
    return b'"%b"' % path


def commit_by_git(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Let `git commit` make a commit, with the hooks and signatures of the repository; the branch moves.

    It has an index of its own. Returns the commit's id. Raises CommitError where a hook refuses it.
    """
    index = repository.folder / OWN_INDEX
    copy_index(repository, index)
    environment = {"GIT_INDEX_FILE": str(index)}
    try:
        base = ("-m", head) if head else ("--empty",)
        git_as_owner(repository.root, "read-tree", *base, environment=environment)
        set_files(repository, changed, index)
        environment |= new.author.environment("AUTHOR", new.authored)
        environment |= new.committer.environment("COMMITTER", new.committed)
        options = ("--quiet", "--cleanup=verbatim", "--file=-")
        message = new.message.encode()
        git_as_owner(repository.root, "commit", *options, given=message, environment=environment)
    finally:
        index.unlink(missing_ok=True)
    return repository.head()


def prepare_by_git(repository: Repository, new: NewCommit, head: str, changed: Tree) -> str:
    """Make the objects of a commit on top of `head`, with the hooks and signatures that git has for it.

    Nothing leads to them yet. Returns its id. Raises CommitError where a hook refuses it.
    """
    root, index, message = repository.root, repository.folder / OWN_INDEX, repository.folder / _MESSAGE_FILE
    copy_index(repository, index)
    environment = {"GIT_INDEX_FILE": str(index)}
    environment |= new.author.environment("AUTHOR", new.authored)
    environment |= new.committer.environment("COMMITTER", new.committed)

    def run_hook(name: str, *arguments: str) -> None:
        command = ("hook", "run", "--ignore-missing", name, "--", *arguments)
        git_as_owner(root, *command, environment=environment)

    try:
        git_as_owner(root, "read-tree", "-m", head, environment=environment)
        set_files(repository, changed, index)
        message.write_bytes(new.message.encode())
        run_hook("pre-merge-commit" if new.joins else "pre-commit")
        run_hook("prepare-commit-msg", str(message), "merge" if new.joins else "message")
        run_hook("commit-msg", str(message))
        tree = git_as_owner(root, "write-tree", environment=environment).decode().strip()
        sign = ("-S",) if repository.signs else ()
        parents = ("-p", head, *(("-p", new.joins) if new.joins else ()))
        command = ("commit-tree", *sign, *parents, "-F", str(message), tree)
        return git_as_owner(root, *command, environment=environment).decode().strip()
    finally:
        index.unlink(missing_ok=True)
        message.unlink(missing_ok=True)


def is_own_commit(repository: Repository, commit: str, paths: Iterable[str]) -> bool:
    """Return whether this server made a commit, and it changes some of the given files. Raises GitError."""
    form = "--format=%H %(trailers:key=Bifolio-Actor,valueonly)"
    last = git_or_fail(repository.root, "log", "-1", form, commit, "--", *paths).split()
    return last[:1] == [commit] and len(last) > 1
