"""Choice between Markdown and JSON responses, based on the Accept header (RFC 9110, section 12.5.1)."""

import re
from functools import lru_cache

MARKDOWN = "text/markdown"
MARKDOWN_TYPE = f"{MARKDOWN}; charset=utf-8"
MAX_ACCEPT_CHARS = 1000  # Longer headers are truncated. Browsers send about 140 characters.
_JSON = "application/json"
# A media range, its parameters, and its quality, which RFC 9110 limits to three digits.
_QUALITY = re.compile(r"[01](?:\.\d{0,3})?")


# The cache saves 20 µs of a read by a client that names Markdown among other types.
@lru_cache(maxsize=512)
def prefers_markdown(accept: str) -> bool:
    """Return whether an Accept header prefers Markdown to JSON.

    A wildcard such as `*/*` counts only for JSON. If Markdown and JSON have the same quality value, Markdown
    wins unless the header names `application/json`.
    """
    accept = accept[:MAX_ACCEPT_CHARS].lower()
    if MARKDOWN not in accept:
        return False
    qualities = dict(_ranges(accept))
    markdown = qualities.get(MARKDOWN, 0)
    json = next((qualities[name] for name in (_JSON, "application/*", "*/*") if name in qualities), 0)
    return markdown > json or (markdown == json > 0 and _JSON not in qualities)


def _ranges(accept: str) -> list[tuple[str, float]]:
    found = []
    for part in accept.split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        quality = next((text[2:].strip() for text in parameters if text.startswith("q=")), "1")
        found.append((name, float(quality) if _QUALITY.fullmatch(quality) else 0.0))
    return found
