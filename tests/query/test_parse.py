"""Parameters of read requests: which are accepted, rejected or ignored."""

import pytest

from server.query.parse import PARAMETERS
from tests.sites import STRING, Api, collection, load, translated

FILES = {
    **collection("page", {"title": translated(STRING)}, localized=True, drafts=True),
    **collection("note", {"title": STRING}),
    **collection("home", {"title": translated(STRING)}, localized=True, single=True),
    "site.yaml": "locales: {default: en, available: [en, fr, de]}",
    "content/pages/a.md": "---\ntitle: A\n---\n",
    "content/pages/a.fr.md": "---\ntitle: A fr\n---\n",
    "content/pages/a.fr.draft.md": "---\ntitle: A fr draft\n---\n",
    "content/pages/b.fr.md": "---\ntitle: B fr\n---\n",
    "content/pages/c.draft.md": "---\ntitle: C draft\n---\n",
    "content/notes/n.md": "---\ntitle: N\n---\n",
    "content/home.md": "---\ntitle: Home\n---\n",
    "content/home.fr.md": "---\ntitle: Accueil\n---\n",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


def titles(api: Api, path: str) -> list[str]:
    return sorted(document["title"] for document in api.get(path).data)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ["A"]),
        ("locale=en", ["A"]),
        ("locale=", ["A"]),
        ("locale=fr", ["A fr", "B fr"]),
        ("locale=de", []),
        ("locale=xx", []),
        ("locale=*", ["A", "A fr", "B fr"]),
        ("status=published", ["A"]),
        ("status=", ["A"]),
        ("status=draft", ["A", "C draft"]),
        ("status=draft&locale=fr", ["A fr draft", "B fr"]),
        ("status=draft&locale=*", ["A", "A fr draft", "B fr", "C draft"]),
        ("_q=", ["A"]),
        ("publicationFilter=never-published&status=draft", ["C draft"]),
        ("hasPublishedVersion=true&status=draft", ["A"]),
        ("hasPublishedVersion=false&status=draft", ["C draft"]),
        ("hasPublishedVersion=false&publicationFilter=has-published-version&status=draft", ["A"]),
        ("start=1&limit=1", ["A"]),
        ("zzz=1&strapi-encode-source-maps=true", ["A"]),
        ("filters[locale]=fr", ["A fr", "B fr"]),
        ("filters[locale]=fr&locale=en", ["A fr", "B fr"]),
        ("filters[locale][$in][0]=fr&filters[locale][$in][1]=en", ["A", "A fr", "B fr"]),
        ("filters[locale][$ne]=en", ["A fr", "B fr"]),
        ("filters[locale]=fr&status=draft", ["A fr draft", "B fr"]),
        ("filters[locale]=fr&filters[title]=A", []),
        ("filters[$and][0][locale]=fr", []),
        ("locale[0]=en&locale[1]=fr", ["A", "A fr", "B fr"]),
        ("locale=en&locale=fr", ["A", "A fr", "B fr"]),
        ("locale[]=fr", ["A fr", "B fr"]),
        ("locale[0]=xx&locale[1]=*", []),
        ("filters[locale]=en", ["A"]),
    ],
)
def test_lists(api: Api, query: str, wanted: list[str]) -> None:
    assert titles(api, f"/api/pages?{query}") == wanted


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/api/pages/a", "A"),
        ("/api/pages/a?locale=fr", "A fr"),
        ("/api/pages/a?locale=fr&status=draft", "A fr draft"),
        ("/api/pages/a?locale=*", None),
        ("/api/pages/a?filters[locale]=fr", "A fr"),
        ("/api/pages/b?filters[locale][$ne]=de", "B fr"),
        ("/api/pages/b?filters[locale]=en", None),
        ("/api/pages/c?status=draft", "C draft"),
        ("/api/pages/b", None),
        ("/api/pages/b?locale=fr", "B fr"),
        ("/api/pages/c", None),
        ("/api/pages/a?locale=de", None),
        ("/api/home", "Home"),
        ("/api/home?locale=fr", "Accueil"),
        ("/api/home?locale=*", None),
        ("/api/home?filters[locale]=fr", "Accueil"),
        ("/api/notes/n?locale=*", "N"),
        ("/api/home?locale=de", None),
        ("/api/notes/n", "N"),
        ("/api/notes/n?status=draft", "N"),
        ("/api/notes/n?locale=fr", "N"),
    ],
)
def test_one_document(api: Api, path: str, title: str | None) -> None:
    answer = api.get(path)
    assert answer.status == (404 if title is None else 200)
    if title is not None:
        assert answer.data["title"] == title
        assert answer.body["meta"] == {}


@pytest.mark.parametrize("path", ["/api/pages/a", "/api/home"])
def test_one_document_is_read_in_one_locale(api: Api, path: str) -> None:
    error = api.get(f"{path}?locale[0]=en&locale[1]=fr").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert error["message"] == "Invalid locale param en,fr provided. Document locales must be strings."


