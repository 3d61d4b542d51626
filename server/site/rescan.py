"""Rescans of a site's files for changes.

The caller must hold the write lock, except for `seems_changed`, `read_new_configuration` and `reload_files`.
"""

import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import FILE
from server.config.webhooks import check_environment
from server.documents.path_rules import Layout
from server.errors import GitError, SetupError, with_fix
from server.formats.tree import SyntaxProblem
from server.problems import Problem
from server.schema.model import Type
from server.site.changed_files import (
    find_changed_files,
    find_unsettled,
    has_own_entry,
    is_settled,
    list_if_needed,
)
from server.site.commits.contents import new_contents
from server.site.commits.message import PreparedMerge
from server.site.configure import Configuration, configuration_signatures, configure, is_configuration
from server.site.contents import Contents
from server.site.git_state import (
    GitState,
    git_change,
    git_moved,
    paths_with_new_times,
    read_git_state,
    with_checked_paths,
    with_commit,
    with_commits_since,
    with_written,
)
from server.site.loading import cores, load_contents, paused_garbage_collection, read_many
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.files import Signature, digest_of, is_skipped, signature_of, walk, with_aliases
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import changed_paths
from server.storage.git.written import is_on_disk
from server.storage.intent import Write
from server.storage.links import has_links, link_problem
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.parse_cache import frame, pack
from server.storage.read import read_bytes
from server.storage.store import DRAFT_MARK, Store
from server.storage.unreadable_files import last_good_entry, unreadable_entry

log = logging.getLogger("bifolio")

MAX_ATTEMPTS = 5  # limit on the attempts to read a file that other programs keep changing
MAX_LOCKED_FILES = 5000  # Larger sites are not read again while the write lock is held.
EMPTY_TIMEOUT_S = 0.1  # after this time, a file that is still empty is accepted as empty


def seems_changed(contents: Contents, hints: Collection[str] | None) -> bool:
    """Return True if files at the paths in `hints` may have changed.

    If `hints` is None, all files are checked.
    """
    mark = configuration_signatures(contents.root)
    if mark != contents.configuration.signatures or contents.unsettled & mark.keys():
        return True
    if git_moved(contents.root, contents.git):
        return True
    paths, folders, links = find_changed_files(contents, hints or (), list_if_needed(contents, hints))
    return bool(paths) or (folders, links) != (contents.folder_problems, contents.links)


class SchemaPending(Exception):
    """Error raised if schemas changed together with other files.

    The caller must first read all files with the new schemas.
    """


@dataclass(frozen=True, slots=True)
class ReloadedSite:
    """Contents that were read with a new schema, and that are not served yet."""

    contents: Contents
    packed: bytearray


def read_new_configuration(contents: Contents) -> Configuration | None:
    """Return the new configuration if it requires all files to be read again, otherwise None."""
    configuration, _, _ = _new_configuration(contents)
    same = configuration is None or configuration.parse_key == contents.configuration.parse_key
    return None if same else configuration


def require_current_schema(contents: Contents, paths: Iterable[str]) -> None:
    """Raise SchemaPending if `paths` can't be written before a changed schema has been read.

    This is the case if attributes of the files' types have changed or disappeared, or if one of the files
    would belong to another document.
    """
    if len(contents.entries) < MAX_LOCKED_FILES:  # A small site reads a new schema during the write.
        return
    new, old = read_new_configuration(contents), contents.configuration
    if new is None:
        return
    before, after = (Layout(each.schema, each.settings) for each in (old, new))
    types, new_types = old.schema.types, new.schema.types
    changed = {uid for uid, type_ in types.items() if not _keeps_all_attributes(new_types.get(uid), type_)}
    has_changed_component = any(types[uid].kind == "component" for uid in changed)
    for path in paths:
        claim, new_claim = before.claim(path), after.claim(path)
        is_of_changed_type = claim is not None and (has_changed_component or claim.type.uid in changed)
        if is_of_changed_type or (claim and claim.identity) != (new_claim and new_claim.identity):
            raise SchemaPending()


def _keeps_all_attributes(new: Type | None, old: Type) -> bool:
    if new is None:
        return False
    attributes, others = old.raw.get("attributes", {}), new.raw.get("attributes", {})
    return all(others.get(name) == attribute for name, attribute in attributes.items())


def reload_files(contents: Contents, configuration: Configuration) -> ReloadedSite:
    """Read all files with a new configuration.

    Changes made while the files are being read are found later, by `rescan_all`.
    """
    root, pictures, packed = contents.root, contents.image_cache, bytearray()
    with paused_garbage_collection():
        read = load_contents(
            root, pictures, configuration, cores=cores(), can_fork=False, packed_entries=packed
        )
    return ReloadedSite(read, packed)


