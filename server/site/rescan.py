"""A look at a site's files: whatever is not as it was read becomes one record.

Settings, schema, files and git's history are looked at together, so that a checkout that touches all
of them is one change. Call it under the site's write lock, with contents that no record is missing from;
but for `read_anew`, which reads everything for a schema that has changed, and takes long.
"""

import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import FILE
from server.config.webhooks import check_environment
from server.errors import GitError, SetupError
from server.formats.tree import SyntaxProblem
from server.problems import Problem
from server.site.changed_files import changed, is_own, is_settled, unsettled, walk_for
from server.site.commits.contents import contents_of
from server.site.commits.message import Joined
from server.site.configure import Configuration, configuration_mark, configure, is_configuration
from server.site.contents import Contents
from server.site.git_state import (
    GitState,
    find_retimed,
    git_change,
    git_moved,
    read_git_state,
    with_changed,
    with_commit,
    with_commits_since,
    with_written,
)
from server.site.loading import cores, load_contents, pause_collector, read_many
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.files import Signature, digest_of, is_skipped, same_files, signature_of, walk
from server.storage.git.commit import is_on_disk
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import changed_paths
from server.storage.intent import Write
from server.storage.links import has_links, link_problem
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.parse_cache import CachedEntry, frame, pack
from server.storage.read import read_bytes
from server.storage.store import DRAFT_MARK, Store
from server.storage.unreadable_files import last_good_entry, unreadable_entry

log = logging.getLogger("bifolio")

MAX_ATTEMPTS = 5  # Attempts to read a file that another program changes meanwhile.
MAX_LOCKED_FILES = 5000  # A larger site is not read anew under the write lock.
EMPTY_TIMEOUT_S = 0.1  # A file that stays empty for longer counts as empty.


def seems_changed(contents: Contents, hints: Collection[str] | None) -> bool:
    """Whether a look would find something, as far as can be told without the lock."""
    mark = configuration_mark(contents.root)
    if mark != contents.configuration.mark or contents.unsettled & mark.keys():
        return True
    if git_moved(contents.root, contents.git):
        return True
    paths, folders, links = changed(contents, hints or (), walk_for(contents, hints))
    return bool(paths) or (folders, links) != (contents.folders, contents.links)


@dataclass(frozen=True, slots=True)
class Anew:
    """Contents that were read under a schema which nobody shows yet; `packed` has their entries as bytes."""

    contents: Contents
    packed: bytearray


def read_new_configuration(contents: Contents) -> Configuration | None:
    """What site.yaml and content-types/ say now, where everything must be read anew for it; else None."""
    configuration, _, _ = _configuration(contents)
    same = configuration is None or configuration.shape == contents.configuration.shape
    return None if same else configuration


def read_anew(contents: Contents) -> Anew | None:
    """Everything under the schema that the files say now; None where that is the one of some contents.

    It takes long, and needs no lock: what changes meanwhile, `rescan_all` finds.
    """
    configuration = read_new_configuration(contents)
    if configuration is None:
        return None
    root, pictures, packed = contents.root, contents.image_cache, bytearray()
    with pause_collector():
        read = load_contents(root, pictures, configuration, cores=cores(), alone=False, packed=packed)
    return Anew(read, packed)


def rescan_all(
    contents: Contents, hints: Collection[str] | None, writes: int, anew: Anew | None = None
) -> Record | None:
    """What differs in the files: in those hinted at, or in all where None or anything else says so.

    `writes` is how many writes there have been. None where nothing differs. A new schema counts only with
    what `read_anew` has read under it; without that, everything is looked at under the one before.
    """
    configuration, young, settled = _configuration(contents)
    contents.unsettled -= settled
    if configuration and configuration.shape != contents.configuration.shape:
        if anew and anew.contents.configuration.says_as_much_as(configuration):
            return _replace_all(anew, writes, young)
        configuration, young = None, set()
    git = read_git_state(contents.root, contents.git)
    if configuration:
        git = with_changed(contents.root, git, configuration.mark)
    everything = hints is None or configuration or git_change(contents.git, git)
    found = walk_for(contents, None if everything else hints)
    paths, folders, links = changed(contents, hints or (), found)
    paths |= _find_retimed(contents, git)
    record = _read(contents, git, paths)
    record = replace(record, configuration=configuration, folders=folders, links=links, writes=writes)
    record = replace(record, unsettled=record.unsettled | young)
    same = not (record.entries or record.git or configuration)
    known = (contents.folders, contents.links, contents.writes)
    return None if same and (folders, links, writes) == known else record


