"""The twin sites of the matrix, with real files, a git history, accounts and an event log."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from server.api.app import create_app
from server.auth.users import Users
from server.events.recorder import Recorder
from server.site.configure import is_configuration
from tests.git import git
from tests.matrix.secrets import BASE, LONGER, SAME_LENGTH, Group, Secrets
from tests.sites import (
    INTEGER,
    STRING,
    Api,
    collection,
    component,
    opened,
    relation,
    schema,
    translated,
    write,
)

Files = Mapping[str, str]
# Modification times in seconds since 1970. The matrix does not compare times of this year.
_PAST_S = count(int(time.time()) - 86_400)
PRIVATE = {**STRING, "private": True}
BOX = {"type": "component", "component": "x.box"}
TIMES = dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), "2024-02-29T10:20:30.000Z")
ARTICLE: Mapping[str, Any] = {
    "title": translated(STRING),
    "body": translated({"type": "richtext"}),
    "secret": PRIVATE,
    "rank": {**INTEGER, "private": True},
    "pin": {"type": "password"},
    "tag": relation("manyToOne", "tag", inversedBy="articles"),
    "vault": relation("manyToOne", "vault", inversedBy="articles"),
    "vaults": relation("manyToMany", "vault"),
    "about": {"type": "relation", "relation": "morphToMany"},
    "box": BOX,
    "boxes": {**BOX, "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["x.box"]},
    "friends": relation("manyToMany", "tag", inversedBy="fans"),
    "ptags": relation("manyToMany", "tag", inversedBy="parts", private=True),
    "pboxes": {**BOX, "repeatable": True, "private": True},
    "cover": {"type": "media"},
    "owner": {
        "type": "relation",
        "relation": "manyToOne",
        "target": "plugin::users-permissions.user",
    },
}
TYPES: Files = {
    **collection(
        "tag",
        {
            "name": STRING,
            "articles": relation("oneToMany", "article", mappedBy="tag"),
            "fans": relation("manyToMany", "article", mappedBy="friends"),
            "parts": relation("manyToMany", "article", mappedBy="ptags", private=True),
        },
    ),
    **collection("vault", {"title": STRING, "articles": relation("oneToMany", "article", mappedBy="vault")}),
    "content-types/home.json": schema("home", {"title": STRING, "motto": PRIVATE}, single=True),
    "content-types/notice.json": schema("notice", {"title": STRING}, single=True, drafts=True),
    **component("x.box", {"label": STRING, "code": PRIVATE, "vault": relation("manyToOne", "vault")}),
}
ROLES: Mapping[str, Mapping[str, list[str]]] = {
    "public": {
        "article": ["find", "findOne"],
        "tag": ["find", "findOne"],
        "home": ["find"],
        "notice": ["find"],
        "upload": ["find", "findOne"],
        "locale": ["find"],
        "auth": [
            *("callback", "register", "forgotPassword", "resetPassword", "emailConfirmation"),
            *("sendEmailConfirmation", "refresh"),
        ],
    },
    "authenticated": {
        "article": ["find", "findOne"],
        "tag": ["find", "findOne"],
        "upload": ["find"],
        "user": ["me", "updateMe", "count"],
        "auth": ["changePassword", "refresh", "logout", "getSessions", "revokeSession"],
    },
    "clerk": {
        "webhook": ["read", "send"],
        "article": ["find", "findOne", "create", "update", "delete"],
        "tag": ["find", "findOne", "create", "update"],
        "home": ["find", "update", "delete"],
        "notice": ["find", "update", "delete"],
        "upload": ["find", "findOne", "upload", "destroy"],
    },
    "reviewer": {"article": ["find", "findOne", "readDraft"], "notice": ["find", "readDraft"]},
}
CUSTOM = (
    *("article.find", "article.findOne", "article.update", "article.updateDraft", "tag.find", "tag.findOne"),
    *("history.read", "history.restore", "history.commit", "upload.find", "home.find", "home.update"),
    *("branch.find", "branch.create", "branch.update", "branch.delete", "branch.merge"),
    *("problems.find", "problems.fix", "tag.update"),
)
# It may send dry runs, but not read the source files of articles, because it lacks `findOne`.
TRYING = ("source.read", "article.find", "article.update", "tag.find", "tag.findOne", "tag.update")
EVERY = frozenset(Group)


@dataclass(frozen=True, slots=True)
class Identity:
    """An actor in the matrix: its name in the tests, and the secrets that it may see.

    `sees_tags` means that it may write private values. Its entity tags depend on these values, too
    (docs/writing.md).
    """

    name: str
    visible: frozenset[Group] = frozenset()
    sees_tags: bool = False

    @property
    def hidden(self) -> frozenset[Group]:
        """The secrets that the identity may not see."""
        return EVERY - self.visible


IDENTITIES = (
    Identity("public"),
    Identity("user"),
    Identity("clerk", sees_tags=True),
    Identity("trying", sees_tags=True),
    Identity("reviewer", frozenset({Group.DRAFT})),
    Identity("custom", frozenset({Group.PAST, Group.BRANCH}), sees_tags=True),
    Identity("reading", frozenset({Group.DRAFT, Group.HIDDEN, Group.BRANCH, Group.NAME})),
    Identity("full", EVERY - {Group.NEVER}, sees_tags=True),
)


# --- files ----------------------------------------------------------------------------------------


def article(s: Secrets, title: str, **more: object) -> str:
    """Return the file of an article that has private values."""
    about = [{"__type": "api::tag.tag", "documentId": "t1"}]
    vaults = ["v1"]
    if s.more(Group.HIDDEN):
        vaults = ["v1", "v2"]
    else:
        about.insert(0, {"__type": "api::vault.vault", "documentId": "v1"})
    box = {"label": "A label", "code": s.text(Group.PRIVATE, "code"), "vault": "v1"}
    values: dict[str, Any] = {
        "title": title,
        "body": "Text of an article",
        "secret": s.text(Group.PRIVATE, "secret"),
        "rank": s.number(Group.PRIVATE),
        "pin": s.text(Group.NEVER, "pin"),
        "tag": "t1",
        "vault": "v1",
        "vaults": vaults,
        "about": about,
        "box": box,
        "boxes": [box],
        "friends": ["t1"],
        "ptags": ["t2" if s.more(Group.PRIVATE) else "t1"],
        "zone": [{"__component": "x.box", **box}],
        "cover": "pic.txt",
        s.text(Group.NAME, "link"): ["n1"],
    }
    # at the end, because reports contain the line numbers of the keys before it
    last = {"pboxes": [box] * (2 if s.more(Group.PRIVATE) else 1)}
    return json.dumps({**values, **more, **last, **TIMES}, indent=1)


def drafted(s: Secrets) -> str:
    """Return the draft of the first article. In some twins, it has more components and other relations."""
    box = {"label": "A label", "vault": "v1"}
    more = s.more(Group.DRAFT)
    title, friends = s.text(Group.DRAFT, "title"), ["t2" if more else "t1"]
    return article(s, title, tag="t2", friends=friends, boxes=[box] * (2 if more else 1))


def document(**values: object) -> str:
    """Return the file of a document with the given values."""
    return json.dumps({**values, **TIMES}, indent=1)


def types(s: Secrets) -> Files:
    """Return the schemas. Some of their names contain secrets."""
    more = ["", *(["more"] if s.more(Group.NAME) else [])]
    names = [s.text(Group.NAME, f"thing{end}") for end in more]
    links = {
        s.text(Group.NAME, f"link{end}"): relation("manyToMany", name)
        for end, name in zip(more, names, strict=True)
    }
    found = {**TYPES, **collection("article", {**ARTICLE, **links}, drafts=True, localized=True)}
    for name in names:
        found |= collection(name, {s.text(Group.NAME, "field"): STRING})
        found[f"content/{name}s/n1.json"] = document(**{s.text(Group.NAME, "field"): "Text"})
    return found


def served(s: Secrets) -> dict[str, str]:
    """Return the files of the served branch."""
    drafts = {"d1", *(["d2"] if s.more(Group.DRAFT) else [])}
    vaults = {"v1", *(["v2"] if s.more(Group.HIDDEN) else [])}
    webhook = {
        "name": "hook",
        "url": f"https://example.org/{s.text(Group.NEVER, 'hook')}",
        "events": ["entry.*"],
    }
    settings = {
        "name": "Matrix",
        "urls": {
            "article": "https://example.org/{locale}/{title}",
            "vault": "https://example.org/vaults/{title}",
        },
        "feeds": {"all": {"type": ["article", "vault"], "locale": "*"}, "vaults": {"type": "vault"}},
        "llms": {"enabled": True},
        "auth": {"refresh": True, "access_token": "30d"},
        "locales": {"default": "en", "available": ["en", "fr"]},
        "mail": {"host": "localhost", "user": s.text(Group.NEVER, "mail")},
        # Nothing is sent to a private address.
        "webhooks": [webhook, {"name": "local", "url": "http://127.0.0.1/", "enabled": False}],
        "roles": ROLES,
        "mcp": {"enabled": True, "write": "direct"},
    }
    return {
        **types(s),
        ".gitignore": ".bifolio/\n",
        "site.yaml": f"# {s.text(Group.NEVER, 'comment')}\n{json.dumps(settings)}\n",
        "secret.txt": s.text(Group.NEVER, "outside"),
        "data/secret.json": json.dumps({"title": s.text(Group.NEVER, "outside")}),
        "content/uploads/pic.txt": "A file\n",
        "content/tags/t1.json": document(name="Tag one"),
        "content/tags/t2.json": document(name="Tag two"),
        "content/home.json": document(title="Home", motto=s.text(Group.PRIVATE, "motto")),
        "content/notice.json": document(title="Notice"),
        "content/notice.draft.json": document(title=s.text(Group.DRAFT, "notice")),
        "content/articles/a1.json": article(s, "Article one"),
        "content/articles/a1.fr.json": article(s, "Premier article"),
        "content/articles/a1.draft.json": drafted(s),
        "content/articles/a2.json": article(s, "Article two", tag="t2"),
        "content/articles/a3.json": article(s, "Article three", tag=None, about=[]),
        "content/articles/a4.json": article(s, "Article four"),
        **(
            {"content/articles/a4.draft.json": article(s, s.text(Group.DRAFT, "a4"))}
            if s.more(Group.DRAFT)
            else {}
        ),
        "content/articles/mv.json": article(s, "Moved here", **_LINES),
        "content/articles/named.json": article(s, "Renamed before it was published", **_OTHER_LINES),
        **{f"content/articles/{d}.draft.json": article(s, s.text(Group.DRAFT, d)) for d in drafts},
        **{f"content/vaults/{v}.json": document(title=s.text(Group.HIDDEN, v)) for v in vaults},
    }


_LINES = {f"line{n}": f"the same in both, line {n}" for n in range(12)}
_OTHER_LINES = {f"row{n}": f"common to the draft and the article, row {n}" for n in range(12)}


def past(s: Secrets) -> dict[str, str]:
    """Return the files of the first commit."""
    gone = {"gone", *(["gone2"] if s.more(Group.PAST) else [])}
    files = served(s)
    del files["content/articles/mv.json"], files["content/articles/named.json"]
    former = f"content/articles/{s.text(Group.DRAFT, 'former')}.draft.json"
    return {
        **files,
        "content/articles/a1.json": article(s, s.text(Group.PAST, "title")),
        "content/articles/a1.draft.json": article(s, s.text(Group.DRAFT, "earlier")),
        "content/vaults/v1.json": document(title=s.text(Group.HIDDEN, "earlier")),
        "content/vaults/vgone.json": document(title=s.text(Group.HIDDEN, "deleted")),
        "content/vaults/mv.json": article(s, s.text(Group.HIDDEN, "moved"), **_LINES),
        former: article(s, "Renamed before it was published", **_OTHER_LINES),
        "content/uploads/old.txt": s.text(Group.PAST, "upload"),
        **{f"content/articles/{name}.json": article(s, s.text(Group.PAST, name)) for name in gone},
    }


def history(s: Secrets) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the commits: for each, the branch, the message, and either all files or only those that it
    changes.
    """
    main, after = "main", served(s)
    yield main, "Begin", past(s)
    yield main, "Change articles", after
    vault = {
        "content/vaults/v1.json": document(title=s.text(Group.HIDDEN, "between")),
        # With this change, the commit is listed for more identities.
        "content/tags/t2.json": document(name="Tag two, between"),
    }
    yield main, s.text(Group.HIDDEN, "message"), {**after, **vault}
    draft = {"content/articles/a1.draft.json": article(s, s.text(Group.DRAFT, "between"))}
    yield main, s.text(Group.DRAFT, "message"), {**after, **draft}
    yield main, "Change back", after
    other = {"content/articles/a1.json": article(s, s.text(Group.BRANCH, "title"))}
    if s.more(Group.BRANCH):
        other["content/articles/r2.json"] = article(s, s.text(Group.BRANCH, "r2"))
    yield "next", "Change on a branch", {**after, **other}
    comments = [s.text(Group.NEVER, f"comment {number}") for number in range(3)]
    settings = after["site.yaml"].replace('"Matrix"', '"Another name"').rstrip()
    changed = f"# {comments[0]}\n{settings} # {comments[1]}\n# {comments[2]}\n"
    yield "settings", "Change the settings", {**after, "site.yaml": changed}
    yield s.text(Group.BRANCH, "name"), s.text(Group.BRANCH, "message"), {**after, **other}


