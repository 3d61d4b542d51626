"""Several relations in one write that are stored in the same other document: all must be saved, in all
versions.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import MakeApi
from tests.examples import examples
from tests.sites import STRING, Api, collection, documents, make, relation

# For each attribute that is the other side of a relation: the attribute that stores it, and the type of that
# attribute.
STORED = {
    "prev": ("next", "pen"),
    "sub": ("parent", "pen"),
    "fans": ("likes", "pen"),
    "cases": ("holds", "case"),
    "label": ("marks", "case"),
}
TO_ONE = ("next", "parent", "holds", "marks")
ONE_TO_ONE = ("next", "marks")
PEN: dict[str, Any] = {
    "title": STRING,
    "next": relation("oneToOne", "pen", inversedBy="prev"),
    "prev": relation("oneToOne", "pen", mappedBy="next"),
    "parent": relation("manyToOne", "pen", inversedBy="sub"),
    "sub": relation("oneToMany", "pen", mappedBy="parent"),
    "likes": relation("manyToMany", "pen", inversedBy="fans"),
    "fans": relation("manyToMany", "pen", mappedBy="likes"),
    "cases": relation("oneToMany", "case", mappedBy="holds"),
    "label": relation("oneToOne", "case", mappedBy="marks"),
}
CASE = {
    "title": STRING,
    "holds": relation("manyToOne", "pen", inversedBy="cases"),
    "marks": relation("oneToOne", "pen", inversedBy="label"),
}
PENS, CASES, STATES = ("p", "q", "r"), ("k", "l"), ("published", "draft", "both")
Stored = dict[tuple[str, str], list[str]]  # by document and attribute: the ids of the related documents


def site(states: Mapping[str, str], *, drafts: bool = True) -> dict[str, str]:
    """Return the files of a site.

    Each document is published, only a draft, or published with a different draft.
    """
    versions: dict[str, dict[str, Any]] = {"pens": {}, "cases": {}}
    for name, state in states.items():
        found = versions["pens" if name in PENS else "cases"]
        if state != "draft":
            found[name] = {"title": name}
        if state != "published":
            found[f"{name}.draft"] = {"title": f"{name}, a draft"}
    return {
        **collection("pen", PEN, drafts=True),
        **collection("case", CASE, drafts=drafts),
        **documents("pens", **versions["pens"]),
        **documents("cases", **versions["cases"]),
    }


def test_a_draft_keeps_all_that_another_document_stores(make_api: MakeApi) -> None:
    api = make_api(site({"p": "published"}))
    made = api.post("/api/pens?status=draft&populate=*", {"title": "D", "prev": "p", "sub": ["p"]}).data
    assert (made["prev"]["documentId"], [s["documentId"] for s in made["sub"]]) == ("p", ["p"])
    assert api.get("/api/pens/p?populate=*").data["parent"] is None  # only a draft has changed the relation


@pytest.mark.parametrize("order", [("next", "prev"), ("prev", "next")])
@pytest.mark.parametrize("status", ["draft", "published"])
def test_a_document_put_into_a_chain_has_both_its_neighbours(
    make_api: MakeApi, order: tuple[str, str], status: str
) -> None:
    api = make_api(site({"p": "published", "q": "published"}))
    api.put("/api/pens/p", {"next": "q"})
    wanted = {"next": "q", "prev": "p"}
    made = api.post(f"/api/pens?status={status}&populate=*", {name: wanted[name] for name in order}).data
    assert {name: made[name] and made[name]["documentId"] for name in order} == wanted
    chain = {p["documentId"]: p["next"] for p in api.get(f"/api/pens?status={status}&populate=next").data}
    assert (chain["p"]["documentId"], chain["q"]) == (made["documentId"], None)


def targets(name: str) -> st.SearchStrategy[list[str]]:
    """Return a strategy for the targets of an attribute in a request body."""
    among = CASES if STORED.get(name, ("", ""))[1] == "case" else PENS
    most = 1 if name in (*TO_ONE, "prev", "label") else 3
    return st.lists(st.sampled_from(among), max_size=most, unique=True)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, list[str]]:
    """Draw a request body with relations in any order."""
    related = [name for name in PEN if name != "title"]
    names = draw(st.lists(st.sampled_from(related), min_size=1, unique=True))
    return {name: draw(targets(name)) for name in names}


def expected(stored: Stored, written: str, body: Mapping[str, list[str]]) -> Stored:
    """Return the relations of all drafts after a write.

    If a document has a relation to itself, its own side is applied last.
    """
    after = {key: list(value) for key, value in stored.items()}

    def point(owner: str, name: str, target: str) -> None:
        for (other, stored_name), value in after.items():
            if name in ONE_TO_ONE and stored_name == name and other != owner and target in value:
                value.remove(target)
        kept = [] if name in TO_ONE else [other for other in after[owner, name] if other != target]
        after[owner, name] = [*kept, target]

    # If a document names itself on the other side, it has a relation to itself, whatever its own side
    # contains.
    at_itself = {STORED[name][0] for name, wanted in body.items() if name in STORED and written in wanted}
    for name, wanted in body.items():
        if name not in STORED:
            after[written, name] = []
            for target in () if name in TO_ONE and name in at_itself else wanted:
                point(written, name, target)
    for name, wanted in body.items():
        if name in STORED:
            for (_, stored_name), value in after.items():
                if stored_name == STORED[name][0] and written in value:
                    value.remove(written)
            for owner in wanted:
                point(owner, STORED[name][0], written)
    return after


def relations(api: Api, status: str) -> Stored:
    """Return the relations that are stored in documents, as read with a status."""
    found: Stored = {}
    for plural, names in (("pens", ("next", "parent", "likes")), ("cases", ("holds", "marks"))):
        for document in api.get(f"/api/{plural}?status={status}&populate=*").data:
            for name in names:
                value = document[name]
                items = value if isinstance(value, list) else [value] if value else []
                found[document["documentId"], name] = sorted(item["documentId"] for item in items)
    return found


def ordered(stored: Stored) -> Stored:
    return {key: sorted(value) for key, value in stored.items()}


def in_body(name: str, wanted: list[str]) -> Any:
    """Return the value of a relation in a request body: a list if the relation is to-many."""
    return wanted if PEN[name]["relation"].endswith("Many") else next(iter(wanted), None)


def show(stored: Stored, document: str) -> dict[str, list[str]]:
    """Return the relations of a document from both sides, by attribute."""
    own = {name: value for (owner, name), value in stored.items() if owner == document}
    others = {
        name: sorted(o for (o, n), value in stored.items() if n == owning and document in value)
        for name, (owning, _) in STORED.items()
    }
    return {**own, **others}


WRITES = st.tuples(st.sampled_from((*PENS, "new")), st.sampled_from(("draft", "published")), bodies())


@settings(max_examples=examples(60))
@given(
    st.fixed_dictionaries({name: st.sampled_from(STATES) for name in (*PENS, *CASES)}),
    st.booleans(),
    st.lists(WRITES, min_size=1, max_size=3),
)
def test_no_write_loses_a_relation(
    states: dict[str, str], drafts: bool, writes: list[tuple[str, str, dict[str, list[str]]]]
) -> None:
    if not drafts:
        states |= dict.fromkeys(CASES, "published")
    with TemporaryDirectory() as folder:
        api = make(Path(folder), site(states, drafts=drafts))
        for document, status, body in writes:
            before = relations(api, "draft")
            data = {name: in_body(name, wanted) for name, wanted in body.items()}
            at = "" if document == "new" else f"/{document}"
            answer = api.ask("PUT" if at else "POST", f"/api/pens{at}?status={status}", json={"data": data})
            written = answer.data["documentId"]
            for name in ("next", "parent", "likes"):
                before.setdefault((written, name), [])
            after = relations(api, "draft")
            assert after == ordered(expected(before, written, body))
            if status == "published":
                live = relations(api, "published")
                known = {document for document, _ in live}
                wanted = show(after, written).items()
                assert show(live, written) == {n: [t for t in found if t in known] for n, found in wanted}