def _replace_all(anew: Anew, writes: int, young: set[str]) -> Record:
    """Everything that was read anew, with what has changed in the files since."""
    read, packed = anew.contents, anew.packed
    git = read_git_state(read.root, read.git)
    paths, folders, links = changed(read, (), walk(read.root, read.store.layout.roots))
    since = _read(read, git, paths | _find_retimed(read, git))
    read.apply(replace(since, folders=folders, links=links, writes=writes))
    packed += frame(pack(CachedEntry(entry, 0) for entry in since.entries.values() if entry))
    whole = read.whole()
    gone = {path: None for path, entry in since.entries.items() if entry is None}
    return replace(whole, entries={**whole.entries, **gone}, unsettled=whole.unsettled | young, packed=packed)


def rescan_paths(contents: Contents, paths: Iterable[str]) -> Record:
    """What some files are now, whether or not they seem changed."""
    record = _read(contents, contents.git, paths)
    return replace(record, folders=contents.folders, links=contents.links, writes=contents.writes)


def rescan_written(
    contents: Contents, written: Collection[Write], writes: int, joined: Joined | None = None
) -> Record:
    """What the files are now that a write of this process has just put in place, and the branch at `joined`.

    Where settings or schemas are among them, all is read anew; of a large site, that is left to `rescan_all`.
    """
    paths: Collection[str] = {write.path for write in written}
    small = len(contents.entries) < MAX_LOCKED_FILES
    try:
        record = _join_writes(contents, written, joined) if joined else None
    except GitError as error:  # The files are in place: a look at all tells as much.
        log.warning("%s: what a commit has changed is not known: %s", contents.root, error)
        record = None
    if record:
        return replace(record, writes=writes)
    if joined or (small and any(map(is_configuration, paths))):
        found = rescan_all(contents, None, writes, read_anew(contents) if small else None)
        if found is not None:
            return found
    paths = same_files(paths, contents.links)
    owners = _owners(contents, paths)
    record = _read(contents, with_written(contents.git, paths), owners, ask_git=False)
    return replace(record, folders=contents.folders, links=contents.links, writes=writes)


def _join_writes(contents: Contents, written: Collection[Write], joined: Joined) -> Record | None:
    """What it comes to that files were written and the branch moved; None where only a look at all tells."""
    before, root, changed = contents.git, contents.root, joined.changed
    if changed is None or any(map(is_configuration, changed)):
        return None
    if before.committed.commit != joined.base or head_commit(root) != joined.ready:
        return None
    held = contents_of(root, written)
    same = {path: is_on_disk(root / path, held[path]) for path in changed if path in held}
    rest = changed_paths(root, changed.keys() - same.keys())
    files = {path: same.get(path, path not in rest) for path in changed}
    if joined.at is None:
        git = with_commits_since(root, before, joined.ready, files)
    else:
        renames = len({staged is None for staged in changed.values()}) == 2
        git = with_commit(root, before, joined.ready, joined.at, files, renames=renames)
    if git is None:
        return None
    if before.index != joined.index:  # A look is due, which finds out what else the index says.
        git = replace(git, index=before.index)
    names = {path for path in (*files, *(write.path for write in written)) if not is_skipped(path)}
    paths = same_files(names, contents.links)
    record = _read(contents, git, _owners(contents, paths), ask_git=False)
    return replace(record, folders=contents.folders, links=contents.links)


