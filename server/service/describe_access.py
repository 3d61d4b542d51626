"""Description of the caller's permissions and content types (docs/access.md)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import SITE_SUBJECTS, Actor, has_site_permission, may_find, may_write
from server.auth.user import User
from server.config.model import ACTIONS, Settings, known_actions
from server.documents.locale_names import locale_name
from server.documents.timestamps import from_seconds
from server.history.past import PastStates
from server.schema.describe import describe_component, describe_type
from server.schema.model import Attribute, Schema, Type, title_of
from server.service.read import Caller

FindUser = Callable[[int], User | None]

# Actions that change content or the git repository, which is impossible while a past commit is served.
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
    "send",
    "rotate",
}
# Actions on these subjects change only accounts, so they are always possible.
ACCOUNT_SUBJECTS = {"auth", "user", "token"}


def describe_access(caller: Caller, past: PastStates, find_user: FindUser) -> dict[str, Any]:
    """Return a JSON object with the site, the caller, and the caller's permissions and content types."""
    state, actor = caller.state, caller.actor
    permissions = dict(_permissions(actor, state.schema, read_only=past.pinned is not None))
    types = [t for t in state.schema.content_types if t.singular in permissions]
    writable_types = [] if past.pinned else [t for t in types if may_write(actor, [t])]
    writable_uids = {t.uid for t in (*writable_types, *_components(writable_types, state.schema))}
    return {
        "site": {**_site(state.settings), "servedAt": _served_commit(past)},
        "caller": _caller(find_user, actor),
        "permissions": permissions,
        "contentTypes": [
            {**_content_type(t, actor, writable_uids), **_preview(t, actor, state.settings)} for t in types
        ],
        "components": [_component(t, actor, writable_uids) for t in _components(types, state.schema)],
    }


def _site(settings: Settings) -> Mapping[str, Any]:
    locales = [
        {"code": code, "name": locale_name(code), "isDefault": code == settings.locales.default}
        for code in settings.locales.available
    ]
    pages = {"default": settings.api.page_size.default, "max": settings.api.page_size.max}
    transform = settings.media.transform
    return {
        "name": settings.name,
        "locales": locales,
        "pageSize": pages,
        # Clients can't sign URLs.
        "transformsImages": transform.enabled and not transform.sign,
    }


def _served_commit(past: PastStates) -> Mapping[str, Any] | None:
    if past.pinned is None:
        return None
    commit = past.log.commits[past.pinned.commit]
    return {"commit": commit.id, "date": from_seconds(commit.committed)}


def _caller(find_user: FindUser, actor: Actor) -> Mapping[str, Any]:
    if actor.user_id is None:
        kind, _, name = actor.name.partition(":")
        return {"kind": kind, "name": name, **({"branchOnly": True} if actor.branch_only else {})}
    user = find_user(actor.user_id)
    fields = {"name": user.username, "email": user.email, "role": user.role} if user else {"name": ""}
    return {"kind": "user", **fields}


def _permissions(actor: Actor, schema: Schema, *, read_only: bool) -> Iterator[tuple[str, list[str]]]:
    for subject in dict.fromkeys((*schema.subjects, *filter(None, ACTIONS))):
        type_ = schema.subjects.get(subject)
        excluded = CHANGING_ACTIONS if read_only and subject not in ACCOUNT_SUBJECTS else ()
        known = known_actions(subject) if type_ is not None else ACTIONS[subject]
        actions = (action for action in known if action not in excluded)
        permitted = [action for action in actions if _is_permitted(actor, subject, action, type_, schema)]
        if permitted:
            yield subject, permitted


def _is_permitted(actor: Actor, subject: str, action: str, type_: Type | None, schema: Schema) -> bool:
    if subject in SITE_SUBJECTS and type_ is None:
        return has_site_permission(actor, subject, action, schema)
    if type_ is not None and not type_.draft_publish and action in ("readDraft", "updateDraft"):
        return False
    return actor.may(subject, action)


def _content_type(type_: Type, actor: Actor, writable_uids: Collection[str]) -> Mapping[str, Any]:
    path = type_.plural if type_.kind == "collectionType" else type_.singular
    fields = {"path": f"/api/{path}", "localized": type_.localized, "titleAttribute": title_of(type_)}
    return {**_visible_part(describe_type(type_), type_, actor, writable_uids), **fields}


def _preview(type_: Type, actor: Actor, settings: Settings) -> Mapping[str, Any]:
    preview = settings.preview.get(type_.singular)
    return {"preview": preview.url} if preview and may_see_preview(actor, type_) else {}


def may_see_preview(actor: Actor, type_: Type) -> bool:
    # The URL could contain a secret, so it is returned only to callers who can write or read drafts.
    return may_write(actor, [type_]) or may_read_drafts(actor, type_)


def _component(type_: Type, actor: Actor, writable_uids: Collection[str]) -> Mapping[str, Any]:
    return _visible_part(describe_component(type_), type_, actor, writable_uids)


def _visible_part(
    described: Mapping[str, Any], type_: Type, actor: Actor, writable_uids: Collection[str]
) -> Mapping[str, Any]:
    visible = {
        name: raw
        for name, raw in described["schema"]["attributes"].items()
        if name in type_.attributes
        and _is_seen(type_.attributes[name], actor)
        and (type_.uid in writable_uids or _is_in_responses(type_.attributes[name]))
    }
    return {**described, "schema": {**described["schema"], "attributes": visible}}


def _is_seen(attribute: Attribute, actor: Actor) -> bool:
    target = attribute.target if attribute.type == "relation" else None
    return target is None or may_find(actor, target)


def _is_in_responses(attribute: Attribute) -> bool:
    return not attribute.private and attribute.type != "password"


def _components(types: list[Type], schema: Schema) -> list[Type]:
    components: dict[str, Type] = {}
    pending = list(types)
    while pending:
        for attribute in pending.pop().attributes.values():
            for uid in attribute.component_uids:
                if uid not in components:
                    components[uid] = schema.types[uid]
                    pending.append(schema.types[uid])
    return sorted(components.values(), key=lambda type_: type_.uid)
