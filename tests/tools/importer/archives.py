"""Strapi export archives for tests: the recorded archive with changes, and small ones made from scratch."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

EXPORT = Path(__file__).parent / "export.tar.gz"
Members = dict[str, bytes]
Json = dict[str, Any]
TIMESTAMPS = {"createdAt": "2024-01-01T00:00:00.000Z", "updatedAt": "2024-01-02T00:00:00.000Z"}


def members() -> Members:
    """Return the members of the recorded archive."""
    with tarfile.open(EXPORT) as archive:
        return {m.name: file.read() for m in archive if (file := archive.extractfile(m))}


def pack(path: Path, found: Mapping[str, bytes], mode: str = "w:gz") -> Path:
    """Write an archive with the given members. Return its path."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in found.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def changed(path: Path, change: Callable[[Json], Json | None]) -> Path:
    """Write a copy of the recorded archive in which `change` has been applied to each entity.

    An entity for which `change` returns None is left out.
    """
    found = members()
    name = "entities/entities_00001.jsonl"
    lines = [change(json.loads(line)) for line in found[name].splitlines()]
    found[name] = b"".join(json.dumps(line).encode() + b"\n" for line in lines if line is not None)
    return pack(path, found)


def small(
    path: Path,
    schemas: Mapping[str, Mapping[str, Any]],
    entities: Sequence[tuple[str, int, Mapping[str, Any]]],
    links: Sequence[Mapping[str, Any]] = (),
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write an archive with a few content types, rows and links.

    `schemas` maps each type's uid to its attributes, or to a complete schema.
    """
    found = {
        "schemas/schemas_00001.jsonl": _lines(_schema(uid, given) for uid, given in schemas.items()),
        "entities/entities_00001.jsonl": _lines(
            {"type": uid, "id": row, "data": {"documentId": f"{row:024d}", **TIMESTAMPS, **_published(data)}}
            for uid, row, data in entities
        ),
        "links/links_00001.jsonl": _lines(links),
        "metadata.json": b'{"createdAt": "2024-02-03T00:00:00.000Z", "strapi": {"version": "5.54.0"}}',
    }
    return pack(path, {**found, **{f"assets/uploads/{name}": data for name, data in (files or {}).items()}})


def _published(data: Mapping[str, Any]) -> Json:
    return {"publishedAt": TIMESTAMPS["updatedAt"], **data}


def _schema(uid: str, given: Mapping[str, Any]) -> Json:
    if not isinstance(given, dict):
        return {"uid": uid, "attributes": given}
    if "attributes" in given:
        return {"uid": uid, **given}
    name = uid.rpartition(".")[2]
    info = {"singularName": name, "pluralName": f"{name}s", "displayName": name}
    return {
        "uid": uid,
        "kind": "collectionType",
        "collectionName": name,
        "info": info,
        "attributes": dict(given),
    }


def _lines(rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def link(
    left: tuple[str, int, str], right: tuple[str, int, str | None], pos: int = 1, mirror: int = 1
) -> Json:
    """Return a link from an attribute of one row to another row."""
    return {
        "kind": "relation.basic",
        "relation": "manyToMany",
        "left": {"type": left[0], "ref": left[1], "field": left[2], "pos": pos},
        "right": {"type": right[0], "ref": right[1], "field": right[2], "pos": mirror},
    }
