"""Which problems of a site somebody may see, and which of them fix.

A sentence about one document may name others of its type, also drafts, and quote values. So problems are
shown of types of which somebody may see everything, and none about an attribute that nobody is shown. What
belongs to no type, such as `site.yaml`, is for full access.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from server.auth.permissions import PROBLEMS, Actor, may_draft, may_find, may_of_site, may_see_all
from server.documents.document import DRAFT
from server.formats.text_positions import KeyPath
from server.history.viewer import Viewer
from server.problems import Problem
from server.schema.model import PEOPLE, UPLOAD, Attribute, Type
from server.site.check.fixes import Fix
from server.site.check.served import Check, Found
from server.site.site import State


@dataclass(frozen=True, slots=True)
class ProblemViewer:
    """Somebody who looks at the problems of a site."""

    actor: Actor
    state: State
    _known: dict[tuple[str, KeyPath, str], bool] = field(default_factory=dict)

    def shown(self, check: Check) -> Iterator[Found]:
        """The problems that may be seen, with what fixes them where that may be done."""
        fixes = may_of_site(self.actor, PROBLEMS, "fix", self.state.schema)
        for found in check.found:
            if self._sees(found):
                yield (
                    found
                    if found.fix is None or (fixes and self._may_write(found))
                    else replace(found, fix=None)
                )

    def may_make(self, fix: Fix) -> bool:
        """Whether a fix may be made: by who sees the problem, and may write the document."""
        document = fix.document
        problem = Problem(fix.path, None, "", rule=fix.rule, at=fix.at)
        found = Found(problem, document.type.uid, status=document.status)
        return self._sees(found) and self._may_write(found)

    def _may_write(self, found: Found) -> bool:
        type_ = self.state.schema.types.get(found.uid)
        if type_ is None:
            return False
        if found.status == DRAFT and may_draft(self.actor, type_, "update"):
            return True
        return self.actor.may(type_.singular, "update")

    def _sees(self, found: Found) -> bool:
        if self.actor.everything:
            return True
        if found.uid == UPLOAD:
            return may_find(self.actor, UPLOAD)
        type_ = self.state.schema.types.get(found.uid)
        if type_ is None:
            return False
        key = (found.uid, _names(found.problem.at), found.problem.rule)
        if key not in self._known:
            dangling = found.problem.rule == "dangling"
            self._known[key] = may_see_all(self.actor, type_) and self._sees_path(type_, key[1], dangling)
        return self._known[key]

    def _sees_path(self, type_: Type, names: KeyPath, dangling: bool) -> bool:
        """Whether a problem at a path of attributes may be seen. One of `dangling` names other documents."""
        if not names:
            return True
        attribute = type_.attributes.get(str(names[0]))
        if attribute is None:
            return True
        if not Viewer(self.actor, self.state).sees(attribute):
            return False
        if len(names) == 1:
            return not dangling or self._sees_targets(attribute)
        types = self.state.schema.types
        inner = (types.get(uid) for uid in (attribute.component or "", *attribute.components))
        return all(one is None or self._sees_path(one, names[1:], dangling) for one in inner)

    def _sees_targets(self, attribute: Attribute) -> bool:
        """Whether everything may be seen that an attribute can lead to."""
        if attribute.type == "media":
            return may_find(self.actor, UPLOAD)
        types = self.state.schema.types
        target = types.get(attribute.target or "")
        targets = [target] if target else self.state.schema.content_types
        return all(
            may_find(self.actor, t.uid) if t.uid in PEOPLE else may_see_all(self.actor, t) for t in targets
        )


def _names(at: KeyPath) -> KeyPath:
    """A path without the positions in lists."""
    return tuple(key for key in at if isinstance(key, str))
