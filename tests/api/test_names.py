"""Tests of names from all kinds of input: none may act as a path outside the site, an option, a command or
two names.
"""

import io
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.git import commit_all
from tests.sites import STRING, Answer, Api, collection, make, write

FILES = {
    **collection("note", {"title": STRING, "slug": {"type": "uid"}}, drafts=True, localized=True),
    "site.yaml": "locales: {available: [en, fr]}\n",
    "content/notes/one.md": "---\ntitle: One\n---\n",
}
NAMES = {
    "NUL": "abc\0d",
    "newline": "abc\nd",
    "return": "abc\rd",
    "escape": "abc\x1b[31md",
    "delete": "abc\x7fd",
    "C1": "abc\x9bd",
    "line separator": "abc\u2028d",
    "right-to-left": "abc\u202ed",
    "isolate": "abc\u2066d",
    "zero width": "abc\u200bd",
    "mark of order": "\ufeffabcd",
    "tag": "abc\U000e0041",
    "above": "../x",
    "far above": "../../../../etc/passwd",
    "escaped": "..%2fabc",
    "backslash": "..\\abc",
    "absolute": "/etc/passwd",
    "option": "-x",
    "long option": "--upload-pack=id",
    "home": "~root",
    "command": "$(id)",
    "device": "CON",
    "stream": "abc:d",
    "end": "abc.",
    "space": "abc ",
    "255 characters": "x" * 255,
    "256 characters": "x" * 256,
    "255 of two bytes": "é" * 255,
    "many characters": "x" * 5000,
    "composed": "abcé",
    "decomposed": "abce\u0301",
    "upper case": "ABCÉ",
    "wide": "ａｂｃ",
    "empty": "",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    root = tmp_path_factory.mktemp("site")
    write(root, FILES)
    commit_all(root)
    api = make(root, {})
    yield api
    api.accounts.close()


def sent(api: Api, method: str, path: str, body: object, **headers: str) -> Answer:
    return api.ask(method, path, data=json.dumps(body), content_type="application/json", headers=headers)


def uploaded(api: Api, name: str, **form: str) -> Answer:
    files = [(io.BytesIO(b"text"), name)]
    return api.ask("POST", "/api/upload", data={"files": files, **form}, content_type="multipart/form-data")


def escaped(name: str) -> str:
    return quote(name, safe="")


def user(api: Api, username: str, email: str) -> Answer:
    return sent(
        api, "POST", "/api/users", {"username": username, "email": email, "password": "secret12", "role": 1}
    )


WAYS: dict[str, Callable[[Api, str], Answer]] = {
    "slug": lambda api, name: sent(api, "POST", "/api/notes?status=draft", {"data": {"slug": name}}),
    "file": lambda api, name: uploaded(api, f"{name}.txt"),
    "ending": lambda api, name: uploaded(api, f"abc.{name}"),
    "name of a file": lambda api, name: uploaded(api, "a.txt", fileInfo=json.dumps({"name": name})),
    "document": lambda api, name: sent(api, "PUT", f"/api/notes/{escaped(name)}", {"data": {"title": "t"}}),
    "type": lambda api, name: api.get(f"/api/{escaped(name)}"),
    "type of a change": lambda api, name: api.get(f"/history/{escaped(name)}/one"),
    "locale read": lambda api, name: api.get(f"/api/notes?locale={escaped(name)}"),
    "locale written": lambda api, name: sent(
        api, "PUT", f"/api/notes/one?locale={escaped(name)}", {"data": {"title": "t"}}
    ),
    "commit": lambda api, name: api.get(f"/api/notes/one?at={escaped(name)}"),
    "branch": lambda api, name: sent(api, "POST", "/branches", {"name": name}),
    "branch deleted": lambda api, name: api.ask("DELETE", f"/branches/{escaped(name)}x"),
    "branch written": lambda api, name: sent(
        api, "PUT", f"/api/notes/one?branch={escaped(name)}x", {"data": {"title": "t"}}
    ),
    "origin": lambda api, name: sent(api, "POST", "/branches", {"name": "from-there", "from": f"{name}x"}),
    "source": lambda api, name: api.get(f"/source/notes/{escaped(name)}"),
    "upload": lambda api, name: api.get(f"/uploads/{escaped(name)}"),
    "studio": lambda api, name: api.get(f"/studio/-/{escaped(name)}"),
    "user": lambda api, name: user(api, name, f"{len(name)}-{hash(name)}@example.org"),
    "address": lambda api, name: user(api, f"user{hash(name)}", f"{name}@example.org"),
}


def places(api: Api) -> set[str]:
    """Return the paths of the site's files and branches."""
    folders = [path for path in api.root.iterdir() if path.name not in (".bifolio", ".git")]
    folders.append(api.root / ".git/refs/heads")
    paths = (path for folder in folders for path in (folder, *folder.rglob("*")) if path.is_file())
    return {path.relative_to(api.root).as_posix() for path in paths}


@pytest.mark.parametrize("way", WAYS)
def test_no_name_becomes_anything_else(api: Api, way: str) -> None:
    before = places(api)
    for kind, name in NAMES.items():
        outside = set(api.root.parent.iterdir())
        answer = WAYS[way](api, name)
        assert answer.status < 500, (kind, answer.body)
        assert "\n" not in str(answer.headers.get("Location", "")), kind
        assert set(api.root.parent.iterdir()) == outside, kind
        after = places(api)
        made = after - before
        assert not made or answer.status in (200, 201), (kind, made)
        for path in made:
            assert path.startswith(("content/notes/", "content/uploads/", ".git/refs/heads/")), (kind, path)
            for part in Path(path).parts[1:]:
                assert part.isprintable(), (kind, path)
                assert not part.startswith(("-", "~")), (kind, path)
                assert len(part.encode()) <= 255, (kind, path)
        alike = [unicodedata.normalize("NFC", path).casefold() for path in before | made]
        assert len(set(alike)) == len(alike), kind
        before = after
    assert api.get("/api/notes/one").status == 200


@pytest.mark.parametrize(
    "kind", ["C1", "line separator", "right-to-left", "isolate", "zero width", "tag", "mark of order"]
)
def test_no_user_has_a_name_with_invisible_characters(api: Api, kind: str) -> None:
    answer = user(api, NAMES[kind], "seen@example.org")
    assert (answer.status, answer.error["message"]) == (400, "username must not have invisible characters")


@pytest.mark.parametrize("name", ["نامه\u200cای", "क्\u200dषक", "Zoë 🦊", "d'Arc-Ñ"])
def test_names_of_all_scripts_are_taken(api: Api, name: str) -> None:
    assert user(api, name, f"user{len(name)}-{len(name.encode())}@example.org").status == 201


@pytest.mark.parametrize("other", ["SPRING-É", "spring-e\u0301", "Spring-é"])
def test_no_branch_has_a_name_that_a_file_system_takes_for_another(api: Api, other: str) -> None:
    sent(api, "POST", "/branches", {"name": "spring-é"})
    answer = sent(api, "POST", "/branches", {"name": other})
    assert (answer.status, "some file systems ignore" in answer.error["message"]) == (409, True)


def test_what_lies_in_the_folder_already_is_served_or_told(tmp_path: Path) -> None:
    """Files created by git or an editor are served or reported, even if no request could have created their
    names.
    """
    names = [
        *(name for name in NAMES.values() if 0 < len(name.encode()) < 240 and name[0] != "."),
        "a\nb",
        "É",
        "e\u0301",
        "é",
    ]
    plain = {name for name in names if not set(name) & set("\0/")}
    files = {f"content/notes/{name}.md": f"---\ntitle: {json.dumps(name)}\n---\n" for name in plain}
    api = make(tmp_path, {**FILES, **files})
    served = {document["title"] for document in api.get("/api/notes?pagination[pageSize]=100").data}
    told = {problem["path"] for problem in api.get("/problems?pagination[pageSize]=100").body["data"]}
    for name in plain:
        assert name in served or f"content/notes/{name}.md" in told, name
    api.accounts.close()
