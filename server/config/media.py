"""Settings for media files (docs/media.md) and image transformations (docs/images.md)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from server.config import values
from server.config.setting import setting
from server.config.transformation import (
    MAX_QUALITY,
    MEDIA_TYPES,
    PARAMETERS,
    PRESET,
    UPLOAD_FORMATS,
    Transformation,
    TransformationError,
    read_transformation,
)
from server.config.values import read_section, scalar, text_or_texts
from server.errors import SetupError
from server.formats.config_file import ConfigFile
from server.formats.text_positions import KeyPath, attribute_path
from server.formats.tree import is_null, resolve_plain_values
from server.schema.spelling import suggestion


@dataclass(frozen=True, slots=True)
class TransformSettings:
    """Settings for image transformations. If `widths` or `qualities` is empty, all values are allowed."""

    enabled: bool = setting(
        True, "flag", "Whether `/uploads/…?width=…` transforms images ([more](images.md))."
    )
    widths: tuple[int, ...] = setting(
        (), "numbers", "The widths to use, in pixels. A request for another width is redirected.", "`any`"
    )
    qualities: tuple[int, ...] = setting((), "numbers", "The allowed values of `quality`.", "`any`")
    formats: tuple[str, ...] = setting(
        tuple(MEDIA_TYPES), "image formats", "The image formats that can be requested.", "all of them"
    )
    presets: Mapping[str, Transformation] = setting(
        {}, "presets", "Named transformations: `NAME: {width: 1600, height: 600}` for `?key=NAME`."
    )
    max_pixels: int = setting(40_000_000, "count", "Images with more pixels are not transformed.")
    max_edge: int = setting(3840, "count", "The maximum width and height of a result, in pixels.")
    sign: bool = setting(
        False, "flag", "Whether transformations need a signature ([more](images.md#signed-urls))."
    )
    cache: int = setting(
        2_000_000_000,
        "size",
        "The maximum size of the cache in `.bifolio/images/`, and in the bucket.",
        "`2 GB`",
    )
    per_minute: int = setting(
        120, "count", "How many transformations that are not cached a client can request per minute."
    )


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """Settings for media files."""

    store: str = setting(
        "",
        "bucket",
        "The bucket that stores media: `s3://BUCKET/PREFIX` ([more](media.md)).",
        "files in `content/uploads/`",
    )
    endpoint: str = setting("", "URL", "The S3 endpoint of the bucket.", "Amazon S3 in the region")
    region: str = setting("us-east-1", "text", "The region of the bucket.")
    public_url: str = setting(
        "", "URL", "The public URL of the bucket's objects, such as `https://media.example.org`."
    )
    serve: str = setting(
        "",
        "serve",
        "How the server sends files from the bucket at `/uploads/…`: `redirect`, `stream` or"
        " `sign` ([more](media.md#how-uploads-is-served)).",
        "`redirect` if `media.public_url` is set, else `stream`",
    )
    cache: int = setting(
        1_000_000_000, "size", "The maximum size of the cache on disk if `media.serve` is `stream`.", "`1 GB`"
    )
    transform: TransformSettings = TransformSettings()
    placeholders: bool = setting(
        False, "flag", "Whether responses contain `placeholder` and `color` ([more](images.md#placeholders))."
    )
    formats: Mapping[str, Transformation] = setting(
        {},
        "named formats",
        "Named transformations that appear in `formats` of each image: `NAME: {width: 480, height: 320}`"
        " ([more](images.md#custom-formats)).",
    )


# --- the bucket -----------------------------------------------------------------------------------

# A bucket name that S3 allows, and a prefix that needs no escaping in URLs.
_STORE = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?")
SERVE_MODES = ("redirect", "stream", "sign")
CREDENTIALS_HINT = (
    "remove the credentials from the URL, "
    "and set the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_NOT_IN_BASE_URL = frozenset(' \\?#"<>')  # A path is appended to these URLs.
URL_HINT = "write a URL such as https://example.org/path"
_SECRET = re.compile(r"access|secret|token|key|password|credential", re.IGNORECASE)


def store(file: ConfigFile, default: str, *key_path: str) -> str:
    written = values.text(file, default, *key_path)
    if written and not _STORE.fullmatch(written):
        fix = CREDENTIALS_HINT if "@" in written else "write s3://BUCKET or s3://BUCKET/PREFIX"
        raise file.refuse(f"{'.'.join(key_path)} must be the URL of a bucket", fix, *key_path)
    return written.rstrip("/")


def web_url(file: ConfigFile, default: str, *key_path: str) -> str:
    """Read an HTTP or HTTPS URL, and return it without its trailing slash.

    Raises SetupError if the value is not such a URL, or if the URL contains credentials or a query.
    """
    written = values.text(file, default, *key_path)
    if not written:
        return written
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as error:
        raise file.refuse(f"{'.'.join(key_path)} must be a URL", URL_HINT, *key_path) from error
    if "@" in parts.netloc:
        raise file.refuse(f"{'.'.join(key_path)} must not contain credentials", CREDENTIALS_HINT, *key_path)
    is_plain = written.isprintable() and not _NOT_IN_BASE_URL.intersection(written)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not is_plain:
        raise file.refuse_value("be a URL without a query string", URL_HINT, *key_path)
    return written.rstrip("/")


def serve(file: ConfigFile, default: str, *key_path: str) -> str:
    written = values.text(file, default, *key_path)
    if written and written not in SERVE_MODES:
        raise file.refuse_value(
            "be one of " + ", ".join(SERVE_MODES), suggestion(written, SERVE_MODES), *key_path
        )
    return written


def fix_of_secret(path: tuple[str, ...]) -> str:
    # site.yaml is committed, so it must not contain credentials.
    return CREDENTIALS_HINT if path[0] == "media" and _SECRET.search(path[-1]) else ""


def check_format_names(settings: MediaSettings, file: ConfigFile) -> Iterator[SetupError]:
    for name in settings.formats:
        if name in settings.transform.presets:
            what = f'"{name}" is in media.formats and in media.transform.presets'
            yield file.refuse_key(what, "remove one of them", "media", "formats", name)


def check_number_lists(settings: TransformSettings, file: ConfigFile) -> Iterator[SetupError]:
    for name, most in (("widths", settings.max_edge), ("qualities", MAX_QUALITY)):
        at, largest = ("media", "transform", name), max(getattr(settings, name), default=0)
        if largest > most:
            i = [resolve_plain_values(item) for item in file.get(*at)].index(largest)
            yield file.refuse_value(f"contain only numbers up to {most}", "remove this number", *at, i)


def check_preset_sizes(settings: MediaSettings, file: ConfigFile) -> Iterator[SetupError]:
    """Yield an error for each preset or named format whose width or height exceeds `max_edge`."""
    presets, most = settings.transform.presets, settings.transform.max_edge
    named: list[tuple[KeyPath, Transformation]] = [
        *((("media", "transform", "presets", name), wanted) for name, wanted in presets.items()),
        *((("media", "formats", name), wanted) for name, wanted in settings.formats.items()),
    ]
    for at, wanted in named:
        for side, pixels in (("width", wanted.pixel_width), ("height", wanted.pixel_height)):
            if pixels is not None and pixels > most:
                key = side if side in file.get(*at) else side[0]  # `w` or `h`
                name = f"{attribute_path(at)}.{key}" + (f" times {wanted.dpr:g}" if wanted.dpr != 1 else "")
                what = f"{name} must not be larger than media.transform.max_edge, {most} (found {pixels})"
                yield file.refuse(what, "write a smaller number, or increase max_edge", *at, key)


def check_storage(store: str, public_url: str, serve: str, file: ConfigFile) -> Iterator[SetupError]:
    """Yield an error for each storage setting that depends on a missing setting."""
    if serve == "redirect" and not public_url:
        what = 'media.serve is "redirect", but media.public_url is missing'
        yield file.refuse(
            what, 'set media.public_url, or set media.serve to "stream" or "sign"', "media", "serve"
        )
    if not store and (public_url or serve):
        key = "public_url" if public_url else "serve"
        yield file.refuse(
            f"media.{key} requires media.store, which is not set",
            "set media.store to s3://BUCKET/PREFIX",
            "media",
            key,
        )


# --- transformations ------------------------------------------------------------------------------

ANY = "any"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # needs no escaping in URLs


def read_numbers(file: ConfigFile, default: tuple[int, ...], *key_path: str) -> tuple[int, ...]:
    """Read a list of positive integers, and return it in ascending order. For `any`, return `default`."""
    written = file.get(*key_path)
    if is_null(written) or (isinstance(written, str) and written == ANY):
        return default
    must, fix = 'be "any" or a list of whole numbers above 0', "write a list such as [320, 640]"
    if not isinstance(written, list) or not written:
        raise file.refuse_value(must, fix, *key_path)
    for i in range(len(written)):
        number = scalar(file, *key_path, i)
        if type(number) is not int or number < 1:
            raise file.refuse_value(must, fix, *key_path, i)
    return tuple(sorted({resolve_plain_values(item) for item in written}))


def read_formats(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    """Read a list of image formats."""
    names = text_or_texts(file, default, *key_path)
    if not names:
        raise file.refuse_value("contain at least one format", "write a list such as [webp, jpg]", *key_path)
    for i, name in enumerate(names):
        if name not in MEDIA_TYPES:
            fix = suggestion(name, MEDIA_TYPES) or "use one or more of " + ", ".join(MEDIA_TYPES)
            raise file.refuse(f'unknown image format "{name}" in {".".join(key_path)}', fix, *key_path, i)
    return names


def read_preset(file: ConfigFile, *key_path: str) -> Transformation:
    """Read a named transformation. Raises SetupError if it is invalid."""
    known = [name for name in PARAMETERS if name != PRESET]
    parameters: dict[str, str] = {}
    for name in read_section(file, *key_path):
        if name not in known:
            fix = suggestion(name, known) or "use one of " + ", ".join(known)
            raise file.refuse_key(f'unknown key "{".".join((*key_path, name))}"', fix, *key_path, name)
        value = scalar(file, *key_path, name)
        if value is not None:
            parameters[name] = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        wanted = read_transformation(parameters, {})
    except TransformationError as error:
        raise _refusal(file, error, *key_path) from error
    if wanted is None:
        raise file.refuse_value(
            "contain at least one parameter", "write parameters such as {width: 1600}", *key_path
        )
    return wanted


def read_named_format(file: ConfigFile, *key_path: str) -> Transformation:
    """Read an entry of `media.formats`. Raises SetupError if its name or its transformation is invalid."""
    name = str(key_path[-1])
    if name in UPLOAD_FORMATS:
        what = f'media.formats can\'t contain "{name}", which is the name of a variant from the upload'
        raise file.refuse_key(what, "choose another name", *key_path)
    if not _NAME.fullmatch(name):
        what = f'"{name}" is not a valid name in media.formats'
        raise file.refuse_key(what, 'use only letters, digits, "-" and "_"', *key_path)
    return read_preset(file, *key_path)


def _refusal(file: ConfigFile, error: TransformationError, *key_path: str) -> SetupError:
    return file.refuse_value(f"be {error.expected}", "", *key_path, error.name)
