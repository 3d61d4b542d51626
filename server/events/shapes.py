"""What the files of content types say, as digests, and the events that a difference comes to."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b

from server.events.model import Event
from server.schema.model import UPLOAD, Schema


def shapes_of(schema: Schema) -> dict[str, str]:
    """What the files of content types and components say, by uid, as digests."""
    types = ((uid, type_) for uid, type_ in schema.types.items() if type_.path and uid != UPLOAD)
    return {uid: digest(repr(type_.raw)).hex() for uid, type_ in types}


def schema_events(before: Mapping[str, str], after: Mapping[str, str], schema: Schema) -> Iterator[Event]:
    """The events of the types whose shapes differ, where `after` are those of a schema."""
    for uid in sorted(before.keys() | after.keys()):
        if before.get(uid) != after.get(uid):
            type_ = schema.types.get(uid)
            yield Event("schema.update", uid, paths=(type_.path,) if type_ else ())


def digest(text: str) -> bytes:
    """16 bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
