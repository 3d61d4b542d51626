"""Operations for feeds, sitemaps, `/llms.txt` and redirects."""

from server.api.operations.json_schema import (
    COUNT,
    NUMBER,
    READ,
    READ_ONE,
    TEXT,
    JsonSchema,
    in_path,
    list_of,
    object_of,
    response_doc,
)
from server.api.operations.operation import Area, Audience, Docs, Operation, Tag
from server.api.operations.permission import anyone, may
from server.service.public_site import llms
from server.service.public_site.feeds import FORMATS
from server.service.public_site.sitemap import MEDIA_TYPE, NAME

PUBLISHING = Tag("Publishing", "Feeds, sitemaps, `/llms.txt` and redirects for the public website.")


def _text_answer(description: str, *media_types: str) -> JsonSchema:
    return {"description": description, "content": {kind: {"schema": TEXT} for kind in media_types}}


def _feed(audience: Audience) -> Docs:
    kinds = [format_.media_type.partition(";")[0] for format_ in FORMATS.values()]
    names = sorted(audience.settings.feeds)
    return Docs(
        "Get a feed",
        {200: _text_answer("The feed, with the newest documents first.", *kinds)},
        [
            in_path(
                "name", "The name of the feed in `site.yaml`.", {**TEXT, "enum": names} if names else TEXT
            ),
            in_path("format", "The format.", {"enum": [*FORMATS]}),
        ],
        errors=READ_ONE,
    )


FEEDS = Area(
    "feeds",
    parts=("feeds",),
    tag=PUBLISHING,
    operations=(Operation("feed", "GET", "/feeds/{name}.{format}", anyone, _feed, slash=False),),
)

_XML = MEDIA_TYPE.partition(";")[0]
SITEMAP = Area(
    "sitemap",
    parts=(NAME, "sitemap-"),
    tag=PUBLISHING,
    operations=(
        Operation(
            "sitemap", "GET", f"/{NAME}", anyone,
            Docs(
                "Get the sitemap, or the index of the sitemaps",
                {200: _text_answer("The sitemap, or an index if the site has more than 50,000 URLs.", _XML)},
                errors=READ_ONE,
            ),
            slash=False,
        ),
        Operation(
            "sitemapPart", "GET", "/sitemap-{number}.xml", anyone,
            Docs(
                "Get one of several sitemaps",
                {200: _text_answer("The sitemap.", _XML)},
                [in_path("number", "The number of the sitemap, from 1.", NUMBER)],
                errors=READ_ONE,
            ),
            slash=False,
        ),
    ),
)  # fmt: skip

LLMS = Area(
    "llms",
    parts=(llms.NAME,),
    tag=PUBLISHING,
    operations=(
        Operation(
            "llms", "GET", f"/{llms.NAME}", anyone,
            Docs(
                "Get an overview of the public documents for language models",
                {200: _text_answer("Links to the documents in Markdown.", llms.MEDIA_TYPE.partition(";")[0])},
                errors=READ_ONE,
            ),
            slash=False,
        ),
    ),
)  # fmt: skip

_REDIRECT = object_of(
    {
        "from": {**TEXT, "description": "The percent-encoded path of the former address."},
        "to": {**TEXT, "description": "The current URL of the document."},
        "status": NUMBER,
        "origin": {**TEXT, "description": "The scheme and host of the former address."},
        **dict.fromkeys(("type", "documentId", "locale"), TEXT),
    }
)
REDIRECTS = Area(
    "redirects",
    parts=("redirects",),
    tag=PUBLISHING,
    varies_by_commit=True,
    operations=(
        Operation(
            "redirects", "GET", "/redirects", may("redirects", "read"),
            Docs(
                "List redirects from former addresses of documents",
                {
                    200: response_doc(
                        "The redirects, sorted by their former addresses.",
                        object_of(
                            {
                                "data": list_of(_REDIRECT),
                                "meta": object_of(dict.fromkeys(("total", "problems"), COUNT)),
                            }
                        ),
                    )
                },
                errors=READ,
            ),
        ),
    ),
)  # fmt: skip
