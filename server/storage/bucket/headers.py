"""What a bucket is told of an object, to answer with it to browsers that it is read by."""

from collections.abc import Mapping

KEPT = "public, max-age=31536000, immutable"  # A key never holds anything else.
# Types that a browser may show. Others, such as SVG and HTML, could run script on the origin of the bucket,
# where no header of ours forbids it. A page can still show a picture that is sent as an attachment.
_SHOWN = ("image/", "audio/", "video/", "font/")
_ALSO = ("text/plain", "application/pdf")
_SCRIPTED = ("image/svg+xml",)


def headers_of(mime: str) -> Mapping[str, str]:
    """The headers of an object of a media type."""
    charset = "; charset=utf-8" if mime.startswith("text/") else ""
    headers = {"Content-Type": mime + charset, "Cache-Control": KEPT}
    if is_shown(mime):
        return headers
    return {**headers, "Content-Disposition": "attachment"}


def is_shown(mime: str) -> bool:
    """Whether a browser may show a file of a media type that anybody has uploaded."""
    return mime in _ALSO or (mime.startswith(_SHOWN) and mime not in _SCRIPTED)
