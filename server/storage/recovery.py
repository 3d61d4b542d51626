"""Finishes or drops what a writer that was killed has left in the journal. Call it under the write lock.

A record of intent that is whole is carried out to the end, or, where it was being taken back, that is
done; what no record names is dropped. An edit by hand is kept wherever the writer was killed: in its
place, or below .bifolio/unsaved/. Files that were replaced are kept for a while (`storage.replaced`).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.durable import sync_folder
from server.storage.exchange import exchange, is_unchanged, put_new, take_away
from server.storage.files import FileMark, link_mark
from server.storage.intent import Step, read_intent
from server.storage.links import open_folder
from server.storage.replaced import ReplacedFiles

RECORD_SUFFIX = ".intent"  # Ends the name of a record.
UNDONE_SUFFIX = ".undone"  # Ends the name of a record that is being rolled back.


class Recovery:
    """What killed writers have left in the journal, which is a folder, of the site at `root`."""

    def __init__(self, root: Path, journal: Path) -> None:
        self.root, self.journal = root, journal
        self.replaced = ReplacedFiles(journal)

    def interrupted(self) -> list[str]:
        """The files that `recover` is going to write."""
        found = (step for _, steps in self._records() for step in steps)
        return sorted(
            step.target for step in found if step.after and link_mark(self.journal / step.aside) == step.after
        )

    def dropped(self) -> bool:
        """Whether there is a write that `recover` drops, before it had changed any file."""
        known = {step.aside for _, steps in self._records() for step in steps} | self.replaced.names()
        return any(staged.name not in known for staged in self.journal.glob("*.staged"))

    def unsaved(self) -> list[str]:
        """The files that were put aside since somebody had edited the ones that they were to replace."""
        aside = self.journal.parent / "unsaved"
        found = (path.relative_to(aside).as_posix() for path in aside.rglob("*") if path.is_file())
        return sorted(f"{STATE_FOLDER}/unsaved/{path}" for path in found)

    def recover(self) -> int:
        """Carry out or drop what there is. Returns how many files it changed."""
        done = 0
        for record, steps in self._records():
            done += sum(self._finish(step) for step in steps)
            self.replaced.keep(record, [step.aside for step in steps])
        kept = self.replaced.names()
        for stray in self.journal.iterdir():
            if stray.name in kept:
                os.rename(stray, self.replaced.folder / stray.name)
            else:
                stray.unlink(missing_ok=True)
        return done

    def _records(self) -> Iterator[tuple[Path, list[Step]]]:
        """The records that are whole, with what is to be done: the reverse for what is being taken back."""
        for record in sorted(self.journal.glob(f"*{RECORD_SUFFIX}")):
            yield record, read_intent(record) or []
        for record in sorted(self.journal.glob(f"*{UNDONE_SUFFIX}")):
            steps = reversed(read_intent(record) or [])
            yield record, [step.reversed() for step in steps]

    def _finish(self, step: Step) -> int:
        """Do what is left of a step; returns how many files that changed."""
        target, aside = self.root / step.target, self.journal / step.aside
        found, there = link_mark(aside), link_mark(target)
        if found is None:
            remove = step.after is None and there and there == step.before
            return self._swap(step, there) if remove else 0
        if found == step.before or found == step.after == there:
            return 0  # It is done, and what is aside is what was before, or a second name.
        if there not in (step.before, step.after):  # Somebody has edited the file since: the edit stays.
            self.replaced.put_aside(aside, step.target)
            return 0
        # It is still to be done, or an edit was taken away to be compared, and is put back.
        done = self._swap(step, there)
        if found != step.after and there == step.after and there and os.path.lexists(aside):
            self.replaced.put_aside(aside, step.target)
        return done

    def _swap(self, step: Step, there: FileMark | None) -> int:
        """Let what is aside and what is at the target change places; 0 if a program edits that meanwhile."""
        target, aside = self.root / step.target, self.journal / step.aside
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_folder(target.parent) as folder:
            if there is None:
                try:
                    put_new(aside, target, folder)
                except FileExistsError:
                    self.replaced.put_aside(aside, step.target)
                    return 0
            elif not os.path.lexists(aside):
                if take_away(target, folder, aside) and not is_unchanged(aside, there, None):
                    with suppress(FileExistsError):
                        put_new(aside, target, folder)
                    return 0
            elif exchange(aside, target, folder) and not is_unchanged(aside, there, None):
                exchange(aside, target, folder)
                self.replaced.put_aside(aside, step.target)
                return 0
        sync_folder(target.parent)
        return 1