def uncommitted(s: Secrets) -> dict[str, str]:
    """Return the files that are not committed."""
    return {
        ".bifolio/notes.txt": s.text(Group.NEVER, "state"),
        "content/articles/a2.json": article(s, "Article two, edited", tag="t2"),
        "content/articles/a3.draft.json": article(s, s.text(Group.DRAFT, "uncommitted")),
        "content/vaults/v1.json": document(title=s.text(Group.HIDDEN, "uncommitted")),
    }


def _stream(commits: Iterable[tuple[str, str, Mapping[str, str]]]) -> Iterator[bytes]:
    """Yield the input with which `git fast-import` creates the commits."""
    last = 0
    for number, (branch, message, files) in enumerate(commits, 1):
        yield f"commit refs/heads/{branch}\nmark :{number}\n".encode()
        yield b"".join(
            b"%b T <t@example.org> %d +0000\n" % (who, 1_704_067_200 + number)
            for who in (b"author", b"committer")
        )
        yield _data(message)
        if last:
            yield b"from :%d\n" % last
        last = number if branch == "main" else last
        yield b"deleteall\n"
        for path, text in sorted(files.items()):
            yield f"M 100644 inline {path}\n".encode() + _data(text)


def _data(text: str) -> bytes:
    return b"data %d\n%b\n" % (len(text.encode()), text.encode())


