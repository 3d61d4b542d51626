"""Tests of `/openapi.json` and `/docs`: valid, correct, and without anything that the caller may not see.

`make test-openapi` also lets schemathesis test a running server against the OpenAPI description.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import validate
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from server.api.openapi.values import BODY_VALUES, OPERAND_KINDS, OPERANDS, RESPONSE_VALUES
from server.api.operations.table import OPERATIONS, operations_at
from server.config.model import ACTIONS
from server.errors import ApiError
from server.query.operators import LOGIC, OPERATORS
from server.schema.model import ATTRIBUTE_TYPES
from server.site.site import Site
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, load, opened, relation

ROOT = Path(__file__).parents[2]
TYPES = ROOT / "tests" / "conformance" / "site" / "content-types"
PRIVATE = {"type": "string", "private": True}
SECRET = {
    **collection("article", {"title": STRING, "author": relation("manyToOne", "author"), "hush": PRIVATE}),
    **collection("author", {"pseudonym": STRING, "password": {"type": "password"}}),
    **collection("dossier", {"subject": STRING}, drafts=True),
    **documents("articles", a={"title": "Shown", "author": "ann", "hush": "whispered"}),
    **documents("authors", ann={"pseudonym": "Boz"}),
    **documents("dossiers", x={"subject": "Nobody's business"}),
    "site.yaml": "roles:\n  public:\n    article: [find, findOne, create]\n",
}


def document(api: Api, who: str = "full") -> Any:
    answer = api.get("/openapi.json", who)
    assert answer.status == 200
    return answer.body


def recorded(root: Path) -> Site:
    """Return a site with the content types from tests/conformance, which have attributes of every kind."""
    files = {f"content-types/{p.relative_to(TYPES)}": p.read_text() for p in TYPES.rglob("*.json")}
    thing = {
        "str": "A thing",
        "uniq": "u",
        "enu": "red",
        "d": "2024-02-29",
        "dec": "1.5",
        "priv": "whispered",
    }
    found = {"content/things/a.json": json.dumps({**thing, "pw": "hidden"})}
    return load(root, {**files, **found, "site.yaml": "roles: {public: {thing: [find, findOne]}}\n"})


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = Api.of(recorded(tmp_path_factory.mktemp("site")))
    yield api
    api.accounts.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A copy of the repository's own site."""
    root = tmp_path_factory.mktemp("own")
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "site.yaml", root)
    api = Api.of(opened(root))
    yield api
    api.accounts.close()


