"""Tests of `POST /batch`: clients can send several writes as one."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.auth.accounts import Accounts
from tests.conftest import MakeApi
from tests.examples import examples
from tests.servers import free_port, serving
from tests.sites import STRING, Answer, Api, collection, documents, load, relation, translated, write

FILES = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection(
        "article",
        {
            "title": translated({"type": "string"}),
            "slug": {"type": "string", "unique": True},
            "author": relation("manyToOne", "author", inversedBy="articles"),
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": STRING, "articles": relation("oneToMany", "article", mappedBy="author")}),
    **collection("home", {"title": STRING, "first": relation("manyToOne", "author")}, single=True),
    **collection("door", {"code": {"type": "password"}}),
    **documents("authors", ada={"name": "Ada"}, bob={"name": "Bob"}),
}


def op(method: str, path: str, data: Any = None, **more: Any) -> dict[str, Any]:
    body = {} if data is None else {"body": {"data": data}}
    return {"method": method, "path": path, **body, **more}


def batch(api: Api, *operations: Any, who: str = "full", **more: Any) -> Answer:
    return api.ask("POST", "/batch", who, json={"operations": operations, **more})


def texts(root: Path) -> dict[str, str]:
    """Return the text of each file in `content/`, by path."""
    return {str(p.relative_to(root)): p.read_text() for p in (root / "content").rglob("*") if p.is_file()}


# --- what it does --------------------------------------------------------------------------------


def test_documents_that_refer_to_those_made_before(make_api: MakeApi) -> None:
    api = make_api(FILES)
    answer = batch(
        api,
        op("POST", "/api/authors", {"name": "Cleo"}),
        op("POST", "/api/articles?populate=author", {"title": "One", "author": "{{0.documentId}}"}),
        op("PUT", "/api/articles/{{1.documentId}}?locale=fr", {"title": "Un (voir {{ 1.documentId }})"}),
        op("PUT", "/api/authors/ada", {"articles": {"connect": [{"documentId": "{{1.documentId}}"}]}}),
        op("DELETE", "/api/authors/bob"),
    )
    author, article, french, ada, gone = answer.data
    assert [one["status"] for one in answer.data] == [201, 201, 200, 200, 204]
    assert article["body"]["data"]["documentId"] == article["documentId"] == french["documentId"]
    assert french["body"]["data"]["title"] == f"Un (voir {article['documentId']})"
    # The response shows the article after all operations. The fourth operation has changed its author.
    assert article["body"]["data"]["author"]["documentId"] == "ada"
    assert gone == {"status": 204, "documentId": "bob", "etag": None, "body": None}
    assert api.get(f"/api/authors/{author['documentId']}?populate=articles").data["articles"] == []
    assert api.get("/api/authors/bob").status == 404
    assert ada["etag"] == api.get("/api/authors/ada").headers["ETag"]


def test_a_document_that_is_changed_again_and_published(make_api: MakeApi) -> None:
    api = make_api(FILES)
    answer = batch(
        api,
        op("POST", "/api/articles?status=draft", {"title": "One"}),
        op("PUT", "/api/articles/{{0.documentId}}?status=draft", {"slug": "one"}),
        op("PUT", "/api/articles/{{0.documentId}}", {"title": "Two"}),
    )
    published = answer.data[2]["body"]["data"]
    assert (published["title"], published["slug"]) == ("Two", "one")
    assert published["publishedAt"]
    assert [name for name in texts(api.root) if "articles" in name] == [
        f"content/articles/{published['documentId']}.md"
    ]


def test_one_state_and_one_record(make_api: MakeApi) -> None:
    api = make_api(FILES)
    number = api.site.state.snapshot.number
    batch(api, *[op("POST", "/api/authors", {"name": f"A{i}"}) for i in range(20)])
    assert api.site.state.snapshot.number == number + 1
    assert api.get("/api/authors?pagination[withCount]=true").body["meta"]["pagination"]["total"] == 22


def test_a_single_type_that_is_made_and_referred_to(make_api: MakeApi) -> None:
    api = make_api(FILES)
    answer = batch(
        api,
        op("PUT", "/api/home", {"title": "Home"}),
        op("PUT", "/api/home", {"first": "ada"}),
        op("POST", "/api/authors", {"name": "{{1.documentId}}"}),
    )
    home, again, author = answer.data
    assert home["documentId"] == again["documentId"] == author["body"]["data"]["name"]
    assert api.get("/api/home").data["title"] == "Home"


def test_texts_that_only_look_like_references_stay(make_api: MakeApi) -> None:
    api = make_api(FILES)
    names = ["{{ user.name }}", "{{0}}", "{{0.title}}", "{0.documentId}", "{{-1.documentId}}"]
    answer = batch(api, *[op("POST", "/api/authors", {"name": name}) for name in names])
    assert [one["body"]["data"]["name"] for one in answer.data] == names


def test_if_match_of_an_operation(make_api: MakeApi) -> None:
    api = make_api(FILES)
    etag = api.get("/api/authors/ada").headers["ETag"]
    assert batch(api, op("PUT", "/api/authors/ada", {"name": "A"}, ifMatch=etag)).status == 200
    error = batch(
        api, op("DELETE", "/api/authors/bob"), op("PUT", "/api/authors/ada", {"name": "B"}, ifMatch=etag)
    ).error
    assert (error["status"], error["name"]) == (412, "PreconditionFailedError")
    assert error["details"]["operation"] == 1
    assert api.get("/api/authors/bob").status == 200


# --- all or none ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "status", "message"),
    [
        (op("POST", "/api/articles", {"slug": "taken"}), 400, "unique"),
        (op("PUT", "/api/articles/none", {"title": "x"}), 404, "Not Found"),
        (op("POST", "/api/articles", {"zzz": 1}), 400, "Invalid key zzz"),
        (op("POST", "/api/articles", {"author": "none"}), 400, 'Document with id "none"'),
        (op("PUT", "/api/authors/bob", {"name": "x"}), 404, "Not Found"),
        (op("POST", "/api/articles", {"author": "bob"}), 400, 'Document with id "bob"'),
        (op("POST", "/api/articles", {"title": 5}), 400, "string"),
        (op("POST", "/api/articles"), 400, 'Missing "data"'),
        (op("POST", "/api/articles?locale=xx", {}), 400, "locale"),
        (op("POST", "/api/articles?populate=zzz", {}), 400, "zzz"),
    ],
)
def test_an_operation_that_fails(make_api: MakeApi, operation: Any, status: int, message: str) -> None:
    api = make_api(FILES)
    before = texts(api.root)
    error = batch(
        api,
        op("POST", "/api/articles", {"slug": "taken"}),
        op("DELETE", "/api/authors/bob"),
        operation,
        op("POST", "/api/authors", {"name": "after"}),
    ).error
    assert error["status"] == status
    assert error["details"]["operation"] == 2
    assert message in error["message"]
    assert texts(api.root) == before
    assert len(api.get("/api/authors").data) == 2


def test_each_operation_is_permitted_by_itself(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.token("writer", may=["author.create", "article.create"])
    assert batch(api, op("POST", "/api/authors", {"name": "x"}), who="writer").status == 200
    error = batch(
        api, op("POST", "/api/authors", {"name": "y"}), op("DELETE", "/api/authors/ada"), who="writer"
    ).error
    assert (error["status"], error["details"]) == (403, {"operation": 1, "permission": "author.delete"})
    # As in a single request, the writer can't relate to documents that it has no permission to find.
    related = op("POST", "/api/articles", {"author": "{{0.documentId}}"})
    error = batch(api, op("POST", "/api/authors", {"name": "y"}), related, who="writer").error
    assert (error["status"], error["message"]) == (400, "Invalid key author")
    assert batch(api, op("DELETE", "/api/authors/ada"), who="public").error["status"] == 403


# --- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/home"),
        ("DELETE", "/api/authors"),
        ("POST", "/api/authors/ada"),
        ("POST", "/api/articles/actions/unpublish"),
    ],
)
def test_nothing_is_told_of_a_type_that_the_caller_may_not_use(
    make_api: MakeApi, method: str, path: str
) -> None:
    api = make_api(FILES)
    api.token("porter", may=["door.create"])
    error = batch(api, op(method, path), who="porter").error
    assert (error["status"], error["message"], error["details"]) == (403, "Forbidden", {"operation": 0})


def test_only_types_that_the_caller_may_use_are_suggested(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.token("porter", may=["door.create", "home.find"])
    told = {
        name: batch(api, op("POST", f"/api/{name}", {}), who="porter").error["message"].partition(": ")[2]
        for name in ("author", "articels", "door", "homes")
    }
    assert told == {
        "author": "it is not the path of a content type",
        "articels": "it is not the path of a content type",
        "door": 'did you mean "doors"?',
        "homes": 'did you mean "home"?',
    }


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("x", 'An operation must be an object with the keys "method" and "path"'),
        ({"method": "GET", "path": "/api/authors"}, '"method" must be "POST", "PUT" or "DELETE"'),
        ({"method": ["PUT"], "path": "/api/authors"}, '"method" must be "POST", "PUT" or "DELETE"'),
        ({"method": "POST"}, '"path" must be a string, such as "/api/articles"'),
        (
            {"method": "POST", "url": "/api/authors"},
            'An operation has no key "url"; its keys are method, path, body, ifMatch, prefer',
        ),
        (
            op("POST", "/api/authors", {}, ifmatch="x"),
            'An operation has no key "ifmatch"; did you mean "ifMatch"?',
        ),
        (
            op("POST", "/api/authors", {}, ifMatch=3),
            '"ifMatch" must be a string that contains the entity tag of a document',
        ),
        (op("PUT", "/api/authors/ada", {}, prefer="mrege"), '"prefer" must be "merge"'),
        (op("PUT", "/api/authors/ada", {}, prefer=["merge"]), '"prefer" must be "merge"'),
        (op("POST", "/api/author", {}), 'A batch can\'t write to /api/author: did you mean "authors"?'),
        (op("POST", "/authors", {}), "A batch can't write to /authors: the path must begin with /api/"),
        (op("POST", "authors", {}), "A batch can't write to authors: the path must begin with /api/"),
        (
            op("POST", "/api/upload", {}),
            "A batch can't write to /api/upload: files can't be uploaded or changed in a batch",
        ),
        (
            op("PUT", "/api/users/1", {}),
            "A batch can't write to /api/users/1: users can't be written in a batch",
        ),
        (op("POST", "/api/authors/ada", {}), "/api/authors/ada does not support POST; use PUT or DELETE"),
        (op("DELETE", "/api/authors"), "/api/authors does not support DELETE; use POST"),
        (op("POST", "/api/home", {}), "/api/home does not support POST; use PUT or DELETE"),
        (
            op("POST", "/api/authors?x=%", {}),
            "Malformed percent-encoding in the query: encode a literal % as %25",
        ),
        (
            op("POST", "/api/authors", {"name": "{{1.documentId}}"}),
            "{{1.documentId}} does not refer to an earlier operation",
        ),
        (
            op("PUT", "/api/authors/{{7.documentId}}", {}),
            "{{7.documentId}} does not refer to an earlier operation",
        ),
        (
            op("POST", "/api/authors", {"name": ["a{{0.documentId}}"]}),
            "{{0.documentId}} refers to an operation that deletes a document",
        ),
    ],
)
def test_operations_that_are_none(make_api: MakeApi, operation: Any, message: str) -> None:
    error = batch(make_api(FILES), op("DELETE", "/api/authors/bob"), operation).error
    assert (error["status"], error["message"], error["details"]) == (400, message, {"operation": 1})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], 'The body of a batch must be an object that contains the list "operations"'),
        ({"requests": []}, 'The body of a batch must be an object that contains the list "operations"'),
        ({"operations": {}}, 'The body of a batch must be an object that contains the list "operations"'),
        ({"operations": []}, "A batch must have 1 to 100 operations, but this one has 0"),
        ({"operations": [1] * 101}, "A batch must have 1 to 100 operations, but this one has 101"),
        ({"operations": [1], "mesage": "x"}, 'A batch has no key "mesage"; did you mean "message"?'),
        ({"operations": [1], "message": 5}, '"message" must be a string'),
        (
            {"operations": [1], "message": "a\0"},
            '"message" must have at most 10,000 characters, and no null characters',
        ),
        (
            {"operations": [1], "message": "x" * 10_001},
            '"message" must have at most 10,000 characters, and no null characters',
        ),
    ],
)
def test_batches_that_are_none(make_api: MakeApi, body: Any, message: str) -> None:
    error = make_api(FILES).ask("POST", "/batch", json=body).error
    assert (error["status"], error["message"], error["details"]) == (400, message, {})


def test_a_message(make_api: MakeApi) -> None:
    assert batch(make_api(FILES), op("DELETE", "/api/authors/bob"), message="Farewell\n\nBob").status == 200


def test_passwords_count_together(make_api: MakeApi) -> None:
    doors = [op("POST", "/api/doors", {"code": "secret"}) for _ in range(11)]
    assert "11 passwords" in batch(make_api(FILES), *doors).error["message"]


def test_values_count_together(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "api: {limits: {values: 300}}\n"})
    operations = [op("POST", "/api/authors", {"name": "x"}) for _ in range(100)]
    assert batch(api, *operations[:30]).status == 200
    assert batch(api, *operations).error["details"] == {"limit": "values"}


def test_a_large_batch_is_taken_from_who_may_write(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    accounts = Accounts(tmp_path)
    tokens = {name: accounts.create_token(name, name) for name in ("full-access", "read-only")}
    accounts.close()
    wanted = [op("POST", "/api/authors", {"name": "x" * 250}) for _ in range(100)]
    body = json.dumps({"operations": wanted, "message": "é" * 10_000}).encode()
    with serving(tmp_path, free_port()) as address:
        taken = [status_of(address, token, body + b" " * 200_000) for token in tokens.values()]
    assert taken == [200, 403]


def status_of(address: str, token: str, body: bytes) -> int:
    """Send a batch to a server and return the status code of the response."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(f"{address}/batch", body, headers), timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_references_do_not_grow_without_end(make_api: MakeApi) -> None:
    api = make_api(FILES)
    long = "x" * 30_000
    again = op("POST", "/api/authors", {"name": "{{0.documentId}}" * 1000})
    error = batch(api, op("PUT", f"/api/authors/{long}", {}), again).error
    assert (error["status"], error["details"]) == (413, {"operation": 1})


