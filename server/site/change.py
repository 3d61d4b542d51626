"""Summaries of file changes, for logs and reports."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from server.problems import Problem, in_order
from server.site.contents import Contents
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.intent import Write


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a site's files.

    This server wrote the files in `written` and deleted those in `deleted`. Other programs changed the files
    in `changed` and deleted those in `removed`. `problems` are new, and the problems in `fixed` no longer
    exist. If `reloaded` is set, the configuration changed or all files were read again.
    """

    changed: tuple[str, ...] = ()
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
    """The origin of a change. `source` is "api" for this server, and "file" for other programs and machines.

    `write` is the id of the write in the commit queue, or "" if it is not in the queue.
    """

    source: str = "file"
    actor: str = ""
    write: str = ""


OTHER_PROGRAM = Origin()  # a change by another program
# Called for each record before it is served, while the write lock is held. Returns the number of the last
# event, or None if no event could be recorded.
RecordObserver = Callable[[Contents, Record, Origin], int | None]
Report = Callable[[Change, float], None]  # (change, seconds needed to apply it)


def summarize_change(before: Contents, record: Record) -> Change:
    """Summarize the changes that a record makes to the contents `before`.

    For a full record, the summary lists no files.
    """
    old_problems, new_problems = list(before.folder_problems), list(record.folder_problems)
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
    problems, fixed = compare_problem_lists(old_problems, new_problems)
    if record.is_complete and record.configuration:
        return Change(problems=problems, fixed=fixed, reloaded=True)
    reloaded = record.configuration is not None
    return Change(tuple(read), tuple(removed), problems, reloaded, fixed)


def change_of_write(before: Contents, record: Record, writes: Collection[Write]) -> Change:
    change = summarize_change(before, record)
    written = tuple(sorted(write.path for write in writes if not write.deletes))
    deleted = tuple(sorted(write.path for write in writes if write.deletes))
    return replace(change, changed=(), removed=(), written=written, deleted=deleted)


def compare_problem_lists(
    before: Iterable[Problem], after: Iterable[Problem]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the problems that are only in `after`, and those that are only in `before`.

    Problems with the same path and message count as equal, even if their line numbers differ.
    """
    old = {(problem.path, problem.message): problem for problem in before}
    new = {(problem.path, problem.message): problem for problem in after}
    added = [problem for key, problem in new.items() if key not in old]
    gone = [problem for key, problem in old.items() if key not in new]
    return in_order(added), in_order(gone)


def _is_read(before: Entry | None, entry: Entry) -> bool:
    return before is None or entry.document is not before.document or entry.problems != before.problems
