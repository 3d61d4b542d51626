"""`quire check --fix` for site.yaml and schema files: mistyped words, where their meaning is certain."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import FILE
from server.config.reader import unknown_keys
from server.errors import SetupError
from server.formats.config_file import ConfigFile, read_config_file
from server.formats.positions import KeyPath, Position
from server.paths import state_folder
from server.problems import Problem
from server.schema.load import schema_paths
from server.schema.mistyped import other_keys, other_words
from server.schema.spelling import certain_suggestion
from server.storage.changeset import Changeset
from server.storage.journal import Journal, Write
from server.storage.read import BOM
from server.write.context import Context


@dataclass(frozen=True, slots=True)
class KeyFix:
    """One word of a configuration file, a key or the value of one, as it is and as it should be."""

    path: str
    at: KeyPath
    old: str
    new: str
    position: Position

    def is_of(self, problem: Problem) -> bool:
        """Whether it fixes a problem: the one at its key, or at the value of that."""
        line, column, value = self.position
        return (problem.path, problem.line) == (self.path, line) and problem.column in (column, value)


def find_key_fixes(root: Path, problems: Iterable[Problem]) -> tuple[KeyFix, ...]:
    """The fixes for some problems of the configuration of the site at `root`."""
    wrong = [problem for problem in problems if problem.rule in ("settings", "schema")]
    paths = {problem.path for problem in wrong} & {FILE, *schema_paths(root)}
    found = (fix for path in sorted(paths) for fix in _of_file(root, path))
    return tuple(fix for fix in found if any(map(fix.is_of, wrong)))


def _of_file(root: Path, path: str) -> Iterator[KeyFix]:
    try:
        file = read_config_file(root, path)
    except SetupError:
        return
    for at, known in unknown_keys(file) if path == FILE else other_keys(file.data):
        name, there = str(at[-1]), file.get(*map(str, at[:-1]))
        free = [key for key in known if isinstance(there, dict) and key not in there]
        yield from _fix(file, at, name, certain_suggestion(name, free))
    for at, known in other_words(file.data) if path != FILE else ():
        word = str(file.get(*map(str, at)))
        yield from _fix(file, at, word, certain_suggestion(word, known))


def _fix(file: ConfigFile, at: KeyPath, old: str, new: str | None) -> Iterator[KeyFix]:
    position = file.positions.get(at)
    if new and position:
        yield KeyFix(file.path, at, old, new, position)


def key_fix_writes(root: Path, fixes: Iterable[KeyFix]) -> list[Write]:
    """The files with their words replaced and every other byte as it was.

    Raises ConflictError and StorageError for a file that can't be read.
    """
    changeset = Changeset(root)
    _put_key_fixes(fixes, changeset)
    return changeset.writes()


def apply_key_fixes(fixes: Iterable[KeyFix], context: Context) -> None:
    """Put the files with their words replaced into a changeset; `Site.write` calls this."""
    _put_key_fixes(fixes, context.changeset)


def repair_configuration(root: Path, fixes: Iterable[KeyFix]) -> None:
    """Write the files of a configuration that can't be read, so that nothing can be written through a site.

    Nobody knows what its settings ask of a write: it goes to no remote and is in no commit, as an edit.
    Raises what the journal raises.
    """
    journal = Journal(root, state_folder(root))
    with journal.writing():
        journal.commit(key_fix_writes(root, fixes))


def _put_key_fixes(fixes: Iterable[KeyFix], changeset: Changeset) -> None:
    by_path: Mapping[str, list[KeyFix]] = defaultdict(list)
    for fix in fixes:
        by_path[fix.path].append(fix)
    for path, of_file in by_path.items():
        text = changeset.text(path)
        for fix in sorted(of_file, key=lambda fix: fix.position, reverse=True):
            text = _replaced(text, fix)
        changeset.put(path, text)


def _replaced(text: str, fix: KeyFix) -> str:
    """A text with one word replaced; as it is where the word is written in a way that is not expected."""
    line, column, value = fix.position
    is_key = fix.at[-1] == fix.old
    start = sum(len(before) + 1 for before in text.split("\n")[: line - 1])
    start += (column if is_key else value) - 1 + (line == 1 and text.startswith(BOM))
    start += text[start : start + 1] in ('"', "'")
    if not text.startswith(fix.old, start) or not (is_key or value):
        return text
    return text[:start] + fix.new + text[start + len(fix.old) :]
