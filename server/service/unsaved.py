"""Plans for renames and fixes that an editor carries out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from server.site.check.fixes import Fix, FixRequest, apply_fixes
from server.site.check.unsaved import UnsavedSite
from server.site.replica import State
from server.site.writing.preparing import Prepare, SpeculativeWrite, prepare_change
from server.storage.changeset import Changeset, WorkingTree
from server.storage.files import Signature, size_signature
from server.storage.read import BOM
from server.write.renaming.rename import RenameRequest, RenameResult, rename

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class EditorPlan:
    """Changes for an editor to make.

    `texts` maps the old path of each changed file to its old and new text. `renames` maps old paths to new
    paths.
    """

    texts: Mapping[str, tuple[str, str]]
    renames: Mapping[str, str]


class _OpenFiles(WorkingTree):
    def __init__(self, root: Path, texts: Mapping[str, str]) -> None:
        super().__init__(root)
        self._texts = texts

    def signature(self, path: str) -> Signature | None:
        if path in self._texts:
            return size_signature(len(self._texts[path]))
        return super().signature(path)

    def read(self, path: str) -> tuple[bytes, Signature]:
        if path in self._texts:
            data = self._texts[path].encode(errors="replace")
            return data, size_signature(len(self._texts[path]))
        return super().read(path)


def plan_rename(overlay: UnsavedSite, request: RenameRequest) -> EditorPlan:
    changeset, renamed = _prepare(overlay, rename, request)
    return _plan(overlay, changeset, renamed)


def plan_fixes(overlay: UnsavedSite, fixes: tuple[Fix, ...]) -> EditorPlan:
    changeset, _ = _prepare(overlay, apply_fixes, FixRequest(overlay.audit, fixes))
    return _plan(overlay, changeset, None)


def _prepare(
    overlay: UnsavedSite, prepare: Prepare[Request, Result], request: Request
) -> tuple[Changeset, Result]:
    basis = overlay.saved
    state = State(basis.settings, basis.schema, overlay.snapshot)
    changeset = Changeset(basis.root, _OpenFiles(basis.root, overlay.texts))
    change, ahead = (prepare, request), SpeculativeWrite()
    prepared = prepare_change(state, basis.committed, lambda *_: (), changeset, change, ahead, {})
    return changeset, prepared.result


def _plan(overlay: UnsavedSite, changeset: Changeset, renamed: RenameResult | None) -> EditorPlan:
    renames = dict(renamed.files) if renamed else {}
    renames.update(_moved_paths(changeset, renames))
    old_paths = {new: old for old, new in renames.items()}
    before = Changeset(overlay.saved.root, _OpenFiles(overlay.saved.root, overlay.texts))
    texts = {}
    for path, text in changeset.texts():
        old_path = old_paths.get(path, path)
        old = before.text(old_path)
        if old != text:
            texts[old_path] = (old.removeprefix(BOM), text.removeprefix(BOM))
    return EditorPlan(texts, renames)


def _moved_paths(changeset: Changeset, renames: Mapping[str, str]) -> Mapping[str, str]:
    top = f"{changeset.root}/"
    known = set(renames)
    sources = (
        (str(write.source).removeprefix(top), write.path) for write in changeset.writes() if write.source
    )
    return {old: new for old, new in sources if old not in known}