def reload_files_if_needed(contents: Contents) -> ReloadedSite | None:
    configuration = read_new_configuration(contents)
    return reload_files(contents, configuration) if configuration else None


def rescan_all(
    contents: Contents,
    hints: Collection[str] | None,
    write_counter: int,
    reloaded: ReloadedSite | None = None,
) -> Record | None:
    """Return a record of the changes to files, or None if nothing has changed.

    If possible, only the files in `hints` are checked. If a schema has changed, the record contains this
    change only if `reloaded` was read with the new schema. Raises SchemaPending if other files changed
    together with schemas.
    """
    configuration, young, settled = _new_configuration(contents)
    contents.unsettled -= settled
    is_deferred = bool(configuration and configuration.parse_key != contents.configuration.parse_key)
    if configuration and is_deferred:
        if reloaded and reloaded.contents.configuration.is_equivalent(configuration):
            return _replace_all(reloaded, write_counter, young)
        configuration, young = None, set()
    git = read_git_state(contents.root, contents.git)
    # For example, `bifolio migrate` writes schemas together with documents.
    if is_deferred and (git_change(contents.git, git) or write_counter != contents.write_counter):
        raise SchemaPending()
    if configuration:
        git = with_checked_paths(contents.root, git, configuration.signatures)
    everything = hints is None or configuration or git_change(contents.git, git)
    found = list_if_needed(contents, None if everything else hints)
    paths, folders, links = find_changed_files(contents, hints or (), found)
    paths |= _find_retimed(contents, git)
    record = _read(contents, git, paths)
    record = replace(
        record, configuration=configuration, folder_problems=folders, links=links, write_counter=write_counter
    )
    record = replace(record, unsettled=record.unsettled | young)
    same = not (record.entries or record.git or configuration)
    known = (contents.folder_problems, contents.links, contents.write_counter)
    return None if same and (folders, links, write_counter) == known else record


def _replace_all(reloaded: ReloadedSite, write_counter: int, young: set[str]) -> Record:
    read, packed = reloaded.contents, reloaded.packed
    git = read_git_state(read.root, read.git)
    paths, folders, links = find_changed_files(read, (), walk(read.root, read.store.layout.roots))
    since = _read(read, git, paths | _find_retimed(read, git))
    read.apply(replace(since, folder_problems=folders, links=links, write_counter=write_counter))
    packed += frame(pack(entry for entry in since.entries.values() if entry))
    whole = read.full_record()
    gone = {path: None for path, entry in since.entries.items() if entry is None}
    return replace(whole, entries={**whole.entries, **gone}, unsettled=whole.unsettled | young, packed=packed)


def rescan_paths(contents: Contents, paths: Iterable[str]) -> Record:
    """Read the files at `paths` again, even if they seem to be unchanged."""
    record = _read(contents, contents.git, paths)
    return replace(
        record,
        folder_problems=contents.folder_problems,
        links=contents.links,
        write_counter=contents.write_counter,
    )


def rescan_written(
    contents: Contents, writes_made: Collection[Write], write_counter: int, merge: PreparedMerge | None = None
) -> Record:
    """Return a record of the writes that this process made and, if `merge` is given, of the merge."""
    paths: Collection[str] = {write.path for write in writes_made}
    small = len(contents.entries) < MAX_LOCKED_FILES
    try:
        record = _record_of_merge(contents, writes_made, merge) if merge else None
    except GitError as error:  # Check all files instead.
        log.warning("%s: can't read the changes of a commit: %s", contents.root, error)
        record = None
    if record:
        return replace(record, write_counter=write_counter)
    if merge or (small and any(map(is_configuration, paths))):
        try:
            found = rescan_all(
                contents, None, write_counter, reload_files_if_needed(contents) if small else None
            )
        except SchemaPending:
            if merge:  # To serve the merge completely, wait until the schema has been read.
                return Record(
                    folder_problems=contents.folder_problems,
                    links=contents.links,
                    write_counter=contents.write_counter,
                )
            found = None
        if found is not None:
            return found
    paths = with_aliases(paths, contents.links)
    owners = _owners(contents, paths)
    record = _read(contents, with_written(contents.git, paths), owners, ask_git=False)
    return replace(
        record, folder_problems=contents.folder_problems, links=contents.links, write_counter=write_counter
    )


