"""Work during which `bench.caches` measures caches. It runs in one process, without a network."""

import json
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import count as counting
from pathlib import Path
from typing import Any

from PIL import Image

from bench.effort import scaled
from bench.model import write_types
from bench.read_requests import cases
from bench.sites import WORDS, Sizes, article_id, article_path, git, make_site
from bench.writing import writing_token
from server.api.app import create_app
from server.api.entrance import Entrance
from server.auth.accounts import Accounts
from server.auth.permissions import Actor
from server.config.model import with_values
from server.documents.document import PUBLISHED
from server.events.presence import Presence, PresenceSource, PresenceTable
from server.events.reading import Selection
from server.events.stream import EVENT_FRAMES, Source
from server.history.remote.following import Follower
from server.history.remote.remote_status import CURRENT
from server.index.find import prepare_texts
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.paths import UPLOADS
from server.search.indexer import Indexer
from server.search.sync import Sync
from server.search.texts import Task, texts
from server.service.opening import Mode, OpenSite, open_site
from server.site.check.survey import survey

ARTICLES = scaled(2000, 30)
REQUESTS = scaled(300, 4)  # number of items of each kind
WRITES = scaled(60, 3)
PEOPLE = scaled(50, 3)
POSTS = scaled(1000, 5)
PICTURES = 10
PUSHES = scaled(10)
ENCODINGS = "gzip, deflate, br, zstd"  # the header `Accept-Encoding`, as browsers send it
During = Callable[[str, int], AbstractContextManager[None]]
_numbers = counting()


class Client:
    """Client of the app for an open site, optionally with a token."""

    def __init__(self, opened: OpenSite, token: str = "", **environ: str) -> None:
        site = opened.site
        self._app = create_app(site, Accounts(site.root, site.state.settings.accounts))
        assert isinstance(self._app.wsgi_app, Entrance)
        self._entrance = self._app.wsgi_app
        self._environ = environ | ({"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {})

    def send(self, method: str, target: str, data: Any = None, **more: str) -> bytes:
        """Return the body of the response. Raises RuntimeError for an error."""
        path, _, query = target.partition("?")
        body = b"" if data is None else json.dumps(data).encode()
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "bench",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "bench",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(body),
            "wsgi.errors": sys.stderr,
            **self._environ,
            **more,
        }
        told: list[str] = []
        sent = b"".join(self._entrance(environ, lambda status, headers, error=None: told.append(status)))
        if told[0] >= "400":
            raise RuntimeError(f"{method} {target}: {told[0]} {sent[:300]!r}")
        return sent

    def receive(self, method: str, path: str) -> None:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, **self._environ}
        self._entrance.max_body_bytes(environ)
        self._entrance.may_wait_long(environ)

    def read(self, *targets: str) -> None:
        # The appended number makes each request different.
        for target in targets:
            self.send("GET", f"{target}{'&' if '?' in target else '?'}unlike={next(_numbers)}")

    def repeat(self, target: str, times: int = 1, **more: str) -> None:
        for _ in range(times):
            self.send("GET", target, **more)


def run(folder: Path, during: During) -> None:
    """Do all kinds of work, each inside `during(name, number of items)`."""
    site, posts = folder / "site", folder / "posts"
    site.mkdir()
    sizes = make_site(site, ARTICLES)
    settings = site / "site.yaml"
    settings.write_text(settings.read_text().replace("search: {index: false}", ""))
    _write_pictures(site)
    opened = _start(site, during, "articles", ARTICLES)
    _reads(opened, sizes, during)
    _writes(opened, sizes, during)
    _events(opened, during)
    _history(opened, sizes, during)
    _pages(opened, during)
    _search(opened, folder / "index", during)
    _check(site, during)
    _make_posts(posts)
    opened = _start(posts, during, "posts in TOML", POSTS)
    _behind_a_proxy(opened, during)
    _follow(opened, folder, during)


