"""The process that writes the index: `python -m server.search.indexer FOLDER`.

It is another process, with less claim to the processor, so that indexing never holds up a request.
It takes commands from its standard input and answers each on its standard output (`sync` sends
them), and ends with the process that started it. What has not changed since it was indexed is
recognised by a digest of what is indexed of it.
"""

import contextlib
import os
import pickle
import shutil
import sys
import threading
import time
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from server.search.engine import VERSION, Entry, Writer
from server.search.status import DAMAGED, Status, read_status, write_status
from server.search.texts import Task, Text

NICENESS = 10


class Indexer:
    """The index of a folder, being brought up to date."""

    def __init__(self, folder: Path) -> None:
        """Open the index; where it is damaged, or of another version, begin anew."""
        self.folder = folder
        status = read_status(folder)
        if status is None or status.version != VERSION or (folder / DAMAGED).exists():
            status = self._clear()
        try:
            self.writer = Writer(folder)
        except Exception:
            status = self._clear()
            self.writer = Writer(folder)
        self.status = replace(status, documents=len(self.writer.marks))
        self._seen: set[str] | None = None
        self._dirty = False

    def _clear(self) -> Status:
        for path in self.folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        status = Status(VERSION, os.urandom(8).hex())
        write_status(self.folder, status)
        return status

    def begin(self, shape: str) -> None:
        """All versions will be sent, to an index for a shape; one for another is not asked meanwhile."""
        self._seen = set()
        if self.status.shape != shape:
            self._say(shape="")

    def take(self, tasks: list[Task]) -> int:
        """Index some versions, or take them out; returns how many were not as they are in the index."""
        return sum(self._take(task) for task in tasks)

    def _take(self, task: Task) -> bool:
        if task.texts is None:
            self.writer.drop(task.key)
            self._dirty = True
            return True
        if self._seen is not None:
            self._seen.add(task.key)
        mark = blake2b(repr((task.group, task.language, task.texts)).encode(), digest_size=12).hexdigest()
        if self.writer.marks.get(task.key) == mark:
            return False
        paragraphs = [(self._number(t.attribute), t.weight, p) for t in task.texts for p in _read(t)]
        self.writer.put(Entry(task.key, mark, task.group, task.language, paragraphs))
        self._dirty = True
        return True

    def _number(self, attribute: str) -> int:
        numbers = self.status.numbers
        if attribute not in numbers:
            self._say(numbers={**numbers, attribute: len(numbers)})
        return self.status.numbers[attribute]

    def commit(self, total: int, pending: int, shape: str = "") -> None:
        """Show readers what has been taken. With a shape: it is all there is, and whole."""
        if shape and self._seen is not None:
            for key in set(self.writer.marks) - self._seen:
                self.writer.drop(key)
                self._dirty = True
            self._seen = None
        commits = self.status.commits + self._dirty
        if self._dirty:
            self.writer.commit()
            self._dirty = False
        documents = len(self.writer.marks)
        shape = shape or self.status.shape
        self._say(documents=documents, total=total, pending=pending, commits=commits, shape=shape)

    def _say(self, **changes: Any) -> None:
        changed = replace(self.status, **changes)
        if changed != self.status:
            self.status = changed
            write_status(self.folder, changed)


def _read(text: Text) -> list[str]:
    """The paragraphs of a text; none of one that is nested too deep to be read."""
    try:
        return text.read()
    except RecursionError:
        return []


def main(folder: Path, commands: BinaryIO, answers: BinaryIO) -> None:
    """Do what is commanded until there is nothing more to come. A failure is an answer, the last one."""
    try:
        indexer = Indexer(folder)
        _answer(answers, indexer.status.documents)
        while (command := _command(commands)) is not None:
            name, arguments = command
            _answer(answers, getattr(indexer, name)(*arguments))
    except OSError as error:
        _answer(answers, f"{error.strerror or error}")
    except Exception as error:  # whatever whoosh says of an index that is not as it wrote it
        (folder / DAMAGED).touch()
        _answer(answers, f"{type(error).__name__}: {error}")


def _command(commands: BinaryIO) -> Any:
    try:
        return pickle.load(commands)
    except EOFError:
        return None


def _answer(answers: BinaryIO, value: object) -> None:
    pickle.dump(value, answers)
    answers.flush()


def _follow(parent: int) -> None:
    """End with the process that started this one, however that ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    try:
        main(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:  # who asked has ended, and wants no answer, nor a word of that
        os._exit(0)
