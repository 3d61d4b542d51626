"""How the names and addresses of users are kept, and when two of them are the same."""

import unicodedata


def plain_name(text: str) -> str:
    """A user name as it is kept and logged in with: without spaces around it, in one spelling."""
    return unicodedata.normalize("NFC", text.strip())


def name_key(text: str) -> str:
    """What two names share that nobody could tell apart: `Ann` and ` ann` are one name."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.strip()).casefold())


def plain_address(text: str) -> str:
    """An e-mail address as it is kept and compared."""
    return text.strip().lower()