def _start(root: Path, during: During, what: str, documents: int) -> OpenSite:
    with during(f"a cold start, of each of the {what}", documents):
        _open(root)
    with during(f"a warm start, of each of the {what}", documents):
        return _open(root)


def _open(root: Path) -> OpenSite:
    opened = open_site(root, Mode.SERVER, records=True)
    prepare_texts(opened.site.state.snapshot)
    return opened


def _reads(opened: OpenSite, sizes: Sizes, during: During) -> None:
    """Send each kind of read request: first different requests, and then repeated ones."""
    for who, token in (("", ""), (" with a token", writing_token(opened.site.root))):
        client = Client(opened, token)
        for case in cases(sizes):
            client.read(case.paths[0])
            with during(f"a new read{who}: {case.name}", REQUESTS):
                client.read(*_times(case.paths, REQUESTS))
        with during(f"a new read{who}, as before Strapi 5: one document", REQUESTS):
            old = Client(opened, token, HTTP_STRAPI_RESPONSE_FORMAT="v4")
            old.read(*_times(cases(sizes)[0].paths, REQUESTS))
        client, path = Client(opened, token, HTTP_ACCEPT_ENCODING=ENCODINGS), cases(sizes)[1].paths[0]
        with during(f"a repeated read{who}", REQUESTS):
            client.repeat(path, REQUESTS)
        with during(f"a read that is not modified{who}", REQUESTS):
            client.repeat(path, REQUESTS, HTTP_IF_NONE_MATCH="*")


def _write_pictures(root: Path) -> None:
    # The pictures contain noise, so that their files are large.
    (root / UPLOADS).mkdir(parents=True)
    for i in range(PICTURES):
        noise = Image.frombytes("RGB", (640, 480), random.Random(i).randbytes(640 * 480 * 3))
        noise.save(root / UPLOADS / f"picture-{i}.png")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "pictures")


def _times(paths: Sequence[str], wanted: int) -> list[str]:
    return [paths[i % len(paths)] for i in range(wanted)]


