"""What a site knows of its files, and which of them are no longer as they were read."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.documents.document import Document
from server.documents.values import same_values
from server.paths import cache_folder
from server.problems import Problem
from server.storage.files import Walk, ignored, link_problem, needs_walk, signature_of, walk
from server.storage.git import History, changed_paths, head_mark, read_history
from server.storage.store import Entry, Store

FEW = 200  # so many changed paths are looked at one by one; for more, everything is walked


@dataclass(slots=True)
class Taken:
    """What came of reading some paths again: documents, paths by what happened, and new problems."""

    removed: list[Document] = field(default_factory=list)
    added: list[Document] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class Held:
    """The files of the site at `root` as they were last read; `git` is its repository's folder."""

    root: Path
    git: Path | None
    store: Store
    entries: dict[str, Entry] = field(default_factory=dict)
    walked: tuple[Problem, ...] = ()
    history: History = field(default_factory=History)
    head: object = None

    def exists(self, path: str) -> bool:
        """Whether a file is there now."""
        return (self.root / path).is_file()

    def owner(self, path: str) -> str:
        """The path whose entry a path belongs to."""
        return self.store.owner(path, self.exists)

    def is_current(self, path: str) -> bool:
        """Whether a document's file is as it was read."""
        entry = self.entries.get(path)
        found = signature_of(self.root / path) if entry and entry.digest else None
        return found is not None and entry is not None and entry.signature == found

    def changed(self, hints: Iterable[str] | None) -> set[str]:
        """The paths, of those hinted at or of all, whose file is not as it was read."""
        hinted = None if hints is None else {h for h in hints if not any(map(ignored, h.split("/")))}
        if hinted is None or len(hinted) > FEW or needs_walk(self.root, hinted, self.walked):
            return self._compare_all()
        found: set[str] = set()
        for path in hinted:
            if self.is_current(path):
                continue  # the echo of a write of ours
            if (self.root / path).is_dir():
                inside = walk(self.root, [path])
                if inside.problems:
                    return self._compare_all()
                found.update(self.owner(p) for p in inside.files)
                found.update(self._below(path))
            elif path not in self.entries and not self.exists(path):
                found.update(self._below(path))
                found.add(self.store.owner(path, self.entries.__contains__))
            else:
                found.add(self.owner(path))
        return found

    def _below(self, path: str) -> set[str]:
        """The held paths in what was or is a folder."""
        return {p for p in self.entries if p.startswith(path + "/")}

    def _compare_all(self) -> set[str]:
        found: Walk = walk(self.root, self.store.layout.roots)
        self.walked = tuple(found.problems)
        held = self.entries
        owners = {path: self.store.owner(path, found.files.__contains__) for path in found.files}
        changed = {
            owner
            for path, owner in owners.items()
            if owner != path or owner not in held or held[owner].signature != found.files[path]
        }
        unread = tuple(f"{folder}/" for folder in found.unread)
        changed.update(path for path in held if path not in found.files and not path.startswith(unread))
        # A path that no type claims is never held; reading it again costs nothing but a look.
        return {path for path in changed if path in held or self.store.claimed(path)}

    def follow_git(self, paths: set[str]) -> set[str]:
        """Take over new commits; returns the held paths whose timestamps they changed."""
        if self.git is None:
            return set()
        mark, before = head_mark(self.git), self.history
        if mark is None or mark != self.head:
            self.history, self.head = read_history(self.root, history_cache(self.root), before), mark
        after = self.history
        if after.commit == before.commit:
            known = {path for path in paths if path in before.times}
            dirty = before.changed - paths | changed_paths(self.root, known)
            self.history = replace(after, changed=dirty)
            return set()
        return {
            p
            for p in self.entries
            if after.times.get(p) != before.times.get(p) or (p in after.changed) != (p in before.changed)
        }

    def take_over(self, paths: Iterable[str]) -> Taken:
        """Read some paths again, and hold what came of it."""
        taken = Taken()
        for path in sorted(paths):
            before, after = self.entries.get(path), self._read(path)
            if after is None:
                if self.entries.pop(path, None):
                    taken.gone.append(path)
            else:
                after = self.entries[path] = _keep_good(before, after)
                known = before.problems if before else ()
                taken.problems.extend(p for p in after.problems if p not in known)
                if before is None or after.document is not before.document or after.problems != known:
                    taken.read.append(path)
            old, new = before.document if before else None, after.document if after else None
            if old is not new:
                taken.removed.extend([old] if old else [])
                taken.added.extend([new] if new else [])
        return taken

    def _read(self, path: str) -> Entry | None:
        wrong = link_problem(str(self.root / path), path, str(self.root))
        return self.store.unreadable(path, wrong) if wrong else self.store.read(path)


def history_cache(root: Path) -> Path | None:
    """Where git's history is kept between two starts; None where nothing can be written."""
    folder = cache_folder(root)
    return folder / "git.json" if folder else None


def _keep_good(before: Entry | None, after: Entry) -> Entry:
    """An entry as it is held: broken, or the same as before, it keeps the document there was."""
    if before is None or before.document is None:
        return after
    if after.broken or (after.document and _equal(before.document, after.document)):
        return replace(after, document=before.document)
    return after


def _equal(old: Document, new: Document) -> bool:
    return same_values(old.row, new.row) and old.status == new.status and old.type is new.type