def rescan_committed(contents: Contents, git: GitState, paths: Collection[str]) -> Record:
    """What it comes to that some files have been committed; `git` says what git knows since."""
    same = same_files(paths, contents.links)
    owners = _owners(contents, same)
    moved = find_retimed(contents.git.committed, git.committed, paths)
    read = _with_drafts(contents, owners) if moved else ()
    record = _read(contents, git, read, ask_git=False)
    return replace(record, folders=contents.folders, links=contents.links, writes=contents.writes)


def _owners(contents: Contents, paths: Iterable[str]) -> set[str]:
    """The paths of the entries that some files belong to, or did before a file came to its description."""
    return {
        owner
        for path in paths
        for owner in (path, path.removesuffix(SIDECAR_SUFFIX))
        if owner in contents.entries or (owner == path) == is_own(contents, path)
    }


def _configuration(contents: Contents) -> tuple[Configuration | None, set[str], set[str]]:
    """What site.yaml and content-types/ say now, None where that is as before; and what of it may change
    again unnoticed, and what can not any more.

    Where they are broken, the last good configuration stays, with the problem, until they are sound.
    """
    before, at = contents.configuration, time.time_ns()
    mark = configuration_mark(contents.root)
    if mark == before.mark and not contents.unsettled & mark.keys():
        return None, set(), set()
    for _ in range(MAX_ATTEMPTS):
        _wait_for_writers(contents.root, before.mark.keys() | mark.keys(), missing=before.mark)
        mark, at = configuration_mark(contents.root), time.time_ns()
        young = {path for path, signature in mark.items() if signature and not is_settled(signature, at)}
        found = _read_configuration(contents.root, before, mark)
        # Read twice, since somebody may have written it meanwhile under the same signature.
        again = _read_configuration(contents.root, found, mark) if young else found
        if again == found and configuration_mark(contents.root) == mark:
            break
    return (None if found == before else found), young, mark.keys() - young


def _read_configuration(
    root: Path, before: Configuration, mark: Mapping[str, Signature | None]
) -> Configuration:
    """The configuration read now, with the schema of the one before where that says the same."""
    try:
        found = replace(configure(root), mark=mark)
        _refuse_emptied(found, before)
        check_environment(found.settings.webhooks, os.environ)
    except SetupError as error:
        fix = f"{error.fix}{'' if error.fix.endswith('?') else ';'} " if error.fix else ""
        fix += "until then the last good one is used"
        problem = Problem(error.path, error.line, error.message, fix, column=error.column)
        return replace(before, problems=(problem,), mark=mark)
    return replace(found, schema=before.schema) if found.shape == before.shape else found


def _refuse_emptied(found: Configuration, before: Configuration) -> None:
    """Raise SetupError where site.yaml has no text, and the settings so far are not those that this says."""
    signature = found.mark.get(FILE)
    if signature and not signature[1] and found.settings != before.settings:
        raise SetupError(FILE, None, "the file is empty", "write the settings, or delete the file")


def _find_retimed(contents: Contents, git: GitState) -> set[str]:
    """The paths of entries whose timestamps git gives otherwise now."""
    if git.committed is contents.git.committed:
        return set()
    beside = {path + SIDECAR_SUFFIX: path for path in contents.entries if upload_path(path)}
    found = find_retimed(contents.git.committed, git.committed, [*contents.entries, *beside])
    return _with_drafts(contents, {beside.get(path, path) for path in found})


def _with_drafts(contents: Contents, paths: set[str]) -> set[str]:
    """Some paths, and those of the drafts whose createdAt is that of one of them."""
    drafts = [path for path in contents.entries if DRAFT_MARK in path] if paths else []
    sibling = contents.store.layout.sibling
    return paths | {path for path in drafts if sibling(path, draft=False) in paths}


