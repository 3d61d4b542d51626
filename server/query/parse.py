"""Parser for the query parameters of read requests."""

import re
from collections.abc import Mapping
from typing import Any

from server.config.model import ResponseFormat, Settings
from server.config.values import LOCALE
from server.errors import NotAllowedBySettingError, PaginationError, ValidationError, invalid_key
from server.query import qs
from server.query.ast import Page, Query, Selection
from server.query.filters import read_filters
from server.query.populate import read_fields, read_populate
from server.query.qs import DeferredErrors, read_boolean
from server.query.sorting import read_sort
from server.schema.model import Schema, Type

# --- pagination -----------------------------------------------------------------------------------

PAGE_PARAMETERS = frozenset({"page", "pageSize"})
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_LIMIT = 10**9


def read_page_parameters(params: Mapping[str, Any], settings: Settings) -> Page:
    """Parse the top-level `page` and `pageSize`. Raises ValidationError if they are not whole numbers."""
    return read_page({name: params[name] for name in PAGE_PARAMETERS & params.keys()}, settings)


def read_page(value: Any, settings: Settings) -> Page:
    """Parse `pagination`. As in Strapi, a page size above the maximum is reduced to the maximum.

    Raises ValidationError if a value is invalid, and PaginationError if both a page and an offset are given.
    """
    value = value if isinstance(value, dict) else {}
    by_page, by_offset = PAGE_PARAMETERS & value.keys(), {"start", "limit"} & value.keys()
    if by_page and by_offset:
        raise PaginationError("Cannot use both page & offset pagination in the same query")
    with_count = _with_count(value.get("withCount"))
    default, limit_max = settings.api.page_size.default, settings.api.page_size.max
    if by_offset:
        limit = min(max(_number(value, "limit", default), 1), limit_max)
        return Page(max(_number(value, "start", 0), 0), limit, None, with_count)
    size = min(max(_number(value, "pageSize", default), 1), limit_max)
    page = max(_number(value, "page", 1), 1)
    return Page((page - 1) * size, size, page, with_count)


def refuse_top_level_pages(params: Mapping[str, Any]) -> None:
    if params.get("page") is not None or params.get("pageSize") is not None:
        raise PaginationError(
            "Invalid pagination attributes. The page parameters are incorrect "
            "and must be in the pagination object"
        )


def refuse_unknown_parameters(params: Mapping[str, Any]) -> None:
    for name in params:
        if name not in PARAMETERS:
            raise invalid_key(name, None, name)


def read_offset_page(params: Mapping[str, Any]) -> Page:
    """Parse the top-level `start` and `limit` (-1: no limit).

    Raises ValidationError if they are not whole numbers.
    """
    start, limit = _whole(params, "start", 0), _whole(params, "limit", -1)
    return Page(start, _MAX_LIMIT if limit == -1 else limit, None)


def _whole(params: Mapping[str, Any], name: str, default: int) -> int:
    value = params.get(name)
    if value is None or value == "" or value == str(default):
        return default
    if not isinstance(value, str) or not _WHOLE_NUMBER.fullmatch(value):
        raise ValidationError(f"Invalid {name}: expected a whole number", {"source": "query", "param": name})
    return int(value)


