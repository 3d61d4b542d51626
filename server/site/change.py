"""Description of a change to a site's files, and of who made it, for logs and reports."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from server.problems import Problem, in_order
from server.site.contents import Contents
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.intent import Write


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a site's files.

    - `read` and `removed` are the paths of files that other programs have changed or deleted.
    - `written` and `deleted` are the paths of files that a write on this server has changed or deleted.
    - `problems` are the new problems, and `fixed` the problems that were resolved.
    - `reloaded` means that the settings or schemas have changed, or that all files were read again.
    """

    read: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    reloaded: bool = False
    fixed: tuple[Problem, ...] = ()
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a change. `source` is "api" for a write, and "file" for a change by another program.

    `actor` is the actor who sent the write, and `write` identifies the write in the commit queue. Both are ""
    for a change by another program.
    """

    source: str = "file"
    actor: str = ""
    write: str = ""


FILES_ORIGIN = Origin()  # Origin of a change that another program made to the files.
# A function that is called with each record while the write lock is held, before the changes are served. It
# returns the number of the last event in the event log, or None if events could not be recorded.
Observe = Callable[[Contents, Record, Origin], int | None]
Report = Callable[[Change, float], None]  # (change, seconds needed to apply it)


def change_of(before: Contents, record: Record) -> Change:
    """Return a description of the changes in a record. `before` contains the site's contents before the
    record was applied.

    If the record contains the entire site, the description does not list the files that were read.
    """
    old_problems, new_problems = list(before.folders), list(record.folders)
    if record.configuration:
        old_problems.extend(before.configuration.problems)
        new_problems.extend(record.configuration.problems)
    read, removed = [], []
    for path, entry in sorted(record.entries.items()):
        before_entry = before.entries.get(path)
        if entry is None:
            removed.append(path)
            continue
        problems = before_entry.problems if before_entry else ()
        new_problems.extend(entry.problems)
        old_problems.extend(p for p in problems if not entry.broken or p in entry.problems)
        if _is_read(before_entry, entry):
            read.append(path)
    problems, fixed = difference(old_problems, new_problems)
    if record.whole and record.configuration:
        return Change(problems=problems, fixed=fixed, reloaded=True)
    reloaded = record.configuration is not None
    return Change(tuple(read), tuple(removed), problems, reloaded, fixed)


def change_of_write(before: Contents, record: Record, writes: Collection[Write]) -> Change:
    """Return a description of the changes made by a write on this server. `record` contains the result of the
    write.
    """
    change = change_of(before, record)
    written = tuple(sorted(write.path for write in writes if not write.deletes))
    deleted = tuple(sorted(write.path for write in writes if write.deletes))
    return replace(change, read=(), removed=(), written=written, deleted=deleted)


def difference(
    before: Iterable[Problem], after: Iterable[Problem]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Compare two lists of problems. Return the problems that are only in `after`, and the problems that are
    only in `before`. Both results are sorted by path.

    A problem that has only moved to a different line of its file is in neither of the results.
    """
    old = {(problem.path, problem.message): problem for problem in before}
    new = {(problem.path, problem.message): problem for problem in after}
    added = [problem for key, problem in new.items() if key not in old]
    gone = [problem for key, problem in old.items() if key not in new]
    return in_order(added), in_order(gone)


def _is_read(before: Entry | None, entry: Entry) -> bool:
    return before is None or entry.document is not before.document or entry.problems != before.problems