def _read(contents: Contents, git: GitState, paths: Iterable[str], *, ask_git: bool = True) -> Record:
    """Some files as they are, each read while git said the same of it, without those that stay the same."""
    at = time.time_ns()
    found: dict[str, Entry | None] = {}
    left = set(paths)
    for _ in range(MAX_ATTEMPTS):
        _wait_for_writers(contents.root, left)
        before = {path: _signatures(contents, path) for path in left}
        if ask_git:
            git = with_changed(
                contents.root, git, {p for path in left for p in (path, path + SIDECAR_SUFFIX)}
            )
        store = contents.store.timed(git.committed.timestamps)
        found.update(_read_files(contents, store, left))
        left = {path for path in left if not _was_read_as(contents, before[path], path, found[path])}
        if not left:
            break
    entries = {path: last_good_entry(contents.entries.get(path), entry) for path, entry in found.items()}
    moving = unsettled((entry for entry in entries.values() if entry), at) | left
    same = {path for path, entry in entries.items() if entry == contents.entries.get(path)}
    contents.unsettled -= same - moving
    different = {path: entry for path, entry in entries.items() if path not in same}
    return Record(
        different, git=git_change(contents.git, git), unsettled=frozenset(moving & different.keys())
    )


def _wait_for_writers(
    root: Path, paths: Iterable[str], missing: Mapping[str, Signature | None] | None = None
) -> None:
    """Wait while a file is empty that was not just before: who writes in place empties it first.

    One with a signature in `missing` is waited for where it is not there: who renames takes it away first.
    """
    waiting = {path: bool(missing and missing.get(path)) for path in paths}
    for _ in range(20):
        waiting = {
            path: known for path, known in waiting.items() if _is_in_between(f"{root}/{path}", known=known)
        }
        if not waiting:
            return
        time.sleep(EMPTY_TIMEOUT_S / 20)


def _is_in_between(path: str, *, known: bool) -> bool:
    found = signature_of(path)
    if found is None:
        return known
    return not found[1] and time.time() - found[0] / 1e9 <= EMPTY_TIMEOUT_S


def _signatures(contents: Contents, path: str) -> tuple[Signature | None, Signature | None]:
    """The signature of a file, and of the description beside it."""
    described = signature_of(f"{contents.root}/{path}{SIDECAR_SUFFIX}") if upload_path(path) else None
    return signature_of(f"{contents.root}/{path}"), described


def _was_read_as(
    contents: Contents, before: tuple[Signature | None, Signature | None], path: str, entry: Entry | None
) -> bool:
    """Whether a file was the same before, while and after it was read."""
    same = entry is None or entry.signature == before[0]
    return same and _signatures(contents, path) == before


def _read_files(contents: Contents, store: Store, paths: Iterable[str]) -> dict[str, Entry | None]:
    """Return the entries of some files as they are now; None for those that are not the site's any more."""
    found: dict[str, Entry | None] = {}
    left: list[str] = []
    top, plain = str(contents.root), dict[str, bool]()
    for path in paths:
        wrong = link_problem(f"{top}/{path}", path, top) if has_links(top, path, plain) else None
        if wrong:
            found[path] = unreadable_entry(store.root, path, wrong)
        elif not is_own(contents, path):
            found[path] = None
        elif refreshed := _refresh_entry(store, contents.entries.get(path)):
            found[path] = refreshed
        else:
            left.append(path)
    return {**found, **read_many(store, left)}


def _refresh_entry(store: Store, entry: Entry | None) -> Entry | None:
    """The entry of a file of which nothing but the ctime has changed, without parsing it; else None.

    A backup that links all files, or a `chmod -R`, changes the ctime of each.
    """
    if entry is None or entry.document is None or not (entry.digest and entry.signature):
        return None
    now = signature_of(store.root / entry.path)
    if now is None or now[:3] != entry.signature[:3]:
        return None
    if entry.derived and store.derived_timestamps(entry.path, now[0] / 1e9) != entry.derived:
        return None
    try:
        data, now = read_bytes(store.root, entry.path)
    except (OSError, SyntaxProblem):
        return None
    return replace(entry, signature=now) if digest_of(data) == entry.digest else None