def _writes(opened: OpenSite, sizes: Sizes, during: During) -> None:
    client = Client(opened, writing_token(opened.site.root))
    client.send("POST", "/api/tags", {"data": {"name": "Warm", "slug": "warm"}})

    def change(i: int, **headers: str) -> None:
        data = {"title": f"Changed {next(_numbers)}"}
        client.send("PUT", f"/api/articles/{article_id(i)}?fields=slug", {"data": data}, **headers)

    with during("a new document", WRITES):
        for i in range(WRITES):
            data = {"title": f"Made {i}", "slug": f"made-{i}", "body": "A tide. " * 200}
            client.send("POST", "/api/articles", {"data": data})
    with during("a changed document", WRITES):
        for i in range(WRITES):
            change(i)
    with during("a changed document, If-Match", WRITES):
        for i in range(WRITES):
            change(i, HTTP_IF_MATCH="*")
    files = [article_path(i) for i in range(sizes.articles // 2)]
    for path in files:
        file = opened.site.root / path
        file.write_text(file.read_text() + "\nOne more tide.\n")
    with during("a file edited on disk", len(files)):
        opened.site.refresh(files)
    populated = cases(sizes)[2].paths
    filtered = cases(sizes)[4].paths
    for name, paths in (("a populated list", populated), ("a filter and sort", filtered)):
        with during(f"a write, then {name}", WRITES):
            for i in range(WRITES):
                change(i)
                client.read(paths[i % len(paths)])


def _events(opened: OpenSite, during: During) -> None:
    """Read the event log for many streams and clients, and send presence information."""
    client = Client(opened, writing_token(opened.site.root))
    with during("the log of events", WRITES):
        client.repeat("/events?limit=50", WRITES)
    database = opened.recorder.database
    source = Source(database, lambda: 0, lambda _: Actor("public"), lambda: opened.site.state.schema)
    readers = [Actor(f"user:{i}", frozenset({"article.find", "tag.find"})) for i in range(PEOPLE)]
    _, events = source.read(database.bounds().id, 0, WRITES)
    with during("an event to one stream", max(1, len(events) * PEOPLE)):
        for event in events:
            for reader in readers:
                source.frames_for("log", event, reader, Selection(), EVENT_FRAMES)
    table, state = PresenceTable(), opened.site.state
    presence = PresenceSource(table, lambda: state)
    with during("a person who moves", PEOPLE * PEOPLE):
        for field in range(PEOPLE):
            for i in range(PEOPLE):
                place = Presence(f"user:{i}", "user", f"user {i}", "article", "x", "en", f"f{field}")
                table.put("tab", place)
                presence.read()


def _history(opened: OpenSite, sizes: Sizes, during: During) -> None:
    site, root = opened.site, opened.site.root
    for path in site.incomplete_images():
        site.scale(path)
    client = Client(opened, writing_token(root))
    commits = git(root, "rev-list", "HEAD").split()
    files = [f"/uploads/picture-{i % PICTURES}.png" for i in range(REQUESTS)]
    with during("a picture", REQUESTS):
        client.read(*files)
    with during("how much of a body to receive", REQUESTS):
        for i in range(REQUESTS):
            client.receive("PUT", f"/api/articles/{article_id(i % sizes.articles)}")
    lists = [f"/api/articles?pagination[page]={page}" for page in (1, 2, 3)]
    git(root, "rm", "--quiet", *(f"{UPLOADS}/picture-{i}.png" for i in range(1, PICTURES)))
    git(root, "commit", "--quiet", "--message", "fewer pictures", "--", UPLOADS)
    site.refresh()
    with during("a list at a commit", len(commits) * 3):
        for commit in commits:
            client.read(*(f"{path}&at={commit}" for path in lists))
    with during("a repeated list at a commit", WRITES):
        client.repeat(f"{lists[0]}&at={commits[0]}", WRITES)
    with during("a list at a branch", WRITES):
        client.read(*[f"{lists[0]}&at=main"] * WRITES)
    documents = [f"/history/articles/{article_id(i % sizes.articles)}" for i in range(WRITES)]
    with during("the history of a document", WRITES):
        for document in documents:
            client.repeat(document)
    with during("the history of the site", WRITES):
        client.repeat("/history", WRITES)
    with during("what is not committed", 3):
        client.repeat("/history/uncommitted", 3)
    with during("waiting for a commit", WRITES):
        for i in range(WRITES):
            client.send("GET", lists[0], HTTP_BIFOLIO_AFTER=commits[i % len(commits)])


def _pages(opened: OpenSite, during: During) -> None:
    client = Client(opened, writing_token(opened.site.root))
    for path in ("/openapi.json", "/studio", "/access", "/overview", "/problems", "/api/i18n/locales"):
        client.repeat(path)
        with during(f"GET {path}", WRITES):
            client.repeat(path, WRITES)
    version = client.send("GET", "/studio").decode().partition("/-/")[2].partition("/")[0]
    for encodings in ("", "br"):
        with during(f"a file of the studio{' in brotli' * bool(encodings)}", WRITES):
            client.repeat(f"/studio/-/{version}/main.js", WRITES, HTTP_ACCEPT_ENCODING=encodings)


def _search(opened: OpenSite, folder: Path, during: During) -> None:
    # The index is built here in this process, whereas a server builds it in a separate one.
    state = opened.site.state
    folder.mkdir()
    articles = state.snapshot.tables["api::article.article"].versions.values()
    tasks = [
        Task(d.document_id, "api::article.article", "en", tuple(texts(d, state.settings)))
        for d in articles
        if d.status == PUBLISHED
    ]
    indexer = Indexer(folder)
    indexer.begin("")
    with during("indexing a document", len(tasks)):
        indexer.apply(tasks)
        indexer.commit(len(tasks), 0)
    sync = Sync(opened.site, Timing())
    runner = Runner([sync])
    runner.start()
    sync.done.wait()
    runner.stop()
    client = Client(opened, writing_token(opened.site.root))
    client.repeat("/search?q=tide")
    for name, text in (
        ("one word", "{}"),
        ("words", "the+{}+of+{}"),
        ("the beginning of a word", "{:.4}"),
    ):
        with during(f"a search for {name}", REQUESTS):
            for i in range(REQUESTS):
                client.repeat("/search?q=" + text.format(WORDS[i % len(WORDS)], WORDS[i % 7]))


def _check(root: Path, during: During) -> None:
    for i, path in enumerate(sorted((root / "content/articles").rglob("*.md"))):
        if i % 10 == 0:
            path.write_text(path.read_text().replace("author: author-", "author: Author_"))
    with during("a check, of each document", ARTICLES):
        survey(root, lambda: open_site(root, Mode.READ).site)


def _make_posts(root: Path) -> None:
    """Create posts in TOML. Two of their attributes are in the file name, and one has a pattern."""
    write_types(root)
    attributes = {
        "title": {"type": "string"},
        "date": {"type": "date"},
        "slug": {"type": "uid"},
        "isbn": {"type": "string", "regex": "^[0-9]{4}-[a-z]+$"},
    }
    options = {"files": "_posts/{name}.md", "fileName": "{date}-{slug}", "frontMatter": "toml"}
    info = {"singularName": "post", "pluralName": "posts", "displayName": "Post"}
    schema = {"kind": "collectionType", "info": info, "options": options, "attributes": attributes}
    (root / "content-types/post.json").write_text(json.dumps(schema))
    settings = "api: {trusted_proxies: [127.0.0.1, 10.0.0.0/8], rate_limit: 1000000 per hour}\n"
    (root / "site.yaml").write_text(f"name: Posts\n{settings}roles: {{public: {{post: [find, findOne]}}}}\n")
    (root / "_posts").mkdir()
    for i in range(POSTS):
        text = f'+++\ntitle = "Post {i}"\n"isbn" = "{1000 + i}-tide"\n+++\n\nA tide.\n'
        (root / _post(i)).write_text(text)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "posts")


def _post(i: int) -> str:
    return f"_posts/2024-{1 + i % 12:02d}-{1 + i % 28:02d}-post-{i}.md"


def _behind_a_proxy(opened: OpenSite, during: During) -> None:
    """Send requests from many rate-limited clients through a trusted proxy."""
    client = Client(opened)
    client.read("/api/posts")
    with during("a read behind a proxy", REQUESTS):
        for i in range(REQUESTS):
            client.send("GET", "/api/posts", HTTP_X_FORWARDED_FOR=f"192.0.2.{i % 50}, 10.0.0.1")
    client = Client(opened, writing_token(opened.site.root))
    with during("a changed post in TOML", WRITES):
        for i in range(WRITES):
            path = f"/api/posts/{Path(_post(i % POSTS)).stem}"
            client.send("PUT", path, {"data": {"title": f"Changed {i}", "isbn": "1234-ebb"}})


def _follow(opened: OpenSite, folder: Path, during: During) -> None:
    """Apply commits that another clone has pushed to the git remote."""
    site, other = opened.site, folder / "other"
    git(folder, "clone", "--quiet", str(site.root), str(other))
    git(site.root, "remote", "add", "origin", str(other))
    settings = with_values(site.state.settings, {"git.remote": "origin", "git.branch": "main"})
    follower = Follower(opened.past, Timing())
    follower.fetch_and_merge(settings)
    for i in range(PUSHES):
        (other / _post(POSTS - 1)).write_text(f'+++\ntitle = "Pushed {i}"\n+++\n\nAn ebb.\n')
        git(other, "commit", "--quiet", "--all", "--message", f"push {i}")
    commits = git(other, "rev-list", "--reverse", f"--max-count={PUSHES}", "HEAD").split()
    with during("a commit taken from a remote", PUSHES):
        for commit in commits:
            git(other, "update-ref", "refs/heads/main", commit)
            if follower.fetch_and_merge(settings).state != CURRENT:
                raise RuntimeError("a commit was not taken")