# --- sites ----------------------------------------------------------------------------------------


# The role of each user, by user name. All sites have the same users.
USERS: Mapping[str, str] = {"user": "authenticated", "clerk": "clerk", "reviewer": "reviewer"}


@dataclass(slots=True)
class Twin:
    """One of several sites that differ only in their secrets.

    `files` contains, by path, the content and git's refs as they were at first, so that they can be restored
    after writes.
    """

    api: Api
    secrets: Secrets
    tags: dict[tuple[str, str], str] = field(default_factory=dict)  # the last entity tag by identity and path
    undo: dict[str, str] = field(default_factory=dict)  # by identity: the id for undoing its last write
    commits: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    people: frozenset[int] = frozenset()
    written: bool = False  # whether the site may have changed since it was created or restored

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files by hand."""
        write(self.api.root, files)
        _age_configuration(self.api.root, files)
        self.written = True
        self.api.site.refresh()

    def keep(self) -> None:
        """Save the current state as the one to which `restore` returns."""
        self.files = _read_files(self.api.root)
        self.people = frozenset(user.id for user in Users(self.api.accounts).all())

    def renew(self) -> None:
        """Restart the app and change a document, so that no cached response remains."""
        self.api.app = create_app(self.api.site, self.api.accounts)
        self.api.client = self.api.app.test_client()
        self.write({"content/tags/t2.json": document(name="Another name of tag two")})
        self.restore()

    def restore(self) -> None:
        """Undo all writes to content, branches and users since `keep` was called."""
        if not self.written:
            return
        root, now = self.api.root, _read_files(self.api.root)
        for name in now.keys() - self.files.keys():
            (root / name).unlink()
        changed = {name: text for name, text in self.files.items() if now.get(name) != text}
        write(root, changed)
        _age_configuration(root, changed)
        users = Users(self.api.accounts)
        for user in users.all():
            if user.id not in self.people:
                users.delete(user.id)
        self.api.site.refresh()
        self.written = False

    def list_commits(self) -> list[str]:
        """Return the ids of all commits. The order is the same in each twin site."""
        commits = ("--exclude=refs/stash", "--all")  # Nobody can guess the id of the stash.
        self.commits = git(self.api.root, "rev-list", *commits, "--reverse", "--topo-order").split()
        return self.commits


def _age_configuration(root: Path, names: Iterable[str]) -> None:
    """Set the modification times of settings and schemas to different times in the past.

    While such a file is so new that a further change could leave its signature unchanged, each refresh reads
    all settings and schemas twice.
    """
    for name in names:
        if is_configuration(name):
            seconds = next(_PAST_S)
            os.utime(root / name, (seconds, seconds))


def _read_files(root: Path) -> dict[str, bytes]:
    """Return the content files, the settings, and the files in which git stores branches and its index."""
    folders = ("content", ".git/refs/heads")
    files = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    files += [root / ".git/HEAD", root / ".git/index", root / "site.yaml"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def make_twin(root: Path, secrets: Secrets) -> Twin:
    """Create a site that contains the given secrets, with its history, accounts and event log."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    stream = b"".join(_stream(history(secrets)))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=stream, check=True)
    git(root, "reset", "-q", "--hard", "main")
    write(root, {"content/articles/a1.json": article(secrets, secrets.text(Group.NEVER, "stash"))})
    git(root, "stash", "push", "-q")
    write(root, uncommitted(secrets))
    _age_configuration(root, served(secrets))
    api = Api.of(opened(root))
    api.site.observe(Recorder(root, accounts_url=api.site.state.settings.accounts))
    api.site.record()
    users = Users(api.accounts)
    for name, role in USERS.items():
        users.create(name, f"{name}@example.org", f"{name} password", role=role, confirmed=True)
        form = {"identifier": name, "password": f"{name} password"}
        api.tokens[name] = api.ask("POST", "/api/auth/local", "public", json=form).body["jwt"]
    address, password = (
        f"{secrets.text(Group.HIDDEN, 'user')}@example.org",
        secrets.text(Group.NEVER, "password"),
    )
    users.create("victim", address, password, role="clerk", confirmed=True)
    api.token(secrets.text(Group.TOKEN, "token"), may=["article.find"])
    api.token("custom", may=CUSTOM)
    api.token("trying", may=TRYING)
    api.token("reading", "read-only")
    twin = Twin(api, secrets)
    twin.list_commits()
    twin.keep()
    twin.write({name: _changed(text) for name, text in twin.files.items() if name.endswith(".json")})
    twin.restore()  # This creates events for all documents, including hidden ones.
    return twin


