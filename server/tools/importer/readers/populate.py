"""The `populate` parameters that ask an installation for all that its documents hold."""

from collections.abc import Iterator, Mapping

from server.errors import SetupError
from server.tools.importer.source import Shape, is_derived

MAX_DEPTH = 8  # of components in components
MAX_QUERY = 12_000  # characters; servers refuse longer addresses


def populate_queries(schemas: Mapping[str, Shape], schema: Shape, base: str) -> list[str]:
    """The populate parameters of a type, in several queries if they are too long for one address.

    Raises SetupError, in the name of the installation at `base`, for an attribute that is too deep.
    """
    made, length = [""], 0
    for name, attribute in schema["attributes"].items():
        text = "&".join(_populate(schemas, f"populate[{name}]", attribute, 0))
        if len(text) > MAX_QUERY:
            what = f'"{name}" of {schema["info"]["singularName"]} is too deep to be asked for'
            raise SetupError(base, None, what, "export it there and import the archive")
        if length + len(text) > MAX_QUERY:
            made.append("")
            length = 0
        made[-1] = joined(made[-1], text)
        length += len(text)
    return made


def _populate(schemas: Mapping[str, Shape], at: str, attribute: Shape, depth: int) -> Iterator[str]:
    """The parameters that populate one attribute and what is in it."""
    kind = attribute["type"]
    if depth > MAX_DEPTH or (kind == "relation" and is_derived(attribute)):
        return
    if kind == "relation":
        morph = str(attribute.get("relation")).startswith("morph")
        yield f"{at}=true" if morph else f"{at}[fields][0]=documentId"
    elif kind == "media":
        yield f"{at}[fields][0]=hash&{at}[fields][1]=ext"
    elif kind == "component":
        yield from _populate_inner(schemas, at, attribute["component"], depth)
    elif kind == "dynamiczone":
        for uid in attribute["components"]:
            yield from _populate_inner(schemas, f"{at}[on][{uid}]", uid, depth)


def _populate_inner(schemas: Mapping[str, Shape], at: str, uid: str, depth: int) -> Iterator[str]:
    attributes = schemas[uid]["attributes"] if uid in schemas else {}
    inner = [
        part
        for name, attribute in attributes.items()
        for part in _populate(schemas, f"{at}[populate][{name}]", attribute, depth + 1)
    ]
    yield from inner or [f"{at}=true"]


def joined(*parts: str) -> str:
    """The parts of a query that are not empty, as one query."""
    return "&".join(part for part in parts if part)
