"""Dimensions of WebP and AVIF files.

Pillow is not used for them, because it would allocate memory for all frames.
"""

from collections.abc import Iterator, Mapping
from os import SEEK_CUR, SEEK_END
from typing import IO

_MAX_BOX_BYTES = 256 * 1024  # of the box that describes an AVIF image. A grid of 1000 tiles takes 60 KB.
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_EXIF_FLAG, _XMP_FLAG = 0x08, 0x04  # in a VP8X chunk
_LOSSLESS_SIGNATURE, _KEY_FRAME_SIGNATURE = 0x2F, b"\x9d\x01\x2a"
_SIDE_LIMIT_PIXELS = 2**14  # Width and height of a WebP image without VP8X have 14 bits each.
_METADATA = {b"EXIF": ("exif", _EXIF_FLAG), b"XMP ": ("xmp", _XMP_FLAG)}  # Pillow's names, and flags


def is_webp(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def is_iso_bmff(head: bytes) -> bool:
    """Return True if a file that begins with `head` has the ISO base media format, as AVIF files do."""
    return head[4:8] == b"ftyp"


def webp_header(file: IO[bytes]) -> tuple[tuple[int, int], Mapping[str, bytes]]:
    """Return a WebP image's size before its EXIF rotation, and its metadata.

    Raises ValueError if the file is invalid.
    """
    head, metadata = file.read(12), dict[str, bytes]()
    end = file.seek(0, SEEK_END)
    if not is_webp(head) or _little(head[4:8]) + 8 > end:
        raise ValueError("not a whole WebP file")
    file.seek(12)
    kind, length = _chunk(file)
    start = file.read(10)
    match kind:
        case b"VP8X":
            size = 1 + _little(start[4:7]), 1 + _little(start[7:10])
            file.seek(length + length % 2 - len(start), SEEK_CUR)
            metadata = _read_metadata(file, start[0], end)
        case b"VP8L" if start[0] == _LOSSLESS_SIGNATURE:
            sides = _little(start[1:5])
            size = 1 + sides % _SIDE_LIMIT_PIXELS, 1 + sides // _SIDE_LIMIT_PIXELS % _SIDE_LIMIT_PIXELS
        case b"VP8 " if start[3:6] == _KEY_FRAME_SIGNATURE:
            size = _little(start[6:8]) % _SIDE_LIMIT_PIXELS, _little(start[8:10]) % _SIDE_LIMIT_PIXELS
        case _:
            raise ValueError("not a WebP image")
    return size, metadata


def _read_metadata(file: IO[bytes], flags: int, end: int) -> dict[str, bytes]:
    found = dict[str, bytes]()
    wanted = {kind: name for kind, (name, flag) in _METADATA.items() if flags & flag}
    while wanted and file.tell() + 8 <= end:
        kind, length = _chunk(file)
        skipped = length + length % 2
        if name := wanted.pop(kind, ""):
            found[name] = file.read(length)
            skipped -= length
        file.seek(skipped, SEEK_CUR)
    return found


def _chunk(file: IO[bytes]) -> tuple[bytes, int]:
    head = file.read(8)
    return head[:4], _little(head[4:])


def avif_size(file: IO[bytes]) -> tuple[int, int]:
    """Return an AVIF image's size after its rotation. Raises ValueError if the file is invalid."""
    sides = None
    for kind, length in _boxes_of_file(file):
        if kind == b"ftyp":
            brands = _read_box(file, length)
            if _AVIF_BRANDS.isdisjoint(brands[at : at + 4] for at in range(0, len(brands), 4)):
                break
        elif kind == b"meta":
            sides = _primary_size(_read_box(file, length)[4:])
        elif kind == b"moov":  # an animation without a still image
            sides = _track_size(file.read(length))
        if sides:
            return sides
    raise ValueError("not an AVIF image")


def _boxes_of_file(file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the type of each box, and the length of its data in bytes.

    Each time, the file is positioned at the start of this data.
    """
    while len(head := file.read(8)) == 8:
        length, start = _big(head[:4]), file.tell()
        if length == 1:
            length, start = _big(file.read(8)) - 8, start + 8
        if length == 0:
            length = 8 + file.seek(0, SEEK_END) - start
            file.seek(start)
        if length < 8:
            raise ValueError("invalid box")
        yield head[4:], length - 8
        file.seek(start + length - 8)


def _read_box(file: IO[bytes], length: int) -> bytes:
    if length > _MAX_BOX_BYTES:
        raise ValueError("the box is too long")
    return file.read(length)


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        length = _big(data[at : at + 4])
        if length < 8:
            return
        yield data[at + 4 : at + 8], data[at + 8 : at + length]
        at += length


def _primary_size(meta: bytes) -> tuple[int, int] | None:
    boxes = dict(_boxes(meta))
    properties = list(_boxes(boxes.get(b"iprp", b"")))
    shared = next((list(_boxes(data)) for kind, data in properties if kind == b"ipco"), [])
    item, size, is_turned = _big(boxes.get(b"pitm", b"")[4:]), None, False
    for kind, data in properties:
        for index in _indexes(data, item) if kind == b"ipma" else ():
            kind_of_property, value = shared[index - 1] if 0 < index <= len(shared) else (b"", b"")
            if kind_of_property == b"ispe":
                size = _big(value[4:8]), _big(value[8:12])
            elif kind_of_property == b"irot":
                is_turned = value[0] % 2 == 1  # by 90 or 270 degrees
    return size[::-1] if size and is_turned else size


def _indexes(data: bytes, item: int) -> Iterator[int]:
    """Yield the indexes of the properties that an `ipma` box assigns to an item."""
    id_bytes, index_bytes = (4 if data[0] else 2), (2 if data[3] & 1 else 1)
    at = 8
    while at + id_bytes < len(data):
        found, count = _big(data[at : at + id_bytes]), data[at + id_bytes]
        at += id_bytes + 1
        if found == item:
            for start in range(at, at + count * index_bytes, index_bytes):
                # The first bit means that the property is essential.
                yield _big(data[start : start + index_bytes]) % 2 ** (8 * index_bytes - 1)
            return
        at += count * index_bytes


def _track_size(moov: bytes) -> tuple[int, int] | None:
    for kind, track in _boxes(moov):
        header = dict(_boxes(track)).get(b"tkhd", b"") if kind == b"trak" else b""
        width, height = _big(header[-8:-4]) >> 16, _big(header[-4:]) >> 16
        if width and height:
            return width, height
    return None


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")
