"""Low-priority process that writes the index: `python -m server.search.indexer FOLDER`."""

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

from server.search.status import DAMAGED_FILE, STATUS_FILE, Status, read_status, write_status
from server.search.texts import Task, Text
from server.search.whoosh_index.schema import VERSION
from server.search.whoosh_index.writer import IndexEntry, IndexWriter

NICENESS = 10


class Indexer:
    """Writer of the search index, with the commands `begin`, `apply` and `commit`."""

    def __init__(self, folder: Path) -> None:
        """Open the index. If it is damaged or outdated, replace it with an empty one."""
        self.folder = folder
        status = read_status(folder)
        if status is None or status.version != VERSION or (folder / DAMAGED_FILE).exists():
            status = self._clear()
        try:
            self.writer = IndexWriter(folder)
        except Exception:
            status = self._clear()
            self.writer = IndexWriter(folder)
        self.status = replace(status, documents=len(self.writer.digests))
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
        """Prepare to receive all versions again.

        `shape` is the digest that `texts.shape` returns. If it differs from the index's digest, searches
        ignore the index until all versions have been received.
        """
        self._seen = set()
        if self.status.shape != shape:
            self._update_status(shape="")

    def apply(self, tasks: list[Task]) -> int:
        return sum(self._apply(task) for task in tasks)

    def _apply(self, task: Task) -> bool:
        if task.texts is None:
            self.writer.drop(task.key)
            self._dirty = True
            return True
        if self._seen is not None:
            self._seen.add(task.key)
        digest = blake2b(repr((task.group, task.language, task.texts)).encode(), digest_size=12).hexdigest()
        if self.writer.digests.get(task.key) == digest:
            return False
        paragraphs = [(self._number_of(t.attribute), t.weight, p) for t in task.texts for p in _read(t)]
        self.writer.put(IndexEntry(task.key, digest, task.group, task.language, paragraphs))
        self._dirty = True
        return True

    def _number_of(self, attribute: str) -> int:
        numbers = self.status.numbers
        if attribute not in numbers:
            self._update_status(numbers={**numbers, attribute: len(numbers)})
        return self.status.numbers[attribute]

    def commit(self, total: int, pending: int, shape: str = "") -> None:
        """Write the changes to disk, where readers can see them.

        Pass `shape` only after all versions have been received. This marks the index as complete, and removes
        versions that were not received since `begin`.
        """
        if shape and self._seen is not None:
            for key in set(self.writer.digests) - self._seen:
                self.writer.drop(key)
                self._dirty = True
            self._seen = None
        commits = self.status.commits + self._dirty
        if self._dirty:
            self.writer.commit()
            self._dirty = False
        documents = len(self.writer.digests)
        shape = shape or self.status.shape
        self._update_status(documents=documents, total=total, pending=pending, commits=commits, shape=shape)

    def _update_status(self, **changes: Any) -> None:
        changed = replace(self.status, **changes)
        if changed != self.status:
            self.status = changed
            write_status(self.folder, changed)


def _read(text: Text) -> list[str]:
    try:
        return text.read()
    except RecursionError:
        return []


def main(folder: Path, commands: BinaryIO, responses: BinaryIO) -> None:
    """Execute commands from a pipe until the pipe is closed or a command fails."""
    try:
        indexer = Indexer(folder)
        _respond(responses, indexer.status.documents)
        while (command := _command(commands)) is not None:
            name, arguments = command
            _respond(responses, _execute(indexer, name, arguments))
    except OSError as error:
        _respond(responses, f"{error.strerror or error}")
    except Exception as error:  # If the index is damaged, whoosh can raise any exception.
        (folder / DAMAGED_FILE).touch()
        _respond(responses, f"{type(error).__name__}: {error}")


def _execute(indexer: Indexer, name: str, arguments: tuple[Any, ...]) -> object:
    try:
        return getattr(indexer, name)(*arguments)
    except Exception as error:
        if not (indexer.folder / STATUS_FILE).exists():
            raise OSError("its folder was deleted; rebuilding it") from error
        raise


def _command(commands: BinaryIO) -> Any:
    try:
        return pickle.load(commands)
    except EOFError:
        return None


def _respond(responses: BinaryIO, value: object) -> None:
    pickle.dump(value, responses)
    responses.flush()


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        main(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:  # The parent process has ended.
        os._exit(0)