def _with_count(value: Any) -> bool:
    if value is None:
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
    if page.page is None:
        counted = {"total": total} if page.with_count else {}
        return {"start": page.start, "limit": page.limit, **counted}
    counted = {"pageCount": -(-total // page.limit), "total": total} if page.with_count else {}
    return {"page": page.page, "pageSize": page.limit, **counted}


# --- parse ----------------------------------------------------------------------------------------

STATUSES = ("published", "draft")
# Parameters of the content API: those that Strapi allows with `strictParams`, and Bifolio's own.
PARAMETERS = frozenset(
    (
        "filters",
        "sort",
        "fields",
        "populate",
        "pagination",
        "locale",
        "status",
        "publicationFilter",
        "hasPublishedVersion",
        "_q",
        "page",
        "pageSize",
        "start",
        "limit",
        "count",
        "ordering",
        "publicationStatus",
        "at",
        "branch",
        "dryRun",
    )
)
# Values of `publicationFilter`, with descriptions for the docs.
PUBLICATION_FILTERS: Mapping[str, str] = {
    "never-published": "has no published version in this locale",
    "has-published-version": "has a published version in this locale",
    "modified": "has a draft that differs from the published version",
    "unmodified": "has a draft that equals the published version",
    "never-published-document": "has no published version in any locale",
    "has-published-version-document": "has a published version in some locale",
    "published-without-draft": "is published and has no draft "
    "(none, because each published document counts as having a draft)",
    "published-with-draft": "is published and has a draft (every published document)",
}


def read_query(
    schema: Schema, settings: Settings, type_: Type, params: Mapping[str, Any], *, many: bool
) -> Query:
    """Parse a request for one document or, if `many` is set, for a list of documents.

    Raises ValidationError if a parameter is invalid. Raises NotAllowedBySettingError if a setting forbids
    combining `populate` with `pagination`.
    """
    if settings.api.strict_params:
        refuse_unknown_parameters(params)
    publication = _publication(params.get("publicationFilter"))
    has_published = _publication_filter_of(params.get("hasPublishedVersion"))
    selection = _selection(schema, type_, params, settings, many=many)
    combined = settings.api.populate_with_pagination or type_.singular in settings.api.populate
    if many and selection.populate and _is_paged(params) and not combined:
        raise NotAllowedBySettingError(
            '"populate" and "pagination" can\'t be combined in one request; '
            "set api.populate_with_pagination: allow in site.yaml to allow it"
        )
    return Query(
        type_,
        selection,
        read_page(params.get("pagination"), settings) if many else Page(0, 1, 1),
        _locales_to_search(params, type_, settings, many=many),
        _requested_status(params, settings) == "draft",
        frozenset(),
        _text(params.get("_q"), "_q"),
        publication or has_published,
        _with_status(params.get("publicationStatus")),
    )


def _selection(
    schema: Schema, type_: Type, params: Mapping[str, Any], settings: Settings, *, many: bool
) -> Selection:
    # If several parameters are invalid, the error is about the first one in this order.
    parsed: dict[str, Any] = {}
    mistakes = DeferredErrors()
    with mistakes:
        if many:
            refuse_top_level_pages(params)
    with mistakes:
        parsed["filter"] = read_filters(schema, type_, params.get("filters"))
    with mistakes:
        parsed["sort"] = read_sort(schema, type_, params.get("sort"))
    with mistakes:
        parsed["fields"] = read_fields(type_, params.get("fields"))
    with mistakes:
        parsed["populate"] = read_populate(
            schema, type_, params.get("populate"), is_lenient=settings.api.format is ResponseFormat.V4
        )
    mistakes.raise_first()
    return Selection(**parsed)


def with_default_populate(params: Mapping[str, Any], type_: Type, settings: Settings) -> Mapping[str, Any]:
    if "populate" in params or type_.singular not in settings.api.populate:
        return params
    return {**params, "populate": settings.api.populate[type_.singular]}


def _is_paged(params: Mapping[str, Any]) -> bool:
    return isinstance(params.get("pagination"), dict) and bool(params["pagination"])


def read_locale(value: Any, settings: Settings) -> str:
    """Parse a locale, or `*` for all locales. Raises ValidationError if it is not a locale code."""
    return "*" if value == "*" else _read_locale_code(value, settings)


def locales_to_delete(value: Any, type_: Type, settings: Settings) -> tuple[str, ...]:
    """Parse the locales to delete (`*` for all). Raises ValidationError if one is not a locale code."""
    if not type_.localized:
        return (settings.locales.default,)
    named = [read_locale(item, settings) for item in (qs.items(value) if qs.is_list(value) else [value])]
    return settings.locales.available if "*" in named else tuple(dict.fromkeys(named))


def _read_locale_code(value: Any, settings: Settings) -> str:
    """Parse a locale code. As in Strapi, it does not have to be a locale of the site."""
    if value is None or value == "":
        return settings.locales.default
    if not isinstance(value, str) or not LOCALE.fullmatch(value):
        raise ValidationError("Invalid locale", {"source": "query", "param": "locale"})
    return value


def _locales_to_search(
    params: Mapping[str, Any], type_: Type, settings: Settings, *, many: bool
) -> tuple[str, ...] | None:
    """Return the locales in which to search. If there is a filter on `locale`, return all locales."""
    filters, value = params.get("filters"), params.get("locale")
    if type_.localized and isinstance(filters, dict) and "locale" in filters:
        return tuple(settings.locales.available)
    if qs.is_list(value):
        if not many:
            named = ",".join(map(str, qs.items(value)))
            raise ValidationError(f"Invalid locale param {named} provided. Document locales must be strings.")
        return tuple(dict.fromkeys(str(item) for item in qs.items(value)))
    if value == "*":
        return tuple(settings.locales.available) if many else ()
    return (_read_locale_code(value, settings),)


def locale_to_write(value: Any, type_: Type, settings: Settings) -> str:
    """Return the locale to write, or the default locale if `value` is missing.

    Raises ValidationError if the value is not a locale of the site.
    """
    if not type_.localized or value is None or value == "":
        return settings.locales.default
    if value not in settings.locales.available:
        expected = ", ".join(settings.locales.available)
        details = {"source": "query", "param": "locale"}
        raise ValidationError(f"Invalid locale. Expected one of: {expected}", details)
    return str(value)


def read_status(value: Any) -> str:
    """Parse a status (default: `published`). Raises ValidationError for any other word."""
    if value is None or value == "":
        return "published"
    if value not in STATUSES:
        details = {"source": "query", "param": "status"}
        raise ValidationError(f"Invalid status. Expected one of: {', '.join(STATUSES)}", details)
    return str(value)


def _requested_status(params: Mapping[str, Any], settings: Settings) -> str:
    is_v4_preview = (
        settings.api.format is ResponseFormat.V4
        and "status" not in params
        and params.get("publicationState") == "preview"
    )
    return "draft" if is_v4_preview else read_status(params.get("status"))


def _publication(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in PUBLICATION_FILTERS:
        raise ValidationError(
            f"Invalid value for 'publicationFilter'. Expected one of: {', '.join(PUBLICATION_FILTERS)}.",
            {"source": "query", "param": "publicationFilter"},
        )
    return value


def _publication_filter_of(value: Any) -> str | None:
    """Convert the deprecated parameter `hasPublishedVersion` to a `publicationFilter`."""
    if value is None:
        return None
    if value not in ("true", "false"):
        raise ValidationError(
            "Invalid value for 'hasPublishedVersion'. Expected boolean or 'true'/'false' string."
        )
    return "has-published-version-document" if value == "true" else "never-published-document"


def _with_status(value: Any) -> bool:
    with_status = False if value is None or value == "" else read_boolean(value)
    if with_status is None:
        details = {"source": "query", "param": "publicationStatus"}
        raise ValidationError('Invalid publicationStatus: expected "true" or "false"', details)
    return with_status


def _text(value: Any, param: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValidationError(
            f"Invalid {param}: expected a single value", {"source": "query", "param": param}
        )
    return value
