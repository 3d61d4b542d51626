"""Requests that succeed if the identity has the permission: at least one for every API operation.

Random requests mostly fail. These requests resemble those of real clients: they refer to existing documents,
commits and users, with valid bodies. If a request needs something, such as a user to delete, it is created in
each twin first.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from server.api.operations.table import OPERATIONS
from server.auth.users import Users
from server.config.mcp import WriteMode
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.tables import FAILED, WAITING
from server.events.webhooks.delivery_table import begin, finish, keep_exchange, newest, note, put
from tests.matrix import agents
from tests.matrix.probes import reads
from tests.matrix.requests import GUESSES, KNOWN_TAG, Request
from tests.matrix.secrets import Group, probes
from tests.matrix.sites import USERS, Identity, Twin, article, document

Prepared = Mapping[str, Any]  # the values of placeholders in a request, such as "<code>"
Prepare = Callable[[Twin, Identity, int], Prepared]
WHO = "who"  # the placeholder for a token that has the same permissions as the sender
GIT_HOOK_SECRET = "secret of a git hook"
STUDIO = {"Sec-Fetch-Site": "same-origin", "Bifolio-Studio": "1"}


@dataclass(frozen=True, slots=True)
class Case:
    """A request, and a function that prepares a twin site for it.

    The function's arguments are the twin, the sender's identity, and a number that no other case has.
    """

    request: Request
    prepare: Prepare | None = None


def filled(request: Request, values: Prepared) -> Request:
    """Return a request with values in place of its placeholders."""
    if not values:
        return request
    headers = {name: _fill(text, values) for name, text in request.headers.items()}
    path, body = _fill(request.path, values), _fill(request.body, values)
    return replace(request, path=path, headers=headers, body=body)


def _fill(value: Any, values: Prepared) -> Any:
    if isinstance(value, dict):
        return {key: _fill(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    for name, inner in values.items():
        if value == f"<{name}>":
            return inner
        value = value.replace(f"<{name}>", str(inner))
    return value


# --- preparation --------------------------------------------------------------------------------------

PASSWORD = "a password of somebody"


def new_user(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a user who has not signed in. The user's role is the identity's role, or `clerk` if the identity
    has none.
    """
    role = USERS.get(identity.name, "clerk")
    name, email = f"temp{number}", f"temp{number}@example.org"
    user = Users(twin.api.accounts).create(name, email, PASSWORD, role=role, confirmed=True)
    return {"user": user.id, "name": name, "email": email, "password": PASSWORD}