def operations(described: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def ref_of(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}


def validator(described: Any, schema: Any) -> Draft202012Validator:
    resource = Resource.from_contents(described, default_specification=DRAFT202012)
    registry: Any = Registry().with_resource("urn:api", resource)
    text = json.dumps(schema).replace('"#/components', '"urn:api#/components')
    return Draft202012Validator(json.loads(text), registry=registry, format_checker=FormatChecker())


# --- valid ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["public", "full"])
def test_it_is_valid(everything: Api, who: str) -> None:
    validate(document(everything, who))


def test_it_is_valid_for_the_own_site_and_an_empty_one(own: Api, make_api: MakeApi) -> None:
    for api in (own, make_api({})):
        for who in ("public", "full"):
            validate(document(api, who))


def test_it_has_the_tables_of_the_code(everything: Api) -> None:
    described = document(everything)
    text = json.dumps(described)
    assert all(f'"{name}"' in text for name in (*OPERATORS, *LOGIC))
    beyond = {"relation", "media", "component", "dynamiczone"}
    assert set(BODY_VALUES) == set(ATTRIBUTE_TYPES) - beyond
    assert set(RESPONSE_VALUES) == set(BODY_VALUES) - {"password"}
    assert set(OPERAND_KINDS.values()) <= set(OPERANDS)
    told = {
        (int(key.removeprefix("Error")), name)
        for key, response in described["components"]["responses"].items()
        for name in response["content"]["application/json"]["schema"]["allOf"][1]["properties"]["error"][
            "properties"
        ]["name"]["enum"]
    }
    kinds = {ApiError, *_below(ApiError)}
    assert {(kind.status, kind.name) for kind in kinds} - told <= {
        (405, "MethodNotAllowedError"),
        (408, "RequestTimeoutError"),
        (415, "UnsupportedMediaTypeError"),
        (429, "RateLimitError"),
    }


def _below(kind: type) -> Iterator[Any]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def test_every_operation_is_described_or_says_why_not(everything: Api) -> None:
    described = {
        made["operationId"]: (method, path) for method, path, made in operations(document(everything))
    }
    plain = [operation for operation in OPERATIONS if not operation.kind]
    wanted = {o.id: (o.method, o.described_path) for o in plain if not isinstance(o.docs, str)}
    assert wanted.items() <= described.items()
    assert {o.id for o in plain if isinstance(o.docs, str) and not o.docs} == set()
    for method, path in {*described.values()} - {*wanted.values()}:
        there = operations_at(re.sub(r"{.*?}", "x", path), everything.site.state.schema)
        assert method in {operation.method for operation, _ in there}, path
    assert len(list(operations(document(everything)))) == len(described)


def test_it_is_made_for_who_may_find_users_but_no_roles(everything: Api) -> None:
    everything.token("users", may=["user.find"])
    described = document(everything, "users")
    validate(described)
    [parameters] = [made["parameters"] for _, path, made in operations(described) if path == "/api/users"]
    assert {"$ref": "#/components/parameters/UsersPermissionsUser.fields"} in parameters
    assert {"$ref": "#/components/parameters/UsersPermissionsUser.populate"} not in parameters


def test_examples_fit_their_schemas(everything: Api) -> None:
    described, seen = document(everything), 0
    for _, _, operation in operations(described):
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [made.get("content", {}) for made in operation["responses"].values()]
        for content in contents:
            for media in content.values():
                examples = [e["value"] for e in media.get("examples", {}).values()]
                for example in [*examples, *([media["example"]] if "example" in media else [])]:
                    errors = list(validator(described, media["schema"]).iter_errors(example))
                    assert errors == [], operation["operationId"]
                    seen += 1
    assert seen > 20


# --- correct --------------------------------------------------------------------------------------


VARIANTS = (
    "",
    "?populate=*",
    "?locale=fr&populate=*",
    "?fields=documentId",
    "?status=draft&populate=*",
    "?sort=nope",
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_answers_of_the_own_site_fit(own: Api, variant: str) -> None:
    described, told = document(own), set()
    for method, path, operation in operations(described):
        if method != "GET" or path.startswith("/uploads/"):
            continue
        ids = ("2025--goemon", "nothing") if "{documentId}" in path else ("causeway.png",)
        for key in ids if "{" in path else ("",):
            answer = own.get(re.sub(r"{.*?}", key, path) + variant)
            told.add(answer.status)
            made = operation["responses"][str(answer.status)]
            made = (
                described["components"]["responses"][made["$ref"].rpartition("/")[2]]
                if "$ref" in made
                else made
            )
            content = made.get("content", {}).get("application/json")
            if content is not None:
                errors = [e.message for e in validator(described, content["schema"]).iter_errors(answer.body)]
                assert errors == [], (path, variant)
    assert {200, 404} <= told


def test_a_described_body_makes_a_document(everything: Api) -> None:
    described = document(everything)
    media = described["paths"]["/api/things"]["post"]["requestBody"]["content"]["application/json"]
    example = {**media["example"]["data"], "uniq": "another"}
    made = everything.post("/api/things?populate=*", example)
    assert made.status == 201
    schema = described["paths"]["/api/things"]["post"]["responses"]["201"]["content"]["application/json"][
        "schema"
    ]
    assert list(validator(described, schema).iter_errors(made.body)) == []


@pytest.mark.parametrize(
    ("data", "good"),
    [
        ({"str": "ab"}, True),
        ({"str": "a"}, False),
        ({}, False),
        ({"str": None}, False),
        ({"str": "ab", "i": 1001}, False),
        ({"str": "ab", "i": "7", "f": "1e3", "b": "false", "big": "123456789012345678901"}, True),
        ({"str": "ab", "i": "seven"}, False),
        ({"str": "ab", "enu": "mauve"}, False),
        ({"str": "ab", "re": "ABC"}, False),
        ({"str": "ab", "t": "25:00:00"}, False),
        ({"str": "ab", "slug": "not a slug"}, False),
        ({"str": "ab", "nope": 1}, False),
        ({"str": "ab", "one": {"name": "n", "inners": [{"label": "l"}]}}, True),
        ({"str": "ab", "one": {}}, False),
        ({"str": "ab", "many": [{"name": str(i)} for i in range(4)]}, False),
        ({"str": "ab", "dz": [{"__component": "shared.quote"}]}, True),
        ({"str": "ab", "dz": [{"__component": "shared.media"}]}, False),
        ({"str": "ab", "dz": [{}]}, False),
        ({"str": "ab", "tags": {"connect": "x", "extra": 1}}, False),
        ({"str": "ab", "tags": 5}, False),
        ({"str": "ab", "tags": {"disconnect": ["gone", {"documentId": "gone"}]}}, True),
        ({"str": "ab", "tags": {"disconnect": [5]}}, False),
        ({"str": "ab", "tags": {"disconnect": [{"documentId": "gone", "name": "as populated"}]}}, True),
        ({"str": "ab", "one": {"name": "n", "__component": "default.block"}}, True),
        ({"str": "ab", "one": {"name": "n", "__component": "shared.quote"}}, False),
        ({"str": "ab", "dt": 1_700_000_000_000.0}, True),
        ({"str": "ab", "pic": True}, False),
        ({"str": "ab", "pic": {"connect": []}}, True),
        ({"str": "ab", "pic": {"connect": [], "extra": 1}}, False),
        ({"str": "ab", "blocks": [{"type": "paragraph", "children": []}]}, False),
        ({"str": "ab", "blocks": [{"type": "code", "children": [{"type": "text", "text": "x"}]}]}, True),
        ({"str": "ab", "blocks": [{"type": "song", "children": []}]}, False),
        ({"str": "ab", "dt": 1_700_000_000_000}, True),
        ({"str": "ab", "dt": 5}, True),
        ({"str": "ab", "b": "t"}, False),
    ],
)
def test_the_document_and_the_server_say_the_same_of_a_body(everything: Api, data: Any, good: bool) -> None:
    described = document(everything)
    schema = described["components"]["schemas"]["ThingInput"]
    assert validator(described, schema).is_valid(data) == good
    assert (everything.post("/api/things", data).status == 201) == good


# --- only what the caller may see -----------------------------------------------------------------


def test_the_public_sees_only_what_it_may_do(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    described = document(api, "public")
    content = {(m, p) for m, p, _ in operations(described) if p.startswith("/api/")}
    assert content == {
        ("GET", "/api/articles"),
        ("GET", "/api/articles/{documentId}"),
        ("POST", "/api/articles"),
    }
    text = json.dumps(described).lower()
    for secret in ("dossier", "pseudonym", "nobody", "boz", "whispered"):
        assert secret not in text
    assert "Shown" in json.dumps(described)
    assert "hush" not in described["components"]["schemas"]["Article"]["properties"]


def test_a_token_sees_what_it_may_do(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    api.token("press", may=["dossier.find", "author.find"])
    described = document(api, "press")
    assert {p for _, p, _ in operations(described) if p.startswith("/api/")} == {
        "/api/dossiers",
        "/api/authors",
    }
    assert "password" not in described["components"]["schemas"]["Author"]["properties"]
    # no examples from content that the public may not see
    assert "Nobody's business" not in json.dumps(described)
    assert api.get("/openapi.json", "nonsense").status == 401


def test_what_needs_no_credentials_says_so(make_api: MakeApi) -> None:
    described = document(make_api(SECRET))
    security = {p: made["security"] for m, p, made in operations(described) if m == "GET"}
    assert security["/api/articles"] == [{}, {"bearer": []}]
    assert security["/api/dossiers"] == [{"bearer": []}]


# --- served --------------------------------------------------------------------------------------


def test_every_read_says_that_it_has_an_entity_tag(everything: Api) -> None:
    reads = [made for method, _, made in operations(document(everything)) if method == "GET"]
    assert len(reads) > 20
    for made in reads:
        if "200" in made["responses"]:
            assert made["responses"]["200"]["headers"]["ETag"]["required"]
            assert "304" in made["responses"]
            assert {"$ref": "#/components/parameters/ifNoneMatch"} in made["parameters"]


def test_writes_say_that_they_become_commits_where_they_do(make_api: MakeApi) -> None:
    tag = {"/api/articles": {"post"}, "/api/articles/{documentId}": {"put", "delete"}, "/batch": {"post"}}
    files = {"/api/upload": {"post"}, "/api/upload/files/{id}": {"delete"}}
    restored = {"/history/{type}/restore": {"post"}, "/history/{type}/{documentId}/restore": {"post"}}
    merged = {"/branches/{name}/merge": {"post"}, "/api/content-type-builder/changes": {"post"}}
    sources = {"/source/{type}": {"put"}, "/source/{type}/{documentId}": {"put"}}
    branched = {(p, m) for p, ms in {**tag, **files, **restored, **merged, **sources}.items() for m in ms}
    # These writes always go to the served branch.
    served = {("/batch/undo/{id}", "post"), ("/problems/fix", "post"), ("/settings", "put")}
    served |= {("/api/upload/files/{id}/move", "post")}
    served |= {
        (path, method) for path in ("/roles/{role}", "/webhooks/{name}") for method in ("put", "delete")
    }
    served |= {("/webhooks", "post")}

    def committing(api: Api, who: str) -> set[tuple[str, str]]:
        found = set()
        for method, path, operation in operations(document(api, who)):
            told = ref_of("message") in operation.get("parameters", [])
            answers = [made for status, made in operation["responses"].items() if status < "3"]
            if method.lower() != "get":  # A read's response names its commit.
                assert told == any("Bifolio-Commit" in made.get("headers", {}) for made in answers)
            found |= {(path, method.lower())} if told else set()
        return found

    api = make_api(collection("article", {"title": STRING}))
    assert committing(api, "full") == branched
    assert committing(api, "public") == set()
    (api.root / "site.yaml").write_text("git: {commit: each}\nroles: {public: {article: [create]}}\n")
    api.site.refresh()
    assert committing(api, "public") == {("/api/articles", "post"), ("/batch", "post")}
    assert committing(api, "full") == branched | served


def test_who_has_one_permission_alone_gets_it(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    subjects = [(subject or "article", actions) for subject, actions in ACTIONS.items()]
    for permission in [f"{subject}.{action}" for subject, actions in subjects for action in actions]:
        api.token(permission, may=[permission])
        described = api.get("/openapi.json", permission)
        assert described.status == 200, permission
        referred = set(re.findall(r'"\$ref": ?"#/components/([^"]+)/([^"]+)"', described.text))
        components = described.body["components"]
        assert all(name in components[section] for section, name in referred), permission


def test_dry_runs_are_described_to_those_who_may_make_them(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    writes = ["article.create", "settings.read", "settings.write", "role.find", "role.update", "webhook.read"]
    writes += ["webhook.write", "content-type.write"]
    of_documents = {("/api/articles", "post"), ("/batch", "post")}
    others = {("/settings", "put"), ("/webhooks", "post"), ("/api/content-type-builder/changes", "post")}
    others |= {
        (path, method) for path in ("/roles/{role}", "/webhooks/{name}") for method in ("put", "delete")
    }

    def dry_runs(who: str, may: list[str]) -> dict[tuple[str, str], str]:
        api.token(who, may=may)
        described = document(api, who)
        names = {
            (path, method.lower()): ref["$ref"].rpartition("/")[2]
            for method, path, operation in operations(described)
            for ref in operation.get("parameters", [])
            if "dryRun" in ref.get("$ref", "")
        }
        known = described["components"]["parameters"]
        assert all(
            (name == "dryRunOfSource") == ("source.read" in known[name]["description"])
            for name in names.values()
        )
        return names

    free, needs_source = dict.fromkeys(others, "dryRun"), dict.fromkeys(of_documents, "dryRunOfSource")
    assert dry_runs("writer", writes) == free
    assert dry_runs("reader", [*writes, "source.read"]) == free | needs_source
    statuses = [api.post("/api/articles?dryRun=true", {"title": "x"}, w).status for w in ("writer", "reader")]
    assert statuses == [403, 200]
    assert (
        api.put("/settings?dryRun=true", {"name": "Pier"}, "writer", headers={"If-Match": "*"}).status == 200
    )


def test_content_that_looks_like_a_reference_is_an_example_and_none(make_api: MakeApi) -> None:
    hue = {"type": "enumeration", "enum": ["#/components/schemas/Nope", "#/components"]}
    data = {"type": "json"}
    text = {"title": "#/components/schemas/Dossier", "hue": "#/components"}
    files = {
        **SECRET,
        **collection("article", {"title": STRING, "hue": hue, "data": data, "properties": STRING}),
        **documents("articles", a={**text, "data": {"$ref": "#/components/schemas/Dossier"}}),
    }
    described = document(make_api(files), "public")
    assert "#/components/schemas/Dossier" in json.dumps(described)
    assert "Dossier" not in described["components"]["schemas"]


def test_it_is_tagged_and_changes_with_the_schema(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    first = api.get("/openapi.json", "public")
    assert first.headers["Cache-Control"] == "public, max-age=0, must-revalidate"
    assert "Authorization" in first.headers["Vary"]
    tag = first.headers["ETag"]
    known = api.get("/openapi.json", "public", headers={"If-None-Match": tag})
    assert (known.status, known.body) == (304, b"")
    mine = api.get("/openapi.json")
    assert mine.headers["Cache-Control"] == "private, no-cache"
    assert mine.headers["ETag"] != tag
    path = api.site.root / "content-types" / "article.json"
    path.write_text(path.read_text().replace('"title"', '"headline"', 1))
    api.site.refresh()
    second = api.get("/openapi.json", "public", headers={"If-None-Match": tag})
    assert second.status == 200
    assert "headline" in second.body["components"]["schemas"]["Article"]["properties"]
    assert second.body["info"]["version"] != first.body["info"]["version"]


def test_an_example_goes_when_its_document_does(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    assert "Shown" in json.dumps(document(api, "public"))
    (api.site.root / "content" / "articles" / "a.json").unlink()
    api.site.refresh()
    assert "Shown" not in json.dumps(document(api, "public"))


def test_the_page_asks_nobody_else(make_api: MakeApi) -> None:
    api = make_api(SECRET)
    for path, kind in (
        ("/docs", "text/html"),
        ("/docs/page.css", "text/css"),
        ("/docs/page.js", "text/javascript"),
    ):
        answer = api.get(path, "public")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert not re.search(rb"https?://|//[a-z0-9.-]+\.[a-z]{2,}/|innerHTML", answer.body)
        assert api.get(path, "public", headers={"If-None-Match": answer.headers["ETag"]}).status == 304
    assert api.get("/docs/", "public").headers["Location"] == "../docs"
    assert api.get("/docs/../app.py", "public").status == 404
    assert api.get("/docs/routes.py", "public").error["status"] == 404
