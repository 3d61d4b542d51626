"""Filter for file changes in git, based on an actor's permissions."""

from dataclasses import dataclass, field

from server.auth.draft_visibility import has_draft_permission, may_see_all, may_see_file
from server.auth.permissions import Actor
from server.documents.path_rules import Layout, is_draft_name
from server.history.former_layouts import FormerLayouts
from server.site.site import State
from server.storage.git.log import Commit, FileChange


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Filter that hides the file changes that one actor may not see."""

    actor: Actor
    current_layout: Layout
    former_layouts: FormerLayouts
    head: str
    _seen: dict[tuple[Layout | None, str], bool] = field(default_factory=dict)  # cache of `_sees`
    _current: dict[Layout, Layout] = field(default_factory=dict)  # cache of `_at`

    def visible_part(self, commit: Commit | None, change: FileChange) -> FileChange | None:
        """Return the part of a change that the actor may see, or None if the actor may see none of it.

        If only the old version of the file is visible, the result is a deletion; if only the new one is, an
        addition. `commit` is None for an uncommitted change.
        """
        if self.actor.everything:
            return change
        before, after = self._layouts(commit)
        is_added, is_deleted = change.status == "A", change.status == "D"
        path = change.before or change.path
        sees_before = is_added or self._sees(before, path)
        sees_after = is_deleted or self._sees(after, change.path)
        if sees_before and sees_after:
            return change
        if sees_before and not is_added:
            return FileChange("D", path)
        return FileChange("A", change.path) if sees_after and not is_deleted else None

    def sees_all(self, commit: Commit) -> bool:
        if self.actor.everything:
            return True
        layouts = [one for one in self._layouts(commit) if one is not None and one is not self.current_layout]
        if len(commit.parents) > 1:  # for a merge commit, git lists only the files that had conflicts
            types = (type_ for layout in layouts for type_ in layout.schema.content_types)
            return all(may_see_all(self.actor, type_) for type_ in types)
        return not layouts or all(self.visible_part(commit, one) == one for one in commit.changes)

    def _layouts(self, commit: Commit | None) -> tuple[Layout | None, Layout | None]:
        if commit is None:
            return self._at(self.head), self.current_layout
        return self._at(commit.parents[0] if commit.parents else commit.id), self._at(commit.id)

    def _at(self, commit: str) -> Layout | None:
        layout = self.former_layouts.at(commit) if commit else None
        if layout is None:
            return None
        if layout not in self._current:
            self._current[layout] = (
                self.current_layout if layout.rules == self.current_layout.rules else layout
            )
        return self._current[layout]

    def _sees(self, layout: Layout | None, path: str) -> bool:
        key = layout, path
        if key not in self._seen:
            self._seen[key] = self._may_see(layout, path)
        return self._seen[key]

    def _may_see(self, layout: Layout | None, path: str) -> bool:
        now = self.current_layout.claim(path)
        if now is not None and not may_see_file(self.actor, now):
            return False
        if layout is self.current_layout:
            return True
        then = layout.claim(path) if layout else None
        if then is not None:
            return may_see_file(self.actor, then)
        # If the file was not served at that time, only its name shows whether it was a draft.
        return now is None or not is_draft_name(path) or has_draft_permission(self.actor, now.type.uid)


def change_filter(actor: Actor, state: State, former: FormerLayouts, head: str) -> ChangeFilter:
    return ChangeFilter(actor, Layout(state.schema, state.settings), former, head)