def own_user(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Sign in as a new user with the identity's role, if it has one."""
    if identity.name not in USERS:
        return {}
    made = new_user(twin, identity, number)
    form = {"identifier": made["name"], "password": PASSWORD}
    signed_in = twin.api.ask("POST", "/api/auth/local", "public", json=form)
    who = signed_in.body["jwt"]
    found = twin.api.get("/api/auth/sessions", who)
    session = found.body["data"][0]["id"] if found.status == 200 else "none"
    return {**made, WHO: who, "refresh": signed_in.body["refreshToken"], "session": session}


def reset_code(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a user who has been sent a code to reset the password."""
    made, users = new_user(twin, identity, number), Users(twin.api.accounts)
    user = users.get(made["user"])
    assert user is not None
    return {**made, "code": users.reset_code(user)}


def confirm_code(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a user who has been sent a code to confirm the email address."""
    name, email = f"temp{number}", f"temp{number}@example.org"
    users = Users(twin.api.accounts)
    user = users.create(name, email, PASSWORD, role="clerk", confirmed=False)
    return {"code": users.confirm_code(user)}


def undo(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Send a write that can be undone."""
    data, prefer = {"title": f"To be undone {number}"}, {"Prefer": "undo"}
    path = "/api/home" if identity.name == "custom" else "/api/articles/a1?status=draft"
    written = twin.api.put(path, data, identity.name, headers=prefer)
    return {"undo": written.headers.get("Bifolio-Undo", "none")}


def typo(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Write a file by hand with a misspelled relation, and request the suggested fixes."""
    twin.write({"content/articles/typo.json": document(title="With a typo", tag="granite-quary")})
    twin.write({"content/tags/granite-quarry.json": document(name="A tag")})
    found = twin.api.get("/problems?fixable=true", identity.name)
    fixes = [one["change"] for one in found.body["data"]] if found.status == 200 else []
    return {
        "fixes": fixes or [{"path": "content/articles/typo.json", "key": "tag", "before": "x", "after": "y"}]
    }


def edited(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Edit a file by hand, so that there is an uncommitted change."""
    twin.write({"content/tags/t2.json": document(name=f"Tag two, edited {number}")})
    return {}


def new_branch(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a branch with a commit that can be merged."""
    made = f"topic-{number}"
    twin.api.ask("POST", "/branches", json={"name": made, "from": "main"})
    twin.api.put(f"/api/tags/t1?branch={made}", {"name": f"Tag of {made}"})
    return {"branch": made}


def tag_of(path: str, text: str = "") -> Prepare:
    """Return a function that reads the entity tag of a path and, if the response has it, the value of
    `data.text`.
    """

    def prepare(twin: Twin, identity: Identity, number: int) -> Prepared:
        answer = twin.api.get(path, identity.name)
        data = answer.body["data"] if answer.status == 200 else {}
        return {"tag": answer.headers.get("ETag", '"none"'), "text": data.get("text", "none")}

    return prepare


def overtaken(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Read the entity tag of an article, and change the article's private values by hand."""
    answer = twin.api.get("/api/articles/a3", identity.name)
    secret = twin.secrets.text(Group.PRIVATE, "later")
    box = {"label": "A label", "code": secret, "vault": "v1"}
    changed = article(twin.secrets, "Article three", body="New", secret=secret, box=box, tag=None, about=[])
    twin.write({"content/articles/a3.json": changed})
    return {"tag": answer.headers.get("ETag", '"none"')}


def present(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Report the identity as present in a document."""
    body = {"type": "article", "documentId": "a1"}
    twin.api.ask("PUT", "/presence/tab-1", identity.name, json=body)
    return {}


# --- cases ----------------------------------------------------------------------------------------


def _of(operation: str, *paths: str, headers: Mapping[str, str] | None = None) -> Iterator[Case]:
    method = next(o.method for o in OPERATIONS if o.id == operation)
    for path in paths:
        yield Case(Request(operation, method, path, headers or {}))


def _send(
    operation: str,
    path: str,
    body: Any = None,
    prepare: Prepare | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> Case:
    method = next(o.method for o in OPERATIONS if o.id == operation)
    return Case(Request(operation, method, path, headers or {}, body, form or {}), prepare)


_UNDO = {"Prefer": "undo"}
_TAG = {"If-Match": "<tag>"}
_ANY = {"If-Match": "*"}
_SECRETLY = {"title": "New title", "vault": "v1", "box": {"label": "New label"}}


def _of_content() -> Iterator[Case]:
    article, articles = "/api/articles/a1", "/api/articles"
    parameters = ("", "?status=draft", "?locale=fr", "?populate=*", "?at=main~1")
    yield from _of("findOneDocument", *(f"{article}.md{more}" for more in parameters))
    yield from _of(
        "findOneDocument", *(f"/api/{path}.md" for path in ("tags/t1", "vaults/v1", "articles/d1"))
    )
    yield from _of("findOneDocument", article, "/api/tags/t1", headers={"Accept": "text/markdown"})
    yield from _of("findDocument", *(f"{articles}.md{more}" for more in parameters), "/api/vaults.md")
    yield from _of("findOneSingle", "/api/home.md", "/api/home.md?status=draft")
    yield _send("createDocument", articles, {"data": {"title": "New", "tag": "t1"}})
    yield _send("createDocument", f"{articles}?status=draft", {"data": {"title": "New"}}, headers=_UNDO)
    yield _send("createDocument", "/api/tags", {"data": {"name": "New"}})
    yield _send("createDocument", f"{articles}?dryRun=true", {"data": {"title": "New"}})
    yield _send("createDocument", f"{articles}?branch=next", {"data": {"title": "New"}})
    yield _send("updateDocument", article, {"data": {"title": "New title"}})
    yield _send("updateDocument", f"{article}?status=draft", {"data": {"title": "New"}}, headers=_UNDO)
    yield _send("updateDocument", f"{article}?locale=fr&populate=*", {"data": {"title": "Nouveau"}})
    yield _send("updateDocument", f"{article}?dryRun=true", {"data": {"title": "New title"}})
    yield _send("updateDocument", f"{article}?branch=next", {"data": {"body": "New text"}})
    yield _send("updateDocument", article, {"data": {"body": "x"}}, tag_of(article), headers=_TAG)
    yield _send("updateDocument", "/api/articles/a3?populate=*", {"data": {"tag": "t2"}}, headers=_UNDO)
    yield _send("deleteDocument", "/api/articles/a2", headers=_UNDO)
    yield _send("deleteDocument", "/api/articles/a1?locale=fr")
    yield _send("unpublishDocument", f"{article}/actions/unpublish", {})
    yield _send("discardDocument", f"{article}/actions/discard", {})
    yield _send("updateSingle", "/api/home?populate=*", {"data": {"title": "New home"}}, headers=_UNDO)
    yield _send("updateSingle", "/api/notice?status=draft", {"data": {"title": "New notice"}})
    yield _send("deleteSingle", "/api/home")
    yield _send("deleteSingle", "/api/notice")
    yield _send("unpublishSingle", "/api/notice/actions/unpublish", {})
    yield _send("discardSingle", "/api/notice/actions/discard", {})
    operations = [
        {"method": "PUT", "path": "/api/articles/a1?populate=*", "body": {"data": {"title": "Of a batch"}}},
        {"method": "PUT", "path": "/api/articles/a3?status=draft", "body": {"data": {"title": "A draft"}}},
    ]
    yield _send("batch", "/batch", {"operations": operations, "message": "A batch"}, headers=_UNDO)
    yield _send("batch", "/batch?dryRun=true", {"operations": operations[:1]})
    home = {"method": "PUT", "path": "/api/home", "body": {"data": {"title": "New home"}}}
    yield _send("batch", "/batch", {"operations": [home]})
    yield _send("undoWrite", "/batch/undo/<undo>", None, undo)


def _guesses() -> Iterator[Case]:
    """Yield writes with values that depend on current values, which the caller may not read."""
    for data in GUESSES:
        tags = data.keys() & {"parts", "fans"}
        for path in ("/api/tags/t1", "/api/tags/t2") if tags else ("/api/articles/a1", "/api/articles/a2"):
            yield _send("updateDocument", path, {"data": data})
        if not tags:
            yield _send("updateDocument", "/api/articles/a1?status=draft", {"data": data})
    merge = {**_TAG, "Prefer": "merge"}
    later = {"secret": f"{probes(Group.PRIVATE)[0]}later"}
    for data in ({"title": "Ours"}, later, {"box": {"label": "x", "code": later["secret"]}}, {"box": None}):
        yield _send("updateDocument", "/api/articles/a3", {"data": data}, overtaken, headers=merge)
    operation = {"method": "PUT", "path": "/api/articles/a3", "ifMatch": "<tag>", "prefer": "merge"}
    yield _send("batch", "/batch", {"operations": [{**operation, "body": {"data": later}}]}, overtaken)
    move = {"data": {"articles": []}}
    yield _send("updateDocument", "/api/tags/t1?dryRun=true", move)
    moves = [{"method": "PUT", "path": "/api/tags/t1", "body": move}]
    yield _send("batch", "/batch?dryRun=true", {"operations": moves})


def _of_history() -> Iterator[Case]:
    history = "/history/articles/a1"
    yield from _of(
        "findHistory",
        *("/history", "/history?deleted=true&type=articles", "/history?type=article", "/history?page=2"),
    )
    yield from _of("findUncommitted", "/history/uncommitted")
    yield from _of(
        "diffUncommitted",
        *(f"/history/uncommitted/diff?path=content/{p}" for p in ("articles/a2.json", "vaults/v1.json")),
    )
    yield from _of(
        "findTypeHistory", "/history/articles?deleted=true", "/history/home", "/history/vaults?deleted=true"
    )
    yield from _of(
        "findDocumentHistory",
        *(history, f"{history}?status=draft", "/history/articles/mv", "/history/articles/gone"),
        *("/history/vaults/v1", "/history/home/diff", "/history/articles/a2"),
    )
    yield from _of(
        "findVersions",
        *(f"{history}/diff", f"{history}/blame", f"{history}/diff?from=main~4&to=main"),
        *(f"{history}/diff?fromStatus=draft", "/history/articles/mv/diff?from=main~4"),
        *("/history/vaults/v1/diff", "/history/articles/mv/blame", f"{history}/blame?status=draft"),
    )
    files = ["content/tags/t2.json"]
    yield _send("commitFiles", "/history/commit", {"message": "Of a tag", "files": files}, edited)
    articles = ["content/articles/a2.json"]
    yield _send("commitFiles", "/history/commit", {"message": "Of an article", "files": articles})
    yield _send("restore", "/history/articles/a1/restore", {"at": "main~4", "fields": ["title"]})
    yield _send("restore", "/history/articles/a1/restore?dryRun=true", {"at": "main~1"})
    yield _send("restore", "/history/articles/a1/restore", {"at": "main~4"}, headers=_UNDO)
    yield _send("restoreSingle", "/history/home/restore", {"at": "main~1", "fields": ["title"]})


def _of_files() -> Iterator[Case]:
    yield _send("uploadFiles", "/api/upload", form={"fileInfo": '{"name": "New name"}'})
    cover = {"ref": "api::article.article", "refId": "a1", "field": "cover"}
    yield _send("uploadFiles", "/api/upload", form=cover)
    yield from _of("findFiles", "/api/upload/files", "/api/upload/files?sort=name&filters[name][$eq]=pic.txt")
    yield from _of("findFilesPage", "/api/upload/files/page", "/api/upload/files/page?pagination[pageSize]=1")
    yield from _of("findFilesPage", "/api/upload/files/page?unused=false", "/api/upload/files/page?folder=")
    yield from _of("findOneFile", "/api/upload/files/pic.txt")
    yield from _of("findFileUsage", "/api/upload/files/pic.txt/usage")
    yield from _of("findFolders", "/api/upload/folders")
    yield _send("moveFile", "/api/upload/files/pic.txt/move", {"folder": "moved"}, headers=_UNDO)
    yield _send("moveFile", "/api/upload/files/pic.txt/move?dryRun=true", {"fileName": "moved.txt"})
    yield _send("deleteFile", "/api/upload/files/pic.txt", headers=_UNDO)
    yield from _of("download", "/uploads/pic.txt", "/uploads/pic.txt?at=main~1", "/uploads/old.txt?at=main~4")
    for path in ("articles/a1", "articles/a1?status=draft", "articles/a2", "vaults/v1"):
        yield from _of("findDocumentSource", f"/source/{path}")
    yield from _of("findSingleSource", "/source/home", "/source/notice?status=draft")
    source = "/source/tags/t1"
    yield _send("replaceDocumentSource", source, {"data": {"text": "<text> "}}, tag_of(source), headers=_TAG)
    source = "/source/home"
    yield _send("replaceSingleSource", source, {"data": {"text": "<text> "}}, tag_of(source), headers=_TAG)


def _of_people() -> Iterator[Case]:
    form = {"identifier": "<name>", "password": "<password>"}
    yield _send("login", "/api/auth/local", form, new_user)
    yield _send("login", "/api/auth/local", {"identifier": "victim", "password": "not the password"})
    new = {"username": "<name>", "email": "<email>", "password": PASSWORD}
    yield _send("register", "/api/auth/local/register", new, _new_name)
    changed = {"password": "another password", "passwordConfirmation": "another password"}
    change = {**changed, "currentPassword": "<password>"}
    yield _send("changePassword", "/api/auth/change-password", change, own_user)
    yield _send("forgotPassword", "/api/auth/forgot-password", {"email": "user@example.org"})
    yield _send("resetPassword", "/api/auth/reset-password", {**changed, "code": "<code>"}, reset_code)
    address = {"email": "user@example.org"}
    yield _send("sendConfirmation", "/api/auth/send-email-confirmation", address)
    yield _send("confirmEmail", "/api/auth/email-confirmation?confirmation=<code>", None, confirm_code)
    yield _send("refresh", "/api/auth/refresh", {"refreshToken": "<refresh>"}, own_user)
    yield _send("logout", "/api/auth/logout", {}, own_user)
    yield _send("getSessions", "/api/auth/sessions", None, own_user)
    yield _send("revokeSession", "/api/auth/sessions/<session>", None, own_user)
    yield from _of("findUsers", "/api/users", "/api/users?sort=username&filters[username][$eq]=clerk")
    made = {"username": "<name>", "email": "<email>", "password": PASSWORD, "role": "<role>"}
    yield _send("createUser", "/api/users", made, _new_name)
    yield from _of("countUsers", "/api/users/count")
    yield from _of("me", "/api/users/me", "/api/users/me?populate=*")
    yield _send("updateMe", "/api/users/me", {"username": "<name>-renamed"}, own_user)
    yield from _of("findOneUser", "/api/users/1", "/api/users/2?populate=role")
    yield _send("updateUser", "/api/users/<user>", {"username": "<name>-renamed"}, new_user)
    yield _send("deleteUser", "/api/users/<user>", None, new_user)
    yield from _of("findRoles", "/api/users-permissions/roles")
    yield from _of("findOneRole", "/api/users-permissions/roles/clerk")
    yield from _of("findPermissions", "/api/users-permissions/permissions")
    for role in ("clerk", "public", "reviewer"):
        as_role = {"Bifolio-Role": role}
        yield from _of("findDocument", "/api/articles?populate=*", "/api/vaults", headers=as_role)
        one = ("/api/articles/a1?status=draft", "/api/articles/a1?at=main~4")
        yield from _of("findOneDocument", *one, headers=as_role)
        yield from _of("access", "/access", headers=as_role)
        yield from _of("listUsers", "/users", headers=as_role)
        yield from _of("findEvents", "/events?since=0", headers=as_role)
    yield from _of("findSettings", "/settings")
    name = {"data": {"name": "<name>"}}
    yield _send("updateSettings", "/settings", name, _site_name, headers=_ANY)
    yield _send("updateSettings", "/settings?dryRun=true", name, _site_name, headers=_ANY)
    options = {"operation": "options", "attribute": "tag.name", "options": {"maxLength": 90}}
    moved = {"operation": "rename", "attribute": "article.title", "to": "headline"}
    lost = {"operation": "drop", "attribute": "article.secret"}
    builder = "/api/content-type-builder/changes"
    for change in (options, moved, lost):
        body = {"data": {"changes": [change]}}
        yield _send("changeContentTypes", f"{builder}?dryRun=true", body)
    body = {"data": {"changes": [options]}}
    yield _send("changeContentTypes", builder, body, headers=_ANY)
    yield _send("changeContentTypes", builder, {"data": {"changes": [lost]}}, headers=_ANY)
    yield from _of("listRoles", "/roles")
    role = {"data": {"permissions": {"tag": ["find", "findOne"]}}}
    yield _send("putRole", "/roles/<role>", role, _new_role, headers=_ANY)
    yield _send("putRole", "/roles/<role>?dryRun=true", role, _new_role, headers=_ANY)
    yield _send("removeRole", "/roles/<role>", None, _new_role, headers=_ANY)
    yield from _of("listUsers", "/users", "/users?q=clerk", "/users?role=clerk")
    yield from _of("getUser", "/users/1")
    yield from _of("listSessions", "/users/1/sessions", "/users/2/sessions")
    yield from _of("listTokens", "/tokens")
    invited = {"data": {"username": "<name>", "email": "<email>", "role": "clerk"}}
    yield _send("inviteUser", "/users", invited, _new_name)
    yield _send("inviteAgain", "/users/<user>/invitation", None, new_user)
    accepted = {"code": "<code>", "password": "another password"}
    yield _send("acceptInvitation", "/invitation", accepted, reset_code)
    blocked = {"data": {"blocked": True}}
    yield _send("changeUser", "/users/<user>", blocked, new_user, headers=_ANY)
    yield _send("endSession", "/users/<user>/sessions/<session>", None, own_user)
    yield _send("endSessions", "/users/<user>/sessions", None, new_user)
    yield _send("removeUser", "/users/<user>", None, new_user)
    token = {"data": {"name": "<name>", "type": "custom", "permissions": ["tag.find"]}}
    yield _send("createToken", "/tokens", token, _new_name)
    yield _send("revokeToken", "/tokens/<name>", None, _new_token)
    yield _send("studioSignIn", "/studio/-/session", form, new_user, headers=STUDIO)
    yield _send("studioSignOut", "/studio/-/session", headers=STUDIO)


def _new_name(twin: Twin, identity: Identity, number: int) -> Prepared:
    roles = twin.api.get("/api/users-permissions/roles").body["roles"]
    role = next(one["id"] for one in roles if one["name"].lower() == "clerk")
    return {"name": f"temp{number}", "email": f"temp{number}@example.org", "role": role}


def _site_name(twin: Twin, identity: Identity, number: int) -> Prepared:
    return {"name": f"Site {number}"}


def _new_token(twin: Twin, identity: Identity, number: int) -> Prepared:
    twin.api.accounts.create_token(f"temp{number}", "custom", ["tag.find"])
    return {"name": f"temp{number}"}


def _webhook_name(twin: Twin, identity: Identity, number: int) -> Prepared:
    return {"webhook": f"temp{number}"}


def _new_webhook(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a webhook, which the case changes or deletes."""
    name = f"temp{number}"
    answer = twin.api.post("/webhooks", {"name": name, "url": "https://hooks.example.org/"})
    assert answer.status == 201, answer.body
    return {"webhook": name}


def _new_role(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Create a role, which the case changes or deletes."""
    name, body = f"temp{number}", {"permissions": {"tag": ["find"]}}
    answer = twin.api.put(f"/roles/{name}", body, headers={"If-Match": "*"})
    assert answer.status == 200, answer.body
    return {"role": name}


def _of_branches() -> Iterator[Case]:
    yield from _of("findBranches", "/branches")
    yield from _of("findBranchChanges", "/branches/next/changes", "/branches/settings/changes")
    yield from _of("findBranchProblems", "/branches/next/problems")
    yield _send("createBranch", "/branches", {"name": "<branch>", "from": "main~1"}, _branch_name)
    yield _send("deleteBranch", "/branches/<branch>", None, new_branch)
    yield _send("mergeBranch", "/branches/<branch>/merge", {"message": "Merge"}, new_branch)
    yield _send("mergeBranch", "/branches/next/merge", {})


def _branch_name(twin: Twin, identity: Identity, number: int) -> Prepared:
    return {"branch": f"topic-{number}"}


def _of_site() -> Iterator[Case]:
    yield from _of("findLocales", "/api/i18n/locales")
    for uid, kind in (("api::article.article", "ContentType"), ("x.box", "Component")):
        path = f"/api/content-type-builder/{'content-types' if kind == 'ContentType' else 'components'}"
        yield from _of(f"find{kind}s", path, f"{path}?at=main~4")
        yield from _of(f"findOne{kind}", f"{path}/{uid}")
    yield from _of("access", "/access")
    yield from _of("health", "/_health")
    yield from _of("healthLive", "/_health/live")
    yield from _of("healthReady", "/_health/ready")
    yield from _of("metrics", "/metrics")
    push = {"ref": "refs/heads/main", "after": "0" * 40}
    yield _send("gitHook", "/git/hook", push, headers={"X-Gitlab-Token": GIT_HOOK_SECRET})
    yield from _of("overview", "/overview", "/overview?status=draft", "/overview?locale=fr")
    yield from _of("feed", "/feeds/all.rss", "/feeds/all.atom", "/feeds/all.json", "/feeds/vaults.rss")
    yield from _of("sitemap", "/sitemap.xml")
    yield from _of("llms", "/llms.txt")
    yield from _of("redirects", "/redirects")
    stream = {"Accept": "text/event-stream"}
    yield from _of("findEvents", "/events?since=0&limit=1000", "/events?types=article&since=0")
    yield from _of("findEvents", "/events?since=0", headers=stream)
    yield from _of("findActivity", "/events/activity?since=0")
    yield _send("findEvents", "/events", None, _event_id, headers={**stream, "Last-Event-ID": "<event>"})
    yield from _of("findTagsOfAddress", *(f"/events/tags?of={u}" for u in ("/api/articles/a1", "/api/tags")))
    yield from _of("reloadScript", "/events/reload.js")
    yield from _of("listWebhooks", "/webhooks")
    yield _send("listDeliveries", "/webhooks/hook/deliveries", None, _delivery)
    yield _send("getDelivery", "/webhooks/hook/deliveries/<delivery>", None, _delivery)
    yield _send("replayDelivery", "/webhooks/hook/deliveries/<delivery>/replay", None, _delivery)
    yield _send("testWebhook", "/webhooks/local/test")
    yield _send("enableWebhook", "/webhooks/hook/enable")
    yield _send("rotateSecret", "/webhooks/hook/secret")
    new = {"data": {"name": "<webhook>", "url": "https://hooks.example.org/", "headers": {"X-Key": "a"}}}
    slow = {"data": {"debounce": "9s", "headers": {"X-Key": "a"}}}
    for query in ("", "?dryRun=true"):
        yield _send("createWebhook", f"/webhooks{query}", new, _webhook_name)
        yield _send("updateWebhook", f"/webhooks/<webhook>{query}", slow, _new_webhook, headers=_ANY)
        yield _send("updateWebhook", f"/webhooks/hook{query}", slow, headers=_ANY)
        yield _send("deleteWebhook", f"/webhooks/<webhook>{query}", None, _new_webhook, headers=_ANY)
    yield _send("deleteWebhook", "/webhooks/hook?dryRun=true", headers=_ANY)
    yield _send("putPresence", "/presence/tab-1", {"type": "article", "documentId": "a1", "field": "title"})
    yield _send("findPresence", "/presence", None, present)
    yield _send("deletePresence", "/presence/tab-1", None, present)
    yield from _of("findProblems", "/problems", "/problems?fixable=true", "/problems?severity=warning")
    yield _send("fixProblems", "/problems/fix", {"fixes": "<fixes>"}, typo)
    yield from _of("openapi", "/openapi.json")
    yield from _of("docsPage", "/docs")
    yield from _of("docsPageWithSlash", "/docs/")
    yield from _of("docsFile", "/docs/page.js")
    yield from _of("startPage", "/")
    yield from _of("startFromApi", "/api", headers={"Accept": "text/html"})
    yield from _of("startFromAdmin", "/admin")
    yield from _of("startFromApiWithSlash", "/api/", headers={"Accept": "text/html"})
    yield from _of("startFromAdminWithSlash", "/admin/")
    yield from _of("studioPage", "/studio")
    yield from _of("studioPlace", "/studio/articles/a1")
    yield from _of("studioFile", "/studio/-/x/main.js")


def _delivery(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Store a delivery that has failed, with a response that repeats the content of a hidden document."""
    database, at = EventDatabase(twin.api.root), 1_704_067_200.0
    event = Event("entry.create", "api::vault.vault", "v1", "en", "published")
    hidden = twin.secrets.text(Group.HIDDEN, "v1")
    with database.writing() as transaction:
        connection = transaction.connection
        put(connection, "hook", "", event, WAITING, at, at)
        (made,) = newest(connection, ["hook"], 1)
        begin(connection, made, hidden.encode(), at)
        keep_exchange(connection, made, hidden, 0.1)
        note(connection, made, 500, hidden)
        finish(connection, made, FAILED)
    database.close()
    return {"delivery": made.id}


def _event_id(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Return the id of the first event, in the form that the event stream uses."""
    log = twin.api.get("/events?since=0&limit=1").body["meta"]["log"]
    return {"event": f"{log}-1"}


def _conditional() -> Iterator[Case]:
    """Yield reads with the entity tag of the previous response for the same path, which must still be
    valid.
    """
    for path in ("/api/articles/a1", "/api/articles", "/api/home", "/api/tags/t1", "/source/articles/a1"):
        operation = next(o.id for o in OPERATIONS if o.method == "GET" and o.matches(path))
        yield from _of(operation, path)
        yield from _of(operation, path, headers={"If-None-Match": KNOWN_TAG})
        for case in _of(operation, path):
            yield replace(case, request=replace(case.request, method="HEAD"))


def _of_agents() -> Iterator[Case]:
    for request in (*agents.other_methods(), *agents.calls()):
        yield Case(request, tag_of("/source/tags/t1") if "<tag>" in str(request.body) else None)
    for request in agents.own_branch_calls():
        yield Case(request, agents_on_branches)


def agents_on_branches(twin: Twin, identity: Identity, number: int) -> Prepared:
    """Make agents write to branches of their own."""
    direct, branch = b'"write": "direct"', b'"write": "branch"'
    twin.write({"site.yaml": twin.files["site.yaml"].replace(direct, branch)})
    assert twin.api.site.state.settings.mcp.write is WriteMode.BRANCH
    return tag_of("/source/tags/t1")(twin, identity, number)


def make_cases() -> list[Case]:
    """Return all cases, reads first.

    Most reads come before the first write, because writes add times and ids that differ between twins.
    """
    made = [Case(request) for request in reads()]
    for part in (
        *(_of_history, _of_files, _of_site, _of_branches, _of_people, _of_content, _guesses, _conditional),
        _of_agents,
    ):
        made += part()
    return sorted(made, key=lambda case: not (case.request.is_read or case.request.method in ("GET", "HEAD")))
