"""The same requests, in the form that each of the three servers expects."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from urllib.parse import quote

from bench.effort import scaled
from bench.peer.filling import Documents, Ids
from bench.sites import WORDS

DIFFERENT = scaled(1000, 10)
PAGE = 25
LEAST = 40  # With fewer documents, there would be only one page.
_SORTS = ("title", "slug", "publishedOn", "readingMinutes", "summary", "createdAt")
_EXPANDED = "_expand=author&_expand=category"


@dataclass(frozen=True)
class Row:
    """One kind of request: its paths for each server, in the same order."""

    name: str
    bifolio: list[str]
    strapi: list[str]
    json_server: list[str]
    as_json_server: str = ""  # the most similar request, if json-server lacks the feature


def rows(documents: Documents, ids: Ids) -> list[Row]:
    """Return all rows. `ids` maps Bifolio's documentIds to Strapi's."""
    chance = random.Random(1)
    articles = [document["documentId"] for document in documents["articles"]]
    chance.shuffle(articles)
    starts = list(range(len(articles) - PAGE + 1))
    chance.shuffle(starts)
    return [
        _one("one document", articles, ids),
        _one("one document, populate=*", articles, ids, "populate=*", _EXPANDED, "two relations expanded"),
        _windows("list of 25", starts),
        _windows("list of 25, populate=*", starts, "populate=*", _EXPANDED, "two relations expanded"),
        _filtered(documents, chance),
        _texts("$containsi in the body", "filters[body][$containsi]", "body_like", "a text match", chance),
        _texts("_q", "_q", "q", "its full-text q", chance),
    ]


def _one(
    name: str, articles: Iterable[str], ids: Ids, more: str = "", theirs: str = "", what: str = ""
) -> Row:
    some = list(islice(articles, DIFFERENT))
    return Row(
        name,
        [f"/api/articles/{i}?{more}" for i in some],
        [f"/api/articles/{ids[i]}?{more}" for i in some],
        [f"/articles/{i}?{theirs}" for i in some],
        what,
    )


def _windows(name: str, starts: Iterable[int], more: str = "", theirs: str = "", what: str = "") -> Row:
    ours = [
        _list({"pagination[start]": str(n), "pagination[limit]": str(PAGE)}, more)
        for n in islice(starts, DIFFERENT)
    ]
    other = [f"/articles?_start={n}&_limit={PAGE}&{theirs}" for n in islice(starts, DIFFERENT)]
    return Row(name, ours, ours, other, what)


def _filtered(documents: Documents, chance: random.Random) -> Row:
    authors = [(a["slug"], a["documentId"]) for a in documents["authors"]]
    categories = [(c["slug"], c["documentId"]) for c in documents["categories"]]
    combinations = list(product(authors, categories, _SORTS, ("asc", "desc")))
    chance.shuffle(combinations)
    ours, theirs = [], []
    for (author, author_id), (category, category_id), sort, order in combinations[:DIFFERENT]:
        ours.append(
            _list(
                {
                    "filters[author][slug][$eq]": author,
                    "filters[category][slug][$ne]": category,
                    "sort": f"{sort}:{order}",
                }
            )
        )
        theirs.append(
            f"/articles?authorId={author_id}&categoryId_ne={category_id}"
            f"&_sort={sort}&_order={order}&_page=1&_limit={PAGE}"
        )
    return Row("filter through relations, sort", ours, ours, theirs, "a filter with sort")


def _texts(name: str, parameter: str, theirs: str, what: str, chance: random.Random) -> Row:
    pairs = [" ".join(pair) for pair in product(WORDS, WORDS)]
    texts = chance.sample(pairs, min(DIFFERENT, len(pairs)))
    ours = [_list({parameter: text}) for text in texts]
    other = [f"/articles?{theirs}={quote(text)}&_page=1&_limit={PAGE}" for text in texts]
    return Row(name, ours, ours, other, what)


def _list(parameters: Mapping[str, str], more: str = "") -> str:
    # Percent-encode brackets, as clients do.
    encoded = [f"{quote(k)}={quote(v)}" for k, v in parameters.items()]
    return "/api/articles?" + "&".join([*encoded, *([more] if more else [])])
