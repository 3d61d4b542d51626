"""The `pagination` parameter: by page or by offset, with the total or without (spec.md 2.5)."""

import re
from collections.abc import Mapping
from typing import Any

from server.config.model import Settings
from server.errors import PaginationError, ValidationError
from server.query.ast import Page
from server.query.booleans import read_boolean

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_WHOLE = re.compile(r"[0-9]{1,9}")
_ALL = 10**9


def read_page(value: Any, settings: Settings) -> Page:
    """The part of a list that is asked for; sizes out of bounds are brought into them, as recorded.

    Raises PaginationError for page and offset together, ValidationError for what is no number.
    """
    value = value if isinstance(value, dict) else {}
    by_page, by_offset = {"page", "pageSize"} & value.keys(), {"start", "limit"} & value.keys()
    if by_page and by_offset:
        raise PaginationError("Cannot use both page & offset pagination in the same query")
    with_count = _with_count(value.get("withCount"))
    default, most = settings.page_size, settings.max_page_size
    if by_offset:
        limit = min(max(_number(value, "limit", default), 1), most)
        return Page(max(_number(value, "start", 0), 0), limit, None, with_count)
    size = min(max(_number(value, "pageSize", default), 1), most)
    page = max(_number(value, "page", 1), 1)
    return Page((page - 1) * size, size, page, with_count)


def refuse_outside(params: Mapping[str, Any]) -> None:
    """Raise PaginationError for `page` or `pageSize` outside of `pagination`, which would be ignored."""
    if params.get("page") is not None or params.get("pageSize") is not None:
        raise PaginationError(
            "Invalid pagination attributes. The page parameters are incorrect "
            "and must be in the pagination object"
        )


def read_part(params: Mapping[str, Any]) -> Page:
    """The part of a list that `start` and `limit` ask for; all of it without them.

    Raises ValidationError for what is no number; -1 is no limit.
    """
    start, limit = _whole(params, "start", 0), _whole(params, "limit", -1)
    return Page(start, _ALL if limit == -1 else limit, None)


def _whole(params: Mapping[str, Any], name: str, default: int) -> int:
    value = params.get(name)
    if value is None or value == "" or value == str(default):
        return default
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise ValidationError(
            f"Invalid {name}: a whole number is expected", {"source": "query", "param": name}
        )
    return int(value)


def _with_count(value: Any) -> bool:
    if value is None or value == "":
        return True
    with_count = read_boolean(value)
    if with_count is None:
        raise ValidationError('Invalid withCount parameter. Expected "t","1","true","false","0","f"')
    return with_count


def _number(value: Mapping[str, Any], key: str, default: int) -> int:
    text = value.get(key)
    if text is None or text == "":
        return default
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValidationError(f"Invalid pagination: {key} must be a whole number")
    return int(text)


def pagination(page: Page, total: int) -> dict[str, int]:
    """`meta.pagination` of an answer."""
    if page.page is None:
        counted = {"total": total} if page.with_count else {}
        return {"start": page.start, "limit": page.limit, **counted}
    counted = {"pageCount": -(-total // page.limit), "total": total} if page.with_count else {}
    return {"page": page.page, "pageSize": page.limit, **counted}
