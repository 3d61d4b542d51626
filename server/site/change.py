"""What a change of the site's files came to, for people who watch it."""

from dataclasses import dataclass

from server.problems import Problem
from server.site.contents import Contents
from server.site.record import Record


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh came to: paths by what happened to them, and the problems that are new."""

    read: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    reloaded: bool = False

    def __bool__(self) -> bool:
        return bool(self.read or self.removed or self.problems or self.reloaded)


def change_of(before: Contents, record: Record) -> Change:
    """What a record changes in some contents; of one that is whole, only that it does."""
    if record.whole and record.configuration:
        return Change(problems=record.configuration.problems, reloaded=True)
    problems = list(record.configuration.problems if record.configuration else ())
    problems.extend(problem for problem in record.folders if problem not in before.folders)
    read, removed = [], []
    for path, entry in sorted(record.entries.items()):
        old = before.entries.get(path)
        if entry is None:
            removed.append(path)
            continue
        known = old.problems if old else ()
        problems.extend(problem for problem in entry.problems if problem not in known)
        if old is None or entry.document is not old.document or entry.problems != known:
            read.append(path)
    return Change(tuple(read), tuple(removed), tuple(problems), record.configuration is not None)