def test_more_files_than_one_batch_may_change(make_api: MakeApi) -> None:
    many = documents("articles", **{f"a{i}": {"title": "x", "author": "ada"} for i in range(1001)})
    api = make_api({**FILES, **many})
    half = [{"documentId": f"a{i}"} for i in range(600)], [{"documentId": f"a{i}"} for i in range(600, 1001)]
    operations = [op("PUT", "/api/authors/bob", {"articles": {"connect": part}}) for part in half]
    error = batch(api, *operations).error
    assert error["details"]["operation"] == 1
    assert "more than 1,000 files" in error["message"]
    assert batch(api, operations[0]).status == 200


# --- the same result as single requests -----------------------------------------------------------

ARTICLES = documents(
    "articles", a0={"title": "Zero", "slug": "zero", "author": "ada"}, a1={"title": "One", "slug": "one"}
)
article_data = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["Zero", "One", None]),
        "slug": st.sampled_from(["zero", "one", "two", None]),
        "author": st.sampled_from(["ada", "bob", None, {"connect": ["bob"]}, {"disconnect": ["ada"]}]),
    },
)
author_data = st.fixed_dictionaries(
    {"articles": st.sampled_from([["a0", "a1"], [], {"connect": ["a1"]}, {"disconnect": ["a0"]}])},
    optional={"name": st.sampled_from(["Ada", "Bob"])},
)
queries = st.sampled_from(["", "?status=draft", "?locale=fr", "?locale=fr&status=draft"])
article_paths = st.builds("/api/articles/{}{}".format, st.sampled_from(["a0", "a1"]), queries)
author_paths = st.sampled_from(["/api/authors/ada", "/api/authors/bob"])
deleted = st.sampled_from(["/api/articles/a0", "/api/articles/a1?locale=fr", "/api/authors/bob"])
operations = st.one_of(
    st.builds(op, st.just("PUT"), article_paths, article_data),
    st.builds(op, st.just("PUT"), author_paths, author_data),
    st.builds(op, st.just("DELETE"), deleted),
)


def without_timestamps(found: dict[str, str]) -> dict[str, str]:
    return {name: re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text) for name, text in found.items()}


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(operations, min_size=1, max_size=6))
def test_a_batch_comes_to_what_its_operations_come_to(wanted: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        single, whole = (Api.of(load(Path(folder), {**FILES, **ARTICLES})) for folder in (one, other))
        before = texts(whole.root)
        answers = []
        for each in wanted:
            answers.append(single.ask(each["method"], each["path"], json=each.get("body")))
            if answers[-1].status >= 400:
                break
        answer = batch(whole, *wanted)
        if answers[-1].status >= 400:
            number = len(answers) - 1
            error = answers[-1].error
            assert answer.error == {**error, "details": {**error["details"], "operation": number}}
            assert texts(whole.root) == before
        else:
            assert [each["status"] for each in answer.data] == [each.status for each in answers]
            assert without_timestamps(texts(whole.root)) == without_timestamps(texts(single.root))
        for api in (single, whole):
            api.accounts.close()
