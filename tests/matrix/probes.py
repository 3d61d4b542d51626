"""Reads that would reveal a secret if a query used data that the caller may not see.

Most are valid: they read public data, but filter, count or sort by data that only some identities may see.
"""

from collections.abc import Iterator

from server.api.operations.table import OPERATIONS
from tests.matrix.requests import Request
from tests.matrix.secrets import Group, probes

_PRIVATE, _HIDDEN, _DRAFT, _PAST, _BRANCH = (
    probes(group)[0] for group in (Group.PRIVATE, Group.HIDDEN, Group.DRAFT, Group.PAST, Group.BRANCH)
)
# Queries for articles. Their private values, their drafts, and their relations to hidden documents are
# secret.
_OF_ARTICLES = (
    "",
    "populate=*",
    "populate=*&locale=fr",
    "populate=*&locale=*&sort=title:desc",
    "populate[vault]=true",
    "populate[vaults][count]=true",
    "populate[vaults][filters][title][$startsWith]=" + _HIDDEN,
    "populate[tag][populate][articles][count]=true",
    "populate[tag][populate][articles][populate]=*",
    "populate[about][populate]=*",
    "populate[about][on][api::vault.vault][populate]=*",
    "populate[about][on][api::tag.tag]=true",
    "populate[box][populate]=*&populate[boxes][populate]=*&populate[zone][populate]=*",
    "populate[zone][on][x.box][populate][vault]=true",
    "populate[localizations][populate]=*",
    "populate[tag][populate][articles][sort]=title:desc&populate[tag][populate][articles][fields]=title",
    "fields=title",
    "fields[0]=title&fields[1]=updatedAt&sort=updatedAt:desc",
    "fields=secret",
    "sort=title",
    "sort[0]=tag.name&sort[1]=title",
    "sort=secret",
    "sort=rank",
    "sort=vault.title",
    "sort=box.code",
    "pagination[pageSize]=1",
    "pagination[pageSize]=1&pagination[page]=3",
    "pagination[start]=1&pagination[limit]=2",
    "pagination[withCount]=false",
    "_q=article",
    "_q=" + _PRIVATE,
    "_q=" + _DRAFT,
    "_q=" + _HIDDEN,
    "publicationFilter=never-published",
    "publicationFilter=has-published-version",
    "publicationFilter=modified",
    "publicationFilter=unmodified",
    "publicationStatus=true",
    "status=draft",
    "status=draft&populate=*",
    "status=draft&publicationFilter=modified",
    "status=draft&filters[title][$startsWith]=" + _DRAFT,
    "filters[title][$startsWith]=Article",
    "filters[title][$startsWith]=" + _DRAFT,
    "filters[title][$contains]=" + _PAST,
    "filters[tag][name][$eq]=Tag one",
    "filters[tag][articles][title][$startsWith]=" + _DRAFT,
    "filters[tag][$null]=true",
    "filters[$or][0][title][$eq]=Article two&filters[$or][1][tag][name][$contains]=two",
    "filters[$not][title][$null]=true&sort=title",
    "filters[secret][$startsWith]=" + _PRIVATE,
    "filters[secret][$notNull]=true",
    "filters[rank][$gt]=1715",
    "filters[rank][$eq]=1711",
    "filters[pin][$notNull]=true",
    "filters[vault][title][$startsWith]=" + _HIDDEN,
    "filters[vault][$notNull]=true",
    "filters[vaults][documentId][$eq]=v2",
    "filters[box][code][$startsWith]=" + _PRIVATE,
    "filters[box][label][$eq]=A label",
    "filters[box][vault][title][$startsWith]=" + _HIDDEN,
    "filters[zone][$notNull]=true",
    "filters[tag][articles][secret][$startsWith]=" + _PRIVATE,
    "filters[tag][articles][vault][title][$startsWith]=" + _HIDDEN,
    "filters[cover][name][$eq]=pic.txt&populate=cover",
    "filters[documentId][$in][0]=d1&filters[documentId][$in][1]=a1",
    "filters[createdAt][$gt]=2020-01-01&fields=title",
    "at=main~4",
    "at=main~4&populate=*",
    "at=main&filters[title][$startsWith]=" + _PAST,
    "at=next&populate=*",
    "at=2024-01-01T00:00:02Z&fields=title",
)
_OF_TAGS = (
    "",
    "populate=*",
    "populate[articles][populate]=*",
    "populate[articles][count]=true",
    "populate[articles][filters][title][$startsWith]=" + _DRAFT,
    "populate[articles][publicationFilter]=modified",
    "populate[articles][sort]=vault.title",
    "sort=articles.title",
    "filters[articles][title][$startsWith]=" + _DRAFT,
    "filters[articles][title][$eq]=Article two",
    "filters[articles][secret][$notNull]=true",
    "filters[articles][rank][$lt]=1715",
    "filters[articles][documentId][$eq]=d1",
    "status=draft&populate=articles",
)
_OF_ONE = (
    "/api/articles/a1?populate=*",
    "/api/articles/a1?status=draft&populate=*",
    "/api/articles/a1?locale=fr&populate[tag][populate]=*",
    "/api/articles/a1?fields=title&populate[tag][populate]=*",
    "/api/articles/a1?at=main~4&populate=*",
    "/api/articles/a1?at=next",
    "/api/articles/a1?publicationStatus=true",
    "/api/articles/a1?at=stash",
    "/api/articles/a1?at=refs/stash",
    "/api/articles/a1?at=../stash",
    "/api/articles/a3?status=draft",
    f"/api/articles/{_DRAFT}former",
    f"/api/articles/{_DRAFT}former?status=draft",
    "/api/articles/d1",
    "/api/articles/d1?status=draft",
    "/api/articles/gone?at=main~4",
    "/api/articles/mv?populate=*",
    "/api/vaults/v1?populate=*",
    "/api/vaults/v1?at=main~4",
    "/api/tags/t1?populate[articles][populate]=*",
    "/api/tags/t2?populate[articles][count]=true",
)
_OF_SINGLES = (
    *("/api/home?populate=*", "/api/home?at=main~4", "/api/home?fields=motto"),
    *("/api/notice", "/api/notice?status=draft&populate=*", "/api/notice?publicationFilter=modified"),
)
_SEARCHES = (
    "q=article",
    "q=article&type=article&limit=1",
    "q=article&status=draft",
    "q=art&locale=fr",
    "q=text+label",
    "q=title:article",
    "q=article+-two",
    "q=articel",
    "q=tag&type=tag",
    "q=article&at=main~4",
    *(f"q={word}" for word in (_PRIVATE, _HIDDEN, _DRAFT, _PAST, _BRANCH)),
    f"q={_DRAFT}title&status=draft",
    f"q=article+{_HIDDEN}v1",
)


def reads() -> Iterator[Request]:
    """Yield reads of content, and searches."""
    for query in _OF_ARTICLES:
        yield _read(f"/api/articles?{query}" if query else "/api/articles")
    for query in _OF_TAGS:
        yield _read(f"/api/tags?{query}" if query else "/api/tags")
    for path in (*_OF_ONE, *_OF_SINGLES, "/api/vaults", "/api/vaults?populate[articles][populate]=*"):
        yield _read(path)
    for query in _SEARCHES:
        yield _read(f"/search?{query}")


def _read(path: str) -> Request:
    address = path.partition("?")[0]
    single = address in ("/api/home", "/api/notice")
    operation = next(
        o.id
        for o in OPERATIONS
        if o.method == "GET" and o.matches(address) and (o.kind == "singleType") <= single
        if not (single and o.kind == "collectionType")
    )
    return Request(operation, "GET", path)