def _changed(text: bytes) -> bytes:
    """Return the text of a document with a different value for its first attribute."""
    values = json.loads(text)
    name = next(iter(values))
    return json.dumps({**values, name: f"{values[name]} and more"}, indent=1).encode()


@dataclass(frozen=True, slots=True)
class Family:
    """Identities that may see the same secrets, and a set of sites that differ only in all other secrets."""

    identities: tuple[Identity, ...]
    twins: tuple[Twin, ...]


def two_kinds(_: frozenset[Group]) -> Sequence[int]:
    """Return the two kinds of secrets that reveal most leaks."""
    return BASE, LONGER


def every_kind(_: frozenset[Group]) -> Sequence[int]:
    return BASE, SAME_LENGTH, LONGER


def every_kind_for_the_public(visible: frozenset[Group]) -> Sequence[int]:
    """Return all kinds of secrets if no group is visible, as for the public. Otherwise, return two kinds."""
    return two_kinds(visible) if visible else every_kind(visible)


@contextmanager
def families(
    folder: Path,
    kinds_of: Callable[[frozenset[Group]], Sequence[int]],
    identities: Sequence[Identity] = IDENTITIES,
) -> Iterator[list[Family]]:
    """Context manager: create the twin sites for some identities.

    `kinds_of` chooses the kinds of secrets, given the groups that the identities may see.
    """
    made: list[Family] = []
    try:
        for visible in dict.fromkeys(identity.visible for identity in identities):
            name = "-".join(sorted(group.value for group in visible)) or "none"
            twins = tuple(
                make_twin(folder / f"{name}-{kind}", Secrets(EVERY - visible, kind))
                for kind in kinds_of(visible)
            )
            made.append(Family(tuple(i for i in identities if i.visible == visible), twins))
        yield made
    finally:
        for family in made:
            for twin in family.twins:
                twin.api.accounts.close()
