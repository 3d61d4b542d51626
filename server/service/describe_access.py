"""Whom a site takes a caller for, what that one may do, and with what (docs/access.md).

A client learns from it, in one request, what it needs to show a site to whoever uses it: the types that may
be read or written, without what is not to be seen of them, and the locales.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import SITE_SUBJECTS, Actor, may_find, may_of_site, may_write
from server.auth.user import User
from server.config.model import ACTIONS, Settings, known_actions
from server.documents.locale_names import name_of
from server.documents.timestamps import from_seconds
from server.history.past import PastStates
from server.schema.describe import describe_component, describe_type
from server.schema.model import Attribute, Schema, Type, title_of
from server.service.read import Caller

FindUser = Callable[[int], User | None]

# What changes content or the repository: nobody may do that where the site is served as it was at a commit.
CHANGING_ACTIONS = {
    "create",
    "update",
    "updateDraft",
    "delete",
    "write",
    "upload",
    "destroy",
    "restore",
    "commit",
    "merge",
    "fix",
}
ACCOUNT_SUBJECTS = {"auth", "user"}  # Their actions change neither.


def describe_access(caller: Caller, past: PastStates, find_user: FindUser) -> dict[str, Any]:
    """Return what a caller may do, as it is answered; `find_user` finds a user by number."""
    state, actor = caller.state, caller.actor
    permissions = dict(_permissions(actor, state.schema, read_only=past.held is not None))
    types = [t for t in state.schema.content_types if t.singular in permissions]
    written = [] if past.held else [t for t in types if may_write(actor, [t])]
    whole = {t.uid for t in (*written, *_components(written, state.schema))}
    return {
        "site": {**_site(state.settings), "servedAt": _held(past)},
        "caller": _caller(find_user, actor),
        "permissions": permissions,
        "contentTypes": [
            {**_content_type(t, actor, whole), **_preview(t, actor, state.settings)} for t in types
        ],
        "components": [_component(t, actor, whole) for t in _components(types, state.schema)],
    }


def _site(settings: Settings) -> Mapping[str, Any]:
    locales = [
        {"code": code, "name": name_of(code), "isDefault": code == settings.locales.default}
        for code in settings.locales.available
    ]
    pages = {"default": settings.api.page_size.default, "max": settings.api.page_size.max}
    return {"name": settings.name, "locales": locales, "pageSize": pages}


def _held(past: PastStates) -> Mapping[str, Any] | None:
    """The commit that the whole site is served at, to read alone; None where its files are served."""
    if past.held is None:
        return None
    commit = past.log.commits[past.held.commit]
    return {"commit": commit.id, "date": from_seconds(commit.committed)}


def _caller(find_user: FindUser, actor: Actor) -> Mapping[str, Any]:
    """Whom the server takes a caller for: the public, a user, a token, or the owner of the machine."""
    if actor.user_id is None:
        kind, _, name = actor.name.partition(":")
        return {"kind": kind, "name": name}
    user = find_user(actor.user_id)
    told = {"name": user.username, "email": user.email, "role": user.role} if user else {"name": ""}
    return {"kind": "user", **told}


def _permissions(actor: Actor, schema: Schema, *, read_only: bool) -> Iterator[tuple[str, list[str]]]:
    """The actions that a caller may do, by subject; nothing of a subject of which there is none."""
    for subject in dict.fromkeys((*schema.subjects, *filter(None, ACTIONS))):
        type_ = schema.subjects.get(subject)
        refused = CHANGING_ACTIONS if read_only and subject not in ACCOUNT_SUBJECTS else ()
        actions = (action for action in known_actions(subject) if action not in refused)
        may = [action for action in actions if _may(actor, subject, action, type_, schema)]
        if may:
            yield subject, may


def _may(actor: Actor, subject: str, action: str, type_: Type | None, schema: Schema) -> bool:
    if subject in SITE_SUBJECTS and type_ is None:
        return may_of_site(actor, subject, action, schema)
    if type_ is not None and not type_.draft_publish and action in ("readDraft", "updateDraft"):
        return False
    return actor.may(subject, action)


def _content_type(type_: Type, actor: Actor, whole: Collection[str]) -> Mapping[str, Any]:
    path = type_.plural if type_.kind == "collectionType" else type_.singular
    told = {"path": f"/api/{path}", "localized": type_.localized, "titleAttribute": title_of(type_)}
    return {**_seen(describe_type(type_), type_, actor, whole), **told}


def _preview(type_: Type, actor: Actor, settings: Settings) -> Mapping[str, Any]:
    """Where documents of a type are previewed, for those who edit them: the address may have a secret."""
    preview = settings.preview.get(type_.singular)
    if preview is None or not (may_write(actor, [type_]) or may_read_drafts(actor, type_)):
        return {}
    return {"preview": preview.url}


def _component(type_: Type, actor: Actor, whole: Collection[str]) -> Mapping[str, Any]:
    return _seen(describe_component(type_), type_, actor, whole)


def _seen(
    described: Mapping[str, Any], type_: Type, actor: Actor, whole: Collection[str]
) -> Mapping[str, Any]:
    """A description without the relations to what the caller may not find.

    So are attributes that no answer shows, but for the types in `whole`: those that it writes.
    """
    shown = {
        name: raw
        for name, raw in described["schema"]["attributes"].items()
        if name in type_.attributes
        and _is_seen(type_.attributes[name], actor)
        and (type_.uid in whole or _is_answered(type_.attributes[name]))
    }
    return {**described, "schema": {**described["schema"], "attributes": shown}}


def _is_seen(attribute: Attribute, actor: Actor) -> bool:
    target = attribute.target if attribute.type == "relation" else None
    return target is None or may_find(actor, target)


def _is_answered(attribute: Attribute) -> bool:
    return not attribute.private and attribute.type != "password"


def _components(types: list[Type], schema: Schema) -> list[Type]:
    """The components that some types have, also inside of others, by uid."""
    found: dict[str, Type] = {}
    waiting = list(types)
    while waiting:
        for attribute in waiting.pop().attributes.values():
            for uid in filter(None, (attribute.component, *attribute.components)):
                if uid not in found:
                    found[uid] = schema.types[uid]
                    waiting.append(schema.types[uid])
    return sorted(found.values(), key=lambda type_: type_.uid)