def _record_of_merge(
    contents: Contents, writes_made: Collection[Write], merge: PreparedMerge
) -> Record | None:
    """Return a record of a merge and of the writes that were made with it.

    Return None if all files must be checked instead.
    """
    before, root, changed = contents.git, contents.root, merge.changed_files
    if changed is None or any(map(is_configuration, changed)):
        return None
    if before.committed.commit != merge.base or head_commit(root) != merge.ready:
        return None
    contents_by_path = new_contents(root, writes_made)
    same = {
        path: is_on_disk(root / path, contents_by_path[path]) for path in changed if path in contents_by_path
    }
    rest = changed_paths(root, changed.keys() - same.keys())
    files = {path: same.get(path, path not in rest) for path in changed}
    if merge.committed_at is None:
        git = with_commits_since(root, before, merge.ready, files)
    else:
        renames = len({staged is None for staged in changed.values()}) == 2
        git = with_commit(root, before, merge.ready, merge.committed_at, files, may_rename=renames)
    if git is None:
        return None
    if before.index != merge.index:
        # Keep the old index state, so that the next rescan finds the other program's change.
        git = replace(git, index=before.index)
    names = {path for path in (*files, *(write.path for write in writes_made)) if not is_skipped(path)}
    paths = with_aliases(names, contents.links)
    record = _read(contents, git, _owners(contents, paths), ask_git=False)
    return replace(record, folder_problems=contents.folder_problems, links=contents.links)


def rescan_committed(contents: Contents, git: GitState, paths: Collection[str]) -> Record:
    """Return a record with the new timestamps after a commit of `paths`."""
    same = with_aliases(paths, contents.links)
    owners = _owners(contents, same)
    moved = paths_with_new_times(contents.git.committed, git.committed, paths)
    read = _with_drafts(contents, owners) if moved else ()
    record = _read(contents, git, read, ask_git=False)
    return replace(
        record,
        folder_problems=contents.folder_problems,
        links=contents.links,
        write_counter=contents.write_counter,
    )


def _owners(contents: Contents, paths: Iterable[str]) -> set[str]:
    return {
        owner
        for path in paths
        for owner in (path, path.removesuffix(SIDECAR_SUFFIX))
        if owner in contents.entries or (owner == path) == has_own_entry(contents, path)
    }


def _new_configuration(contents: Contents) -> tuple[Configuration | None, set[str], set[str]]:
    """Return the new configuration, or None if it is unchanged, and two sets of configuration files.

    The files in the first set are so new that they must be read again. The second set contains the others. If
    a file is invalid, the old configuration stays in use.
    """
    before, at = contents.configuration, time.time_ns()
    mark = configuration_signatures(contents.root)
    if mark == before.signatures and not contents.unsettled & mark.keys():
        return None, set(), set()
    for _ in range(MAX_ATTEMPTS):
        _wait_for_writers(contents.root, before.signatures.keys() | mark.keys(), expected=before.signatures)
        mark, at = configuration_signatures(contents.root), time.time_ns()
        young = {path for path, signature in mark.items() if signature and not is_settled(signature, at)}
        found = _read_configuration(contents.root, before, mark)
        # Read again, because a change since the first read may have left the signature unchanged.
        again = _read_configuration(contents.root, found, mark) if young else found
        if again == found and configuration_signatures(contents.root) == mark:
            break
    return (None if found == before else found), young, mark.keys() - young


def _read_configuration(
    root: Path, before: Configuration, mark: Mapping[str, Signature | None]
) -> Configuration:
    try:
        found = replace(configure(root), signatures=mark)
        _refuse_emptied(found, before)
        check_environment(found.settings.webhooks, os.environ)
    except SetupError as error:
        until = "until this is fixed, the last good configuration is used"
        fix = with_fix(error.fix, until) if error.fix else until
        problem = Problem(error.path, error.line, error.message, fix, column=error.column)
        return replace(before, problems=(problem,), signatures=mark)
    return replace(found, schema=before.schema) if found.parse_key == before.parse_key else found


def _refuse_emptied(configuration: Configuration, before: Configuration) -> None:
    # An empty file is rejected, because another program is probably still writing it.
    signature = configuration.signatures.get(FILE)
    if signature and not signature[1] and configuration.settings != before.settings:
        raise SetupError(FILE, None, "the file is empty", "write the settings, or delete the file")


def _find_retimed(contents: Contents, git: GitState) -> set[str]:
    if git.committed is contents.git.committed:
        return set()
    beside = {path + SIDECAR_SUFFIX: path for path in contents.entries if upload_path(path)}
    found = paths_with_new_times(contents.git.committed, git.committed, [*contents.entries, *beside])
    return _with_drafts(contents, {beside.get(path, path) for path in found})


