"""What a change of the site's files came to, for people who watch it, and where it came from."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from server.problems import Problem, in_order
from server.site.contents import Contents
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.intent import Write


@dataclass(frozen=True, slots=True)
class Change:
    """What a change came to: paths by what happened to them, and the problems that are new or gone.

    `read` and `removed` are files that were found changed, `written` and `deleted` those that a write of
    this server has changed.
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
    """Where a change comes from: a write through the "api" or "file"s that somebody else has changed.

    `actor` made the write, and `write` is its name in the queue of commits; "" where there is none.
    """

    source: str = "file"
    actor: str = ""
    write: str = ""


FILES_ORIGIN = Origin()  # The origin of a change that was found in the files.
# Is told of each record, under the write lock, before anybody is shown what it changes in some contents.
# Returns the number of the last event that there is, None where it could not record any.
Observe = Callable[[Contents, Record, Origin], int | None]
Report = Callable[[Change, float], None]  # what changed, and in how many seconds it was taken over


def change_of(before: Contents, record: Record) -> Change:
    """What a record changes in some contents; which files one that is whole has read is not said."""
    old, new = list(before.folders), list(record.folders)
    if record.configuration:
        old.extend(before.configuration.problems)
        new.extend(record.configuration.problems)
    read, removed = [], []
    for path, entry in sorted(record.entries.items()):
        known = before.entries.get(path)
        if entry is None:
            removed.append(path)
            continue
        problems = known.problems if known else ()
        new.extend(entry.problems)
        old.extend(p for p in problems if not entry.broken or p in entry.problems)
        if _is_read(known, entry):
            read.append(path)
    problems, fixed = difference(old, new)
    if record.whole and record.configuration:
        return Change(problems=problems, fixed=fixed, reloaded=True)
    reloaded = record.configuration is not None
    return Change(tuple(read), tuple(removed), problems, reloaded, fixed)


def change_of_write(before: Contents, record: Record, writes: Collection[Write]) -> Change:
    """What a write of this server changes: the record has what it came to."""
    change = change_of(before, record)
    written = tuple(sorted(write.path for write in writes if not write.deletes))
    deleted = tuple(sorted(write.path for write in writes if write.deletes))
    return replace(change, read=(), removed=(), written=written, deleted=deleted)


def difference(
    before: Iterable[Problem], after: Iterable[Problem]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The problems that are new, and those that are gone, by path; one that moved in its file is neither."""
    old = {(problem.path, problem.message): problem for problem in before}
    new = {(problem.path, problem.message): problem for problem in after}
    added = [problem for key, problem in new.items() if key not in old]
    gone = [problem for key, problem in old.items() if key not in new]
    return in_order(added), in_order(gone)


def _is_read(known: Entry | None, entry: Entry) -> bool:
    return known is None or entry.document is not known.document or entry.problems != known.problems
