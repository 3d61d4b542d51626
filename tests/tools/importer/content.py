"""The content that is created in Strapi, the reference implementation, before its export and responses are
recorded.

It contains relations of every kind, one-way and two-way, in a different order from that of their creation;
nested and repeated components, dynamic zones and locales; drafts that differ from the published version,
drafts that were never published, and documents that are published together with them; media with formats and
descriptions.
"""

import http.client
import io
import json
import secrets
from collections.abc import Mapping
from typing import Any

from PIL import Image

LOCALES = ("fr", "de")
Json = dict[str, Any]


class Api:
    """The content API of a running server, with a full-access token."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._token = token

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> tuple[int, bytes]:
        """Send a request. Return the status and the body of the response."""
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Content-Type": kind} if kind else {})
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def send(self, method: str, path: str, data: Json) -> Json:
        """Send a request that must succeed. Return the response's data."""
        status, body = self.ask(method, path, json.dumps({"data": data}).encode(), "application/json")
        if status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {status} {body[:500]!r}")
        return dict(json.loads(body)["data"])

    def make(self, path: str, **data: Any) -> str:
        """Create a document, and return its documentId."""
        return str(self.send("POST", path, data)["documentId"])

    def upload(self, name: str, content: bytes, mime: str, info: Mapping[str, str]) -> int:
        """Upload a file, and return its id."""
        boundary = secrets.token_hex(12)
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
            f"Content-Type: {mime}\r\n\r\n".encode(),
            content,
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="fileInfo"\r\n\r\n'
            f"{json.dumps({'name': name, **info})}\r\n--{boundary}--\r\n".encode(),
        ]
        kind = f"multipart/form-data; boundary={boundary}"
        status, body = self.ask("POST", "/api/upload", b"".join(parts), kind)
        if status not in (200, 201):
            raise RuntimeError(f"upload: {status} {body[:500]!r}")
        return int(json.loads(body)[0]["id"])


def picture(width: int, height: int, kind: str, shade: int) -> bytes:
    """Return a picture that can't be compressed well: it consists of two gradients."""
    image = Image.merge(
        "RGB",
        [
            Image.linear_gradient("L").resize((width, height)),
            Image.radial_gradient("L").resize((width, height)),
            Image.new("L", (width, height), shade),
        ],
    )
    file = io.BytesIO()
    image.save(file, kind, quality=60)
    return file.getvalue()


def fill(api: Api) -> None:
    """Create all content."""
    files = _upload(api)
    people = _people(api, files)
    genres = _genres(api)
    shelf = api.make("/api/shelves", name="By the door")
    books = _books(api, files, people, genres, shelf)
    _translate(api, books, files, people)
    _draft(api, books, people, genres)
    _singles(api, books, files, people, genres)
    _samples(api)
    api.send("PUT", f"/api/shelves/{shelf}", {"picks": [books[2], books[0], books[1]], "favourite": books[1]})
    api.make("/api/shelves", name="Upstairs", picks=[books[1]])
    subject = {"__type": "api::book.book", "documentId": books[0]}
    writer = {"__type": "api::writer.writer", "documentId": people[1]}
    for i, many in enumerate([[writer, subject], []]):
        api.make("/api/remarks", text=f"Remark {i}", subjects={"set": many})


def _upload(api: Api) -> list[int]:
    said = {"alternativeText": "A shore – drawn", "caption": "Früh am Morgen"}
    return [
        api.upload("shore.jpg", picture(640, 420, "JPEG", 90), "image/jpeg", said),
        api.upload("sea chart.png", picture(300, 200, "PNG", 160), "image/png", {"alternativeText": "Chart"}),
        api.upload("dot.png", picture(60, 40, "PNG", 30), "image/png", {}),
        api.upload("read me.txt", b"Plain text.\n", "text/plain", {"caption": "The small print"}),
    ]


def _people(api: Api, files: list[int]) -> list[str]:
    bio = [
        {"type": "heading", "level": 2, "children": [{"type": "text", "text": "Early years"}]},
        {"type": "paragraph", "children": [{"type": "text", "text": "Born by the ", "bold": True}, _LINK]},
    ]
    profiles = [
        api.make("/api/profiles", headline="Keeper of the light", bio=bio),
        api.make("/api/profiles", headline="Nobody's yet", bio=None),
    ]
    made = [
        api.make(
            "/api/writers",
            name=name,
            email=f"{name.split()[0].lower()}@example.org",
            born=born,
            note="not for the public",
            secret="open sesame",
            portrait=portrait,
        )
        for name, born, portrait in (
            ("Ann Trevose", "1971-03-04", files[0]),
            ("Béa Quéré", "1980-12-31", files[2]),
            ("Cy Lamorna", None, None),
        )
    ]
    api.send("PUT", f"/api/writers/{made[0]}", {"profile": profiles[0]})
    return made


_LINK = {"type": "link", "url": "https://example.org/sea", "children": [{"type": "text", "text": "sea"}]}


def _genres(api: Api) -> list[str]:
    root = api.make("/api/genres", name="Non-fiction", slug="non-fiction")
    made = [root]
    for name in ("Travel", "Tides", "Ælfric's charts"):
        made.append(api.make("/api/genres", name=name, parent=root))
    made.append(api.make("/api/genres?status=draft", name="Unpublished genre", slug="unpublished"))
    return made