def _with_drafts(contents: Contents, paths: set[str]) -> set[str]:
    # Drafts are read again, too: their createdAt can be derived from the published version's file.
    drafts = [path for path in contents.entries if DRAFT_MARK in path] if paths else []
    sibling = contents.store.layout.sibling
    return paths | {path for path in drafts if sibling(path, draft=False) in paths}


def _read(contents: Contents, git: GitState, paths: Iterable[str], *, ask_git: bool = True) -> Record:
    at = time.time_ns()
    read: dict[str, Entry | None] = {}
    unread = set(paths)
    for _ in range(MAX_ATTEMPTS):
        _wait_for_writers(contents.root, unread)
        before = {path: _signatures(contents, path) for path in unread}
        if ask_git:
            git = with_checked_paths(
                contents.root, git, {p for path in unread for p in (path, path + SIDECAR_SUFFIX)}
            )
        store = contents.store.timed(git.committed.timestamps)
        read.update(_read_files(contents, store, unread))
        unread = {path for path in unread if not _is_unchanged(contents, before[path], path, read[path])}
        if not unread:
            break
    entries = {path: last_good_entry(contents.entries.get(path), entry) for path, entry in read.items()}
    unsettled_paths = find_unsettled((entry for entry in entries.values() if entry), at) | unread
    equal = {path for path, entry in entries.items() if entry == contents.entries.get(path)}
    contents.unsettled -= equal - unsettled_paths
    different = {path: entry for path, entry in entries.items() if path not in equal}
    return Record(
        different, git=git_change(contents.git, git), unsettled=frozenset(unsettled_paths & different.keys())
    )


def _wait_for_writers(
    root: Path, paths: Iterable[str], expected: Mapping[str, Signature | None] | None = None
) -> None:
    """Wait briefly for other programs to finish writing files.

    A file counts as unfinished while it is empty, or while it is missing although `expected` has a signature
    for it.
    """
    waiting = {path: bool(expected and expected.get(path)) for path in paths}
    for _ in range(20):
        waiting = {
            path: is_expected
            for path, is_expected in waiting.items()
            if _is_being_written(f"{root}/{path}", is_expected=is_expected)
        }
        if not waiting:
            return
        time.sleep(EMPTY_TIMEOUT_S / 20)


def _is_being_written(path: str, *, is_expected: bool) -> bool:
    found = signature_of(path)
    if found is None:
        return is_expected
    return not found[1] and time.time() - found[0] / 1e9 <= EMPTY_TIMEOUT_S


def _signatures(contents: Contents, path: str) -> tuple[Signature | None, Signature | None]:
    described = signature_of(f"{contents.root}/{path}{SIDECAR_SUFFIX}") if upload_path(path) else None
    return signature_of(f"{contents.root}/{path}"), described


def _is_unchanged(
    contents: Contents, before: tuple[Signature | None, Signature | None], path: str, entry: Entry | None
) -> bool:
    same = entry is None or entry.signature == before[0]
    return same and _signatures(contents, path) == before


def _read_files(contents: Contents, store: Store, paths: Iterable[str]) -> dict[str, Entry | None]:
    entries: dict[str, Entry | None] = {}
    unread: list[str] = []
    top, plain = str(contents.root), dict[str, bool]()
    for path in paths:
        problem = link_problem(f"{top}/{path}", path, top) if has_links(top, path, plain) else None
        if problem:
            entries[path] = unreadable_entry(store.root, path, problem)
        elif not has_own_entry(contents, path):
            entries[path] = None
        elif refreshed := _refresh_entry(store, contents.entries.get(path)):
            entries[path] = refreshed
        else:
            unread.append(path)
    return {**entries, **read_many(store, unread)}


def _refresh_entry(store: Store, entry: Entry | None) -> Entry | None:
    """Return the entry with a new signature if only the file's ctime has changed, otherwise None."""
    if entry is None or entry.document is None or not (entry.digest and entry.signature):
        return None
    signature = signature_of(store.root / entry.path)
    if signature is None or signature[:3] != entry.signature[:3]:
        return None
    if entry.derived and store.derived_timestamps(entry.path, signature[0] / 1e9) != entry.derived:
        return None
    try:
        data, signature = read_bytes(store.root, entry.path)
    except (OSError, SyntaxProblem):
        return None
    return entry._replace(signature=signature) if digest_of(data) == entry.digest else None
