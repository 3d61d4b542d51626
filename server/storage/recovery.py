"""Crash recovery that keeps the edits of other programs. Callers must hold the write lock."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.durable import sync_folder
from server.storage.exchange import exchange, is_unchanged, move_aside, put_new
from server.storage.files import FileMark, digest_of, link_mark
from server.storage.intent import Step, read_intent
from server.storage.links import open_folder
from server.storage.replaced import UNSAVED_FOLDER, ReplacedFiles

RECORD_SUFFIX = ".intent"
UNDONE_SUFFIX = ".undone"  # suffix of the record of a write that is being rolled back


class Recovery:
    """Recovery of interrupted writes, whose records are in the folder `journal`."""

    def __init__(self, root: Path, journal: Path) -> None:
        self.root, self.journal = root, journal
        self.replaced = ReplacedFiles(journal)

    def unfinished_paths(self) -> list[str]:
        all_steps = (step for _, steps in self._records() for step in steps)
        return sorted(
            step.target
            for step in all_steps
            if step.after and link_mark(self.journal / step.journal_name) == step.after
        )

    def will_discard_writes(self) -> bool:
        """Return True if recovery will discard a write that has changed no files yet."""
        recorded = {
            step.journal_name for _, steps in self._records() for step in steps
        } | self.replaced.names()
        return any(staged.name not in recorded for staged in self.journal.glob("*.staged"))

    def unsaved_paths(self) -> list[str]:
        folder = self.journal.parent / UNSAVED_FOLDER
        paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return sorted(f"{STATE_FOLDER}/unsaved/{path}" for path in paths)

    def recover(self) -> int:
        """Finish or revert interrupted writes. Return the number of changed files."""
        done = 0
        for record, steps in self._records():
            done += sum(self._finish(step) for step in steps)
            self.replaced.keep(record, [step.journal_name for step in steps])
        kept = self.replaced.names()
        for leftover in self.journal.iterdir():
            if leftover.name in kept:
                os.rename(leftover, self.replaced.folder / leftover.name)
            else:
                leftover.unlink(missing_ok=True)
        return done

    def _records(self) -> Iterator[tuple[Path, list[Step]]]:
        for record in sorted(self.journal.glob(f"*{RECORD_SUFFIX}")):
            yield record, read_intent(record) or []
        for record in sorted(self.journal.glob(f"*{UNDONE_SUFFIX}")):
            steps = reversed(read_intent(record) or [])
            yield record, [step.reversed() for step in steps]

    def _finish(self, step: Step) -> int:
        target, journal_file = self.root / step.target, self.journal / step.journal_name
        step = _with_touched_target(step, target)
        journal_mark, target_mark = link_mark(journal_file), link_mark(target)
        if journal_mark is None:
            remove = step.after is None and target_mark and target_mark == step.before
            return self._swap(step, target_mark) if remove else 0
        if journal_mark == step.before or journal_mark == step.after == target_mark:
            return (
                0  # This file is finished: `journal_file` is the old file, or a second name for the new one.
            )
        if target_mark not in (step.before, step.after):  # Another program has edited the target.
            self.replaced.move_to_unsaved(journal_file, step.target)
            return 0
        # Either the file has not been replaced yet, or the swap has moved another program's edit to
        # `journal_file`. In both cases, swap the two files.
        if journal_mark != step.after:
            self.replaced.copy_edit(journal_file, step.target)
        done = self._swap(step, target_mark)
        if (
            journal_mark != step.after
            and target_mark == step.after
            and target_mark
            and os.path.lexists(journal_file)
        ):
            self.replaced.move_to_unsaved(journal_file, step.target)
        return done

    def _swap(self, step: Step, target_mark: FileMark | None) -> int:
        """Swap the step's file in the journal with its target.

        Return 1, or 0 if another program edited the target during the swap. `target_mark` is None if the
        target does not exist.
        """
        target, journal_file = self.root / step.target, self.journal / step.journal_name
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_folder(target.parent) as folder:
            if target_mark is None:
                try:
                    put_new(journal_file, target, folder)
                except FileExistsError:
                    self.replaced.move_to_unsaved(journal_file, step.target)
                    return 0
            elif not os.path.lexists(journal_file):
                if move_aside(target, folder, journal_file) and not is_unchanged(
                    journal_file, target_mark, None
                ):
                    with suppress(FileExistsError):
                        put_new(journal_file, target, folder)
                    return 0
            elif exchange(journal_file, target, folder) and not is_unchanged(journal_file, target_mark, None):
                exchange(journal_file, target, folder)
                self.replaced.move_to_unsaved(journal_file, step.target)
                return 0
        sync_folder(target.parent)
        return 1


def _with_touched_target(step: Step, target: Path) -> Step:
    """Return `step` with the target's current mark if only the target's modification time has changed."""
    mark = link_mark(target)
    if mark is None or mark in (step.before, step.after):
        return step
    if _is_touched(mark, step.before, step.before_digest, target):
        return replace(step, before=mark)
    if _is_touched(mark, step.after, step.after_digest, target):
        return replace(step, after=mark)
    return step


def _is_touched(mark: FileMark, known: FileMark | None, digest: str, path: Path) -> bool:
    if known is None or not digest or mark[1:] != known[1:]:
        return False
    with suppress(OSError):
        return digest_of(path.read_bytes()).hex() == digest
    return False
