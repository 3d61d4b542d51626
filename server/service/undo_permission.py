"""Permissions to undo a write: those of the write itself, and those of its effects on documents."""

from collections.abc import Callable, Iterator, Sequence

from server.auth.draft_visibility import may_read_drafts, may_see_file
from server.documents.document import DRAFT
from server.documents.path_rules import Layout
from server.errors import ForbiddenError, NotFoundError
from server.service.document_write import WRITES, Verb, permit
from server.service.read import Caller
from server.storage.undo import Permit
from server.write.undo import Place, UndoneDocument

NOT_FOUND_MESSAGE = "There is no change of yours under this id that could still be undone"
# Verbs as an older server wrote them; undo records last an hour.
_OLD_VERBS = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "DELETE": Verb.DELETE}


def permit_write(caller: Caller, permits: Sequence[Permit]) -> None:
    """Raise ForbiddenError if a caller may no longer make a write, or may not see what undoing restores.

    Undoing may restore a draft, and refusing only then would reveal that there is one. So types with drafts
    always need `readDraft`. Raises NotFoundError for a write that only another version of Bifolio knows.
    """
    for wanted in permits:
        type_, verb = caller.state.schema.types.get(wanted.uid), _verb(wanted)
        if type_ is None or verb is None or (type_.kind, verb) not in WRITES:
            raise NotFoundError(NOT_FOUND_MESSAGE)
        permit(caller.reader(type_), verb, {"status": "draft"} if wanted.draft else {})
        if type_.draft_publish and not may_read_drafts(caller.actor, type_):
            raise ForbiddenError()


def permit_undoing(caller: Caller, documents: Sequence[UndoneDocument]) -> None:
    """Raise ForbiddenError if a caller may not delete or create what undoing deletes or creates.

    Documents that only change need the permission of the write, which `permit_write` checks.
    """
    for document in documents:
        for verb, places in _effects(document):
            drafts_alone = all(status == DRAFT for _, status in places)
            permit(caller.reader(document.type), verb, {"status": DRAFT} if drafts_alone else {})


def _effects(document: UndoneDocument) -> Iterator[tuple[Verb, frozenset[Place]]]:
    """Yield the verb for locales that undoing deletes, and for those that it restores, with their places."""
    now, then = ({locale for locale, _ in places} for places in (document.now, document.then))
    if now - then:
        yield Verb.DELETE, document.now
    if then - now:
        is_new = not now and document.type.kind == "collectionType"
        coming = frozenset(place for place in document.then if place[0] in then - now)
        yield Verb.CREATE if is_new else Verb.UPDATE, coming


def may_take_back(caller: Caller, permits: Sequence[Permit], documents: Sequence[UndoneDocument]) -> bool:
    """Return whether a caller may take back a write that took some permits."""
    try:
        permit_write(caller, permits)
        permit_undoing(caller, documents)
    except (ForbiddenError, NotFoundError):
        return False
    return True


def sight_of_files(caller: Caller) -> Callable[[str], bool]:
    """Return a function that says whether the caller may see a file, by its path."""
    layout = Layout(caller.state.schema, caller.state.settings)

    def may_see(path: str) -> bool:
        claim = layout.claim(path)
        return caller.actor.everything if claim is None else may_see_file(caller.actor, claim)

    return may_see


def _verb(wanted: Permit) -> Verb | None:
    """Return the verb of a permit, or None if another version of Bifolio wrote it."""
    name = _OLD_VERBS.get(wanted.verb, wanted.verb)
    return Verb(name) if name in set(Verb) else None
