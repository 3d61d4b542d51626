"""Generator of random requests about uploads: files, their descriptions, and the documents to which they
belong.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bench.differential.content import picture
from bench.differential.filtering import Filters
from bench.differential.model import MEDIA
from bench.differential.request import Query, Request, flatten
from bench.differential.steps import Step
from bench.differential.values import Chance, Values
from bench.differential.world import World

_FILES = (
    ("sun.png", "image/png", picture(20, 10, "PNG")),
    ("wide.jpg", "image/jpeg", picture(600, 90, "JPEG")),
    ("two.dots.txt", "text/plain", b"Dots.\n"),
    ("with space.txt", "text/plain", b"Space.\n"),
    ("UPPER.TXT", "text/plain", b"Upper.\n"),
    ("page.html", "text/html", b"<p>Page</p>\n"),
    ("table.csv", "text/csv", b"a,b\n1,2\n"),
    ("really-text.png", "image/png", b"This is no picture.\n"),
    ("empty.txt", "text/plain", b""),
    ("book.pdf", "application/pdf", b"%PDF-1.4\n%%EOF\n"),
    ("drawing.svg", "image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"></svg>'),
)
_FIELDS = ("name", "ext", "mime", "width", "caption", "url", "size", "hash")
_LOOK = Request("GET", "/api/upload/files", (("sort", "name"),))


class Filing:
    """Generator of the steps in one conversation (a short sequence of requests) about uploads."""

    def __init__(self, world: World, chance: Chance, prefix: str) -> None:
        self.world, self.chance, self._values = world, chance, Values(chance, prefix)
        self.files = [reference.strip("«»") for reference in world.files]
        self._count = 0

    def step(self, areas: Mapping[str, int]) -> Step | None:
        area = self.chance.choices(list(areas), list(areas.values()))[0]
        made = self.chance.choice(_PARTS[area])(self)
        return replace(made, area=area) if made else None

    def _file(self) -> str:
        if self.chance.random() < 0.08:
            return self.chance.choice(("999999", "abc", "0"))
        return f"«{self.chance.choice(self.files)}»"

    def _info(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in self.chance.sample(
            ("name", "alternativeText", "caption", "nope"), self.chance.randint(0, 3)
        ):
            made[name] = (
                self._values.text() if name != "name" else f"{self.chance.choice('abc')} {self._count}.png"
            )
        return made

    def _upload(self) -> Step:
        """Upload one or more files, with or without descriptions."""
        few = self.chance.choices(_FILES, k=self.chance.choice((1, 1, 1, 2)))
        field = "files" if self.chance.random() < 0.93 else "file"
        body: dict[str, Any] = {}
        if self.chance.random() < 0.6:
            infos = [self._info() for _ in few]
            body["fileInfo"] = json.dumps(infos if len(infos) > 1 else infos[0])
        request = Request("POST", "/api/upload", body=body, files=tuple((field, *file) for file in few))
        self._count += 1
        name = f"file:new{self._count}"
        captures = {name: "0.id"} if len(few) == 1 else {}
        return Step("", request, captures, looks=(_LOOK,), done=lambda: self.files.extend(captures))

    def _attach(self) -> Step | None:
        """Upload a file and attach it to an attribute of a document."""
        places = [
            (document, name)
            for document in self.world.documents.values()
            for name, found in self.world.type_of(document).attributes.items()
            if found["type"] == "media"
        ]
        if not places:
            return None
        document, name = self.chance.choice(places)
        field = name if self.chance.random() < 0.9 else "nope"
        body = {"ref": document.uid, "refId": document.number(), "field": field}
        request = Request(
            "POST", "/api/upload", body=body, files=(("files", *self.chance.choice(_FILES[:3])),)
        )
        type_ = self.world.type_of(document)
        path = type_.path if type_.single else f"{type_.path}/{document.reference}"
        look = Request("GET", path, (("populate", name),))
        return Step("", request, looks=(look,))

    def _describe(self) -> Step:
        files = (("files", *self.chance.choice(_FILES[:2])),) if self.chance.random() < 0.2 else ()
        body = {"fileInfo": json.dumps(self._info())}
        request = Request("POST", "/api/upload", (("id", self._file()),), body, files=files, form=True)
        return Step("", request, looks=(_LOOK,))

    def _delete(self) -> Step:
        return Step("", Request("DELETE", f"/api/upload/files/{self._file()}"), looks=(_LOOK,))

    def _list(self) -> Step:
        path = "/api/upload/files" + ("/page" if self.chance.random() < 0.2 else "")
        return Step("", Request("GET", path, self._query()))

    def _one(self) -> Step:
        return Step("", Request("GET", f"/api/upload/files/{self._file()}"))

    def _query(self) -> Query:
        chance = self.chance
        trees: dict[str, Any] = {
            "filters": Filters(self.world, chance)._one({**MEDIA, "size": {"type": "decimal"}}, "media", 3),
            "sort": chance.choice(("name", "size:desc", "createdAt", "nope", ["ext", "name:desc"])),
            "fields": chance.sample((*_FIELDS, "nope", "folderPath"), chance.randint(1, 3)),
            "populate": chance.choice(("*", "related", "folder", "nope")),
            "pagination": chance.choice(({"page": "1", "pageSize": "2"}, {"start": "1", "limit": "2"})),
            # not part of a hash, because the servers' hashes differ
            "_q": chance.choice(("png", "shore", "read", "zzz")),
        }
        few = chance.sample(list(trees), chance.randint(0, 2))
        query = tuple(pair for name in few for pair in flatten(name, trees[name]))
        return query if "sort" in few else (*query, ("sort", "name"))


_Make = Callable[[Filing], Step | None]
_PARTS: Mapping[str, tuple[_Make, ...]] = {
    "upload files": (Filing._upload, Filing._upload, Filing._describe, Filing._attach, Filing._delete),
    "upload lists": (Filing._list, Filing._list, Filing._list, Filing._one),
}
AREAS: Mapping[str, int] = {"upload files": 12, "upload lists": 8}