def _books(api: Api, files: list[int], people: list[str], genres: list[str], shelf: str) -> list[str]:
    seo = {"metaTitle": "Salt", "metaDescription": "On salt: and roads", "image": files[1]}
    link = {"label": "Buy", "url": "https://example.org/?a=1&b=2", "genre": genres[1]}
    credits = [
        {"role": "Editor", "person": people[2], "link": link},
        {"role": "Maps", "person": people[1], "link": None},
    ]
    sections = [
        {"__component": "shared.quote", "body": "Line one\nline two", "by": "Ann"},
        {"__component": "shared.picture", "image": files[0], "more": [files[2], files[1]], "caption": "#1"},
        {"__component": "shared.credit", "role": "Thanks", "person": people[0], "link": link},
        {"__component": "shared.quote", "body": "Again", "by": None},
    ]
    first = api.make(
        "/api/books",
        title="The Salt Road",
        slug="the-salt-road",
        isbn="978-0-0001",
        pages=312,
        price=12.5,
        summary="A: b # c",
        body="## Salt\n\nA road.\n\n- one\n- two\n",
        cover=files[0],
        gallery=[files[1], files[0]],
        seo=seo,
        credits=credits,
        sections=sections,
        author=people[0],
        genres=[genres[2], genres[1]],
        translators=[people[2], people[1]],
        shelf=shelf,
    )
    others = [
        api.make("/api/books", title=title, slug=slug, pages=pages, author=author, genres=its)
        for title, slug, pages, author, its in (
            ("Neap and Spring", "neap-and-spring", 96, people[0], [genres[2]]),
            ("Lamps", "lamps", 200, people[1], []),
            ("yes", "yes", None, None, [genres[3], genres[1]]),
        )
    ]
    draft = api.make(
        "/api/books?status=draft", title="Never published", slug="never", isbn="978-0-0002", author=people[0]
    )
    books = [first, *others, draft]
    api.send("PUT", f"/api/books/{first}", {"sequel": books[1], "related": [books[3], books[1], books[2]]})
    api.send("PUT", f"/api/books/{books[2]}", {"related": [draft, first]})
    api.send(
        "PUT", f"/api/books/{first}", {"credits": [{**credits[0], "books": [books[2], books[1]]}, credits[1]]}
    )
    return books


def _translate(api: Api, books: list[str], files: list[int], people: list[str]) -> None:
    api.send("PUT", f"/api/books/{books[2]}?locale=fr", {"title": "Lampes", "summary": None})
    api.send(
        "PUT",
        f"/api/books/{books[0]}?locale=fr",
        {
            "title": "La route du sel",
            "summary": "Du sel",
            "body": "## Sel",
            "seo": {"metaTitle": "Sel", "image": files[2]},
            "credits": [{"role": "Cartes", "person": people[1]}],
            "sections": [{"__component": "shared.quote", "body": "Première", "by": "Béa"}],
            "related": [books[2]],
        },
    )
    api.send("PUT", f"/api/books/{books[0]}?locale=de&status=draft", {"title": "Die Salzstraße"})


def _draft(api: Api, books: list[str], people: list[str], genres: list[str]) -> None:
    changed = {
        "title": "The Salt Road, revised",
        "genres": [genres[1], genres[4], genres[2]],
        "credits": [{"role": "Editor", "person": people[0]}],
        "sections": [{"__component": "shared.quote", "body": "Only in the draft", "by": "Cy"}],
        "related": [books[1]],
    }
    api.send("PUT", f"/api/books/{books[0]}?status=draft", changed)
    api.send("PUT", f"/api/books/{books[2]}?locale=fr&status=draft", {"title": "Lampes, revu"})
    api.send("PUT", f"/api/genres/{genres[3]}?status=draft", {"name": "Charts, renamed"})


def _singles(api: Api, books: list[str], files: list[int], people: list[str], genres: list[str]) -> None:
    links = [{"label": "One", "url": "/1", "genre": genres[0]}, {"label": "Two", "url": "/2"}]
    hero = {"headline": "Welcome", "links": links, "image": files[0]}
    blocks = [{"__component": "shared.hero", **hero}, {"__component": "shared.quote", "body": "Hm"}]
    api.send(
        "PUT",
        "/api/front",
        {"title": "Front", "hero": hero, "featured": [books[2], books[0]], "blocks": blocks},
    )
    api.send("PUT", "/api/front?locale=fr", {"title": "Accueil", "hero": {"headline": "Bienvenue"}})
    api.send("PUT", "/api/front?status=draft", {"title": "Front, to come"})
    api.send("PUT", "/api/imprint", {"text": "Who *we* are", "responsible": people[1]})


def _samples(api: Api) -> None:
    texts = (
        "no",
        "01234",
        "1.10",
        "12:30",
        "null",
        "# not a comment",
        "- dash",
        "a: b",
        " spaces ",
        "é – ☃ 𝄞",
    )
    for i, text in enumerate(texts):
        api.make("/api/samples", label=text, long=f"{text}\n{text}", rich=f"---\n{text}\n---\n", count=i - 3)
    api.make(
        "/api/samples",
        label="every type",
        colour="green",
        mail="a@example.org",
        code="every-type",
        day="2024-02-29",
        hour="10:20:30.500",
        moment="2024-02-29T10:20:30.123Z",
        stamp="2024-02-29T10:20:30.000Z",
        count=-7,
        big="123456789012",
        ratio=0.1,
        exact=1234.5,
        yes=True,
        data={"a": [1, None, {"b": "c: d"}], "z": 1.5, "text": "01"},
        blocks=[{"type": "paragraph", "children": [{"type": "text", "text": "yes: no"}]}],
        long="trailing space \n\n\nthree lines",
        rich="\n\nleading lines",
    )
    api.make("/api/samples?status=draft", label="a draft", colour=None, count=99)
    api.make("/api/samples", label="nothing else", colour=None, yes=None)
    api.make("/api/samples", label="a bell \a rings", rich="with\r\ntwo\r\nlines", long="tab\there")