def test_a_document_always_has_its_locale(api: Api) -> None:
    assert api.get("/api/pages/a?locale=fr").data["locale"] == "fr"
    assert api.get("/api/notes/n").data["locale"] == "en"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=zzz", "published, draft"),
        ("status=Draft", "published, draft"),
        ("status[0]=draft", "published, draft"),
        ("locale=../etc", "Invalid locale"),
        ("locale=e", "Invalid locale"),
        ("locale[a]=en", "Invalid locale"),
        ("publicationFilter=zzz", "never-published, has-published-version"),
        ("publicationFilter=", "never-published, has-published-version"),
        ("publicationFilter[0]=modified", "Expected one of"),
        ("publicationStatus=maybe", 'expected "true" or "false"'),
        ("publicationStatus[0]=true", 'expected "true" or "false"'),
        ("hasPublishedVersion=maybe", "'true'/'false'"),
        ("hasPublishedVersion=maybe&publicationFilter=modified", "'true'/'false'"),
        ("fields[]=", "Invalid key "),
        ("fields=title,", "Invalid key "),
        ("fields[page]=1", "Invalid fields parameter. Expected a string or an array of strings"),
        ("_q[0]=x", "a single value"),
        ("_q=a&_q=b", "a single value"),
    ],
)
def test_invalid_parameters_are_refused_everywhere(api: Api, query: str, words: str) -> None:
    for path in ("/api/pages", "/api/pages/a", "/api/home", "/api/notes"):
        error = api.get(f"{path}?{query}").error
        assert (error["status"], error["name"]) == (400, "ValidationError"), path
        assert words in error["message"]


def test_pagination_applies_only_to_lists(api: Api) -> None:
    assert api.get("/api/pages/a?pagination[page]=x").status == 200
    assert api.get("/api/pages?pagination[page]=x").status == 400
    assert api.get("/api/pages/a?populate=*&pagination[page]=1").status == 200


@pytest.mark.parametrize("query", ["page=2", "pageSize=10", "page=1&pageSize=1"])
def test_pages_outside_of_pagination_are_refused(api: Api, query: str) -> None:
    error = api.get(f"/api/pages?{query}").error
    assert (error["status"], error["name"]) == (400, "PaginationError")
    assert "pagination object" in error["message"]


def test_pages_outside_of_pagination_are_reported_before_values_and_after_keys(api: Api) -> None:
    told = [
        api.get(f"/api/pages?page=2&{query}").error["name"]
        for query in ("filters[createdAt][$between][0]=2024", "filters[nope]=1")
    ]
    assert told == ["PaginationError", "ValidationError"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("fields=x&populate=x&sort=x&filters[x]=1", "filters"),
        ("fields=x&populate=x&sort=x", "sort"),
        ("populate=x&fields=x", "fields"),
        ("filters[x]=1&publicationFilter=x", "publicationFilter"),
    ],
)
def test_the_same_one_of_several_mistakes_is_always_reported(api: Api, query: str, param: str) -> None:
    assert api.get(f"/api/notes?{query}").error["details"]["param"] == param


@pytest.mark.parametrize("sort", ["sort=:asc", "sort=,title", "sort=:asc,title"])
def test_an_empty_sort_key_is_ignored(api: Api, sort: str) -> None:
    assert titles(api, f"/api/notes?{sort}") == ["N"]


def test_texts_and_objects_can_not_be_mixed_in_a_sort(api: Api) -> None:
    error = api.get("/api/notes?sort[0]=title&sort[1][title]=asc").error
    assert error["message"] == "Invalid key 0"


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("filters[title][$null]=x&sort=zzz", "zzz"),
        ("sort=title:up&fields=zzz", "zzz"),
        ("filters[title][$null]=x&sort=title:up&populate=zzz", "zzz"),
        ("fields=yyy&populate=zzz", "yyy"),
    ],
)
def test_an_unknown_key_is_reported_before_a_wrong_value(api: Api, query: str, key: str) -> None:
    assert api.get(f"/api/notes?{query}").error["message"] == f"Invalid key {key}"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Api:
    files = {**FILES, "site.yaml": f"{FILES['site.yaml']}\napi: {{strict_params: true}}"}
    return Api.of(load(tmp_path_factory.mktemp("site"), files))


def test_strict_parameters_are_refused_as_strapi_refuses_them(strict: Api) -> None:
    error = strict.get("/api/notes?sorting=title").error
    assert (error["status"], error["message"]) == (400, "Invalid key sorting")
    assert error["details"] == {"key": "sorting", "path": None, "source": "query", "param": "sorting"}
    assert strict.get("/api/pages/a?sorting=title").status == 400


@pytest.mark.parametrize(
    "query", ["", "sort=title&count=1&ordering=a&start=0&limit=2", "publicationStatus=true"]
)
def test_strict_parameters_accept_known_ones(strict: Api, query: str) -> None:
    assert strict.get(f"/api/pages?{query}").status == 200


def test_strict_parameters_are_those_that_openapi_describes(strict: Api) -> None:
    described = strict.get("/openapi.json").body
    shared = described["components"]["parameters"]
    operations = [
        operation
        for path, methods in described["paths"].items()
        if path.startswith(("/api/pages", "/api/home"))
        for operation in methods.values()
        if isinstance(operation, dict)
    ]
    parameters = [p for operation in operations for p in operation.get("parameters", ())]
    found = [shared[p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in parameters]
    names = {p["name"].partition("[")[0] for p in found if p["in"] == "query"}
    assert len(names) > 8
    assert names <= PARAMETERS
