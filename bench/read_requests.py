"""The requests that are measured: for each kind, one request to repeat, and many different ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from urllib.parse import quote

from bench.effort import scaled
from bench.sites import WORDS, Sizes, article_id

DIFFERENT = scaled(200)  # number of different requests of each kind
PAGE = 25
NESTED = {
    "populate[author][fields][0]": "name",
    "populate[category]": "true",
    "populate[tags][sort][0]": "name:asc",
    "populate[related][populate][author][fields][0]": "name",
    "populate[seo]": "true",
    "populate[sections][populate]": "*",
}


@dataclass(frozen=True)
class Case:
    """One kind of request: its name, and different requests of this kind."""

    name: str
    paths: Sequence[str]


def cases(sizes: Sizes) -> list[Case]:
    """Return every kind of request for a site with these numbers of documents."""
    pages = range(1, min(DIFFERENT, sizes.articles // PAGE) + 1)
    step = max(1, sizes.articles // DIFFERENT)
    documents = [f"/api/articles/{article_id(i)}?" for i in range(0, sizes.articles, step)]
    authors = [f"author-{i:04d}" for i in range(sizes.authors)]
    categories = [f"category-{i:04d}" for i in range(sizes.categories)]
    pairs = [" ".join(pair) for pair in islice(product(WORDS, reversed(WORDS)), DIFFERENT)]
    return [
        Case("one document", documents),
        Case("list of 25", [_list({"pagination[page]": str(p)}) for p in pages]),
        Case("list of 25, populate=*", [_list({"populate": "*", "pagination[page]": str(p)}) for p in pages]),
        Case("list of 25, nested populate", [_list({**NESTED, "pagination[page]": str(p)}) for p in pages]),
        Case(
            "filter through relations, sort",
            [
                _list({"filters[author][slug][$eq]": a, "filters[category][slug][$ne]": c, "sort": "title"})
                for a, c in islice(product(authors, categories), DIFFERENT)
            ],
        ),
        Case("$containsi in the body", [_list({"filters[body][$containsi]": text}) for text in pairs]),
        Case("_q", [_list({"_q": text}) for text in pairs]),
    ]


def _list(parameters: Mapping[str, str]) -> str:
    # Percent-encode brackets, as clients do.
    return "/api/articles?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in parameters.items())
