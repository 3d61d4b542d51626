"""Titles of earlier document versions."""

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import may_find
from server.documents.document import DRAFT, Document
from server.documents.password_masks import mask_hashes
from server.history.viewer import Viewer
from server.schema.model import title_of

MAX_TITLE_CHARS = 200  # limit for titles in responses


def title_for(viewer: Viewer, document: Document) -> str | None:
    """Return the title of a document version, or None if it has no title that the viewer may see."""
    type_, name = document.type, title_of(document.type)
    if name is None or not may_find(viewer.actor, type_.uid):
        return None
    if document.status == DRAFT and not may_read_drafts(viewer.actor, type_):
        return None
    if not viewer.sees(type_, type_.attributes[name]):
        return None
    return mask_hashes(str(document.get(name) or ""))[:MAX_TITLE_CHARS] or None
