"""Comparison of the documents that the two servers have stored after writes."""

from collections.abc import Iterator

from bench.differential.judging import Judge, Verdict
from bench.differential.model import Type
from bench.differential.populating import deep_populate
from bench.differential.request import Query, Request, flatten
from bench.differential.world import World

# Name of the row about a difference that also changes the results of queries through the relation. Documents
# with this difference are deleted.
SPREADING = "taken over by a draft"


def look(judge: Judge, world: World) -> Iterator[Verdict]:
    for type_ in world.model.types.values():
        for request in requests(world, type_):
            yield judge.look(request)


def requests(world: World, type_: Type) -> Iterator[Request]:
    """Yield the requests that read all versions of a content type's documents."""
    populate = flatten("populate", deep_populate(world.model.components, type_.attributes))
    for status in type_.statuses:
        query: Query = (("status", status),) if type_.drafts else ()
        if not type_.single:
            locale: Query = (("locale", "*"),) if type_.localized else ()
            yield Request("GET", type_.path, (*query, *locale, ("pagination[pageSize]", "100"), *populate))
            continue
        for code in type_.locales:
            locale = (("locale", code),) if type_.localized else ()
            yield Request("GET", type_.path, (*query, *locale, *populate))


def settle(judge: Judge, world: World) -> list[Verdict]:
    """Delete every document that differs between the servers. Returns the verdicts that revealed the
    differences.
    """
    shown: list[Verdict] = []
    for _ in range(5):
        found = [v for v in look(judge, world) if _own(judge, v)]
        if not found:
            break
        shown += found
        for verdict in found:
            _delete_different(judge, world, verdict)
    return shown


def _own(judge: Judge, verdict: Verdict) -> bool:
    return SPREADING in verdict.deviations or any(
        "derived" not in judge.shapes.where(difference, verdict.request) for difference in verdict.unexplained
    )


def _delete_different(judge: Judge, world: World, verdict: Verdict) -> None:
    """Delete those documents in a list that are different on the two servers."""
    type_ = next(t for t in world.model.types.values() if t.path == verdict.request.path)
    for document in world.of(type_.uid):
        one = dict(verdict.request.query) | {"filters[documentId]": document.reference}
        path = type_.path if type_.single else f"{type_.path}/{document.reference}"
        request = Request(
            "GET", type_.path, tuple(one.items()) if not type_.single else verdict.request.query
        )
        if _own(judge, judge.look(request)):
            judge.pair.ask(Request("DELETE", path, (("locale", "*"),) if type_.localized else ()))
            world.documents.pop(document.name, None)
