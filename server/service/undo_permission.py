"""Permission checks for undoing a write."""

from collections.abc import Callable, Collection, Iterator, Sequence

from server.auth.draft_visibility import may_read_drafts, may_see_file
from server.auth.permissions import CONTENT_TYPE, forbidden, require_schema_write
from server.config.model import FILE
from server.documents.document import DRAFT
from server.documents.path_rules import Layout
from server.errors import ForbiddenError, NotFoundError
from server.paths import TYPES
from server.schema.model import UPLOAD
from server.service.document_write import WRITES, Verb, require_write
from server.service.read import Caller
from server.site.migrations.draft import MIGRATIONS
from server.storage.media import upload_path
from server.storage.undo import Permit
from server.write.undo import Place, UndoneDocument

NOT_FOUND_MESSAGE = (
    "No change with this id can be undone: only its author can undo a change, and only for a limited time"
)
# Verbs that older versions of Bifolio recorded. Records expire after an hour.
_OLD_VERBS = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "DELETE": Verb.DELETE}


def changes_schema(permits: Collection[Permit]) -> bool:
    return any(required.uid == CONTENT_TYPE for required in permits)


def require_write_permits(caller: Caller, permits: Sequence[Permit]) -> None:
    """Raise ForbiddenError if the caller lacks one of the permissions that the write required.

    Raises NotFoundError if the content type no longer exists, or if the write can't be undone.
    """
    for required in permits:
        if required.uid == UPLOAD:
            if not caller.actor.may("upload", required.verb):
                raise forbidden(caller.actor, "upload", required.verb, is_type=False)
            continue
        if required.uid == CONTENT_TYPE:
            require_schema_write(caller.actor, caller.state.schema)
            continue
        type_, verb = caller.state.schema.types.get(required.uid), _verb(required)
        if type_ is None or verb is None or (type_.kind, verb) not in WRITES:
            raise NotFoundError(NOT_FOUND_MESSAGE)
        require_write(caller.reader(type_), verb, {"status": "draft"} if required.draft else {})
        if type_.draft_publish and not may_read_drafts(caller.actor, type_):
            raise forbidden(caller.actor, type_.singular, "readDraft")


def require_undo(caller: Caller, documents: Sequence[UndoneDocument]) -> None:
    """Raise ForbiddenError if the undo creates or deletes documents, and the caller may not do so.

    All other permissions are checked by `require_write_permits`.
    """
    for document in documents:
        for verb, places in _undo_writes(document):
            drafts_only = all(status == DRAFT for _, status in places)
            require_write(caller.reader(document.type), verb, {"status": DRAFT} if drafts_only else {})


def _undo_writes(document: UndoneDocument) -> Iterator[tuple[Verb, frozenset[Place]]]:
    now, then = (
        {locale for locale, _ in places} for places in (document.versions_before, document.versions_after)
    )
    if now - then:
        yield Verb.DELETE, document.versions_before
    if then - now:
        is_new = not now and document.type.kind == "collectionType"
        restored = frozenset(place for place in document.versions_after if place[0] in then - now)
        yield Verb.CREATE if is_new else Verb.UPDATE, restored


def may_undo(caller: Caller, permits: Sequence[Permit], documents: Sequence[UndoneDocument]) -> bool:
    try:
        require_write_permits(caller, permits)
        require_undo(caller, documents)
    except (ForbiddenError, NotFoundError):
        return False
    return True


def file_visibility(caller: Caller) -> Callable[[str], bool]:
    """Return a function that takes a path, and returns True if the caller may see the file."""
    layout = Layout(caller.state.schema, caller.state.settings)

    def may_see(path: str) -> bool:
        if upload_path(path):
            return caller.actor.may("upload", "find")
        if path == FILE or path.startswith((f"{TYPES}/", f"{MIGRATIONS}/")):
            return caller.actor.may(CONTENT_TYPE, "write")
        claim = layout.claim(path)
        return caller.actor.everything if claim is None else may_see_file(caller.actor, claim)

    return may_see


def _verb(required: Permit) -> Verb | None:
    # If another version of Bifolio recorded the permission, the verb might be unknown here.
    name = _OLD_VERBS.get(required.verb, required.verb)
    return Verb(name) if name in set(Verb) else None
