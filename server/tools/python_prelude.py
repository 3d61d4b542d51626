"""Typed client for Bifolio's REST API. It needs only the standard library of Python 3.11 or newer."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast, overload

# --- errors ---------------------------------------------------------------------------------------


class ApiError(Exception):
    """An error response from the API."""

    def __init__(self, status: int, name: str, message: str, details: Mapping[str, Any]) -> None:
        """Create an error from the parts of a response: the HTTP status, and the members of `error`."""
        super().__init__(f"{status} {name}: {message}")
        self.status, self.name, self.message, self.details = status, name, message, details


class NotFoundError(ApiError):
    """The document does not exist, or the caller is not allowed to see it (404)."""


class AccessError(ApiError):
    """The token is missing or invalid, or lacks a permission (401, 403)."""


class ValidationError(ApiError):
    """The request contains an invalid value, attribute or parameter (400)."""


_ERRORS: Mapping[int, type[ApiError]] = {
    400: ValidationError,
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
}


def _error(status: int, body: bytes) -> ApiError:
    kind = _ERRORS.get(status, ApiError)
    try:
        found = json.loads(body)["error"]
        return kind(status, str(found["name"]), str(found["message"]), found.get("details") or {})
    except (ValueError, LookupError, TypeError, AttributeError):  # The response is not from the API.
        return kind(status, "HTTPError", body[:200].decode("utf-8", "replace"), {})


# --- requests -------------------------------------------------------------------------------------

Status = Literal["draft", "published"]


@dataclass(frozen=True)
class Connection:
    """A server's URL, the API token that is sent with each request, and the timeout."""

    url: str
    token: str | None
    timeout_s: float

    def send(self, method: str, path: str, query: Mapping[str, Any], body: Any = None) -> Any:
        """Send a request and return the parsed response.

        Raises ApiError for an error response, or OSError if the server can't be reached.
        """
        url = f"{self.url.rstrip('/')}/api/{path}"
        parameters = [pair for name, value in query.items() for pair in _pairs(name, value)]
        if parameters:
            url += "?" + urllib.parse.urlencode(parameters)
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body, default=_written).encode(), "application/json"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise _error(error.code, error.read()) from None
        return json.loads(text) if text else None


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield query parameters such as `filters[title][$eq]=Fog`. Values that are None are omitted."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _pairs(f"{name}[{key}]", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for i, inner in enumerate(value):
            yield from _pairs(f"{name}[{i}]", inner)
    elif value is not None:
        yield name, str(value).lower() if isinstance(value, bool) else str(_written(value))


def _written(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


# --- collections and single types -----------------------------------------------------------------

_Whole = TypeVar("_Whole")
_Draft = TypeVar("_Draft")
_Input = TypeVar("_Input")
_Changes = TypeVar("_Changes")
_Filters = TypeVar("_Filters")
_Field = TypeVar("_Field", bound=str)
_Link = TypeVar("_Link", bound=str)
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Page(Generic[_Item]):
    """One page of a list. `total` is the number of documents on all pages."""

    items: Sequence[_Item]
    page: int
    page_size: int
    page_count: int
    total: int

    def __iter__(self) -> Iterator[_Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Collection(Generic[_Whole, _Draft, _Input, _Changes, _Filters, _Field, _Link]):
    """The documents of a collection type.

    If `fields` or `status="draft"` is passed, any attribute of a returned document can be missing or None.
    All methods raise ApiError if the server rejects the request.
    """

    connection: Connection
    name: str

    @overload
    def find(
        self,
        *,
        filters: _Filters | None = None,
        sort: str | Sequence[str] | None = None,
        fields: None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
        page: int = 1,
        page_size: int | None = None,
    ) -> Page[_Whole]: ...
    @overload
    def find(
        self,
        *,
        filters: _Filters | None = None,
        sort: str | Sequence[str] | None = None,
        fields: Sequence[_Field] | None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status = "published",
        page: int = 1,
        page_size: int | None = None,
    ) -> Page[_Draft]: ...
    def find(
        self,
        *,
        filters: Any = None,
        sort: Any = None,
        fields: Any = None,
        populate: Any = None,
        locale: str | None = None,
        status: Status = "published",
        page: int = 1,
        page_size: int | None = None,
    ) -> Any:
        """Return one page of the documents that match the filters."""
        query = _query(fields, populate, locale, status) | {"filters": filters, "sort": sort}
        # Some sites reject `populate` together with pagination, so the default is not sent.
        query["pagination"] = {"page": page if page != 1 else None, "pageSize": page_size}
        found = self.connection.send("GET", self.name, query)
        counts = found["meta"]["pagination"]
        return Page[Any](
            found["data"], counts["page"], counts["pageSize"], counts["pageCount"], counts["total"]
        )

    @overload
    def find_all(
        self,
        *,
        filters: _Filters | None = None,
        sort: str | Sequence[str] | None = None,
        fields: None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
        page_size: int | None = None,
    ) -> Iterator[_Whole]: ...
    @overload
    def find_all(
        self,
        *,
        filters: _Filters | None = None,
        sort: str | Sequence[str] | None = None,
        fields: Sequence[_Field] | None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status = "published",
        page_size: int | None = None,
    ) -> Iterator[_Draft]: ...
    def find_all(
        self,
        *,
        filters: Any = None,
        sort: Any = None,
        fields: Any = None,
        populate: Any = None,
        locale: str | None = None,
        status: Status = "published",
        page_size: int | None = None,
    ) -> Iterator[Any]:
        """Iterate over all documents that match the filters, page by page."""
        page, last = 1, 1
        while page <= last:
            found: Page[Any] = self.find(
                filters=filters,
                sort=sort,
                fields=fields,
                populate=populate,
                locale=locale,
                status=status,
                page=page,
                page_size=page_size,
            )
            yield from found
            page, last = page + 1, found.page_count

    @overload
    def find_one(
        self,
        document_id: str,
        *,
        fields: None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
    ) -> _Whole: ...
    @overload
    def find_one(
        self,
        document_id: str,
        *,
        fields: Sequence[_Field] | None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status = "published",
    ) -> _Draft: ...
    def find_one(
        self,
        document_id: str,
        *,
        fields: Any = None,
        populate: Any = None,
        locale: str | None = None,
        status: Status = "published",
    ) -> Any:
        """Return one document. Raises NotFoundError if it does not exist."""
        query = _query(fields, populate, locale, status)
        return self.connection.send("GET", _path(self.name, document_id), query)["data"]

    def create(
        self, data: _Input, *, populate: "Populate[_Link] | None" = None, locale: str | None = None
    ) -> _Whole:
        """Create a document and return it."""
        query = _query(None, populate, locale, "published")
        return cast(_Whole, self.connection.send("POST", self.name, query, {"data": data})["data"])

    def create_draft(
        self, data: _Changes, *, populate: "Populate[_Link] | None" = None, locale: str | None = None
    ) -> _Draft:
        """Create a draft and return it. Required attributes can be missing."""
        query = _query(None, populate, locale, "draft")
        return cast(_Draft, self.connection.send("POST", self.name, query, {"data": data})["data"])

    @overload
    def update(
        self,
        document_id: str,
        data: _Changes,
        *,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
    ) -> _Whole: ...
    @overload
    def update(
        self,
        document_id: str,
        data: _Changes,
        *,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status,
    ) -> _Draft: ...
    def update(
        self,
        document_id: str,
        data: Any,
        *,
        populate: Any = None,
        locale: str | None = None,
        status: Status = "published",
    ) -> Any:
        """Change the given attributes of a document, and return the document."""
        query = _query(None, populate, locale, status)
        return self.connection.send("PUT", _path(self.name, document_id), query, {"data": data})["data"]

    def delete(self, document_id: str, *, locale: str | None = None) -> None:
        """Delete a document."""
        self.connection.send("DELETE", _path(self.name, document_id), {"locale": locale})


@dataclass(frozen=True)
class Single(Generic[_Whole, _Draft, _Changes, _Field, _Link]):
    """The document of a single type.

    All methods raise ApiError if the server rejects the request.
    """

    connection: Connection
    name: str

    @overload
    def find(
        self,
        *,
        fields: None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
    ) -> _Whole: ...
    @overload
    def find(
        self,
        *,
        fields: Sequence[_Field] | None = None,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status = "published",
    ) -> _Draft: ...
    def find(
        self,
        *,
        fields: Any = None,
        populate: Any = None,
        locale: str | None = None,
        status: Status = "published",
    ) -> Any:
        """Return the document. Raises NotFoundError if it does not exist."""
        return self.connection.send("GET", self.name, _query(fields, populate, locale, status))["data"]

    @overload
    def update(
        self,
        data: _Changes,
        *,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Literal["published"] = "published",
    ) -> _Whole: ...
    @overload
    def update(
        self,
        data: _Changes,
        *,
        populate: "Populate[_Link] | None" = None,
        locale: str | None = None,
        status: Status,
    ) -> _Draft: ...
    def update(
        self, data: Any, *, populate: Any = None, locale: str | None = None, status: Status = "published"
    ) -> Any:
        """Change the given attributes of the document, or create the document. Return the document."""
        query = _query(None, populate, locale, status)
        return self.connection.send("PUT", self.name, query, {"data": data})["data"]

    def delete(self, *, locale: str | None = None) -> None:
        """Delete the document."""
        self.connection.send("DELETE", self.name, {"locale": locale})


def _query(fields: Any, populate: Any, locale: str | None, status: Status) -> dict[str, Any]:
    draft = {"status": status} if status == "draft" else {}
    return {"fields": fields, "populate": populate, "locale": locale, **draft}


def _path(name: str, document_id: str) -> str:
    return f"{name}/{urllib.parse.quote(document_id, safe='')}"


# The value of `populate`: `"*"`, names of links, or a mapping from names to `True` or to a query.
Populate = Literal["*"] | Sequence[_Link] | Mapping[_Link, bool | Mapping[str, Any]]

# --- references in request bodies -----------------------------------------------------------------

# A document: its documentId or id, or a mapping such as `{"documentId": "fog"}`. A relation to several types
# needs a mapping with `__type`.
Reference = str | int | Mapping[str, object]


class RelationChanges(TypedDict, total=False):
    """Changes to the targets of a relation. `set` replaces all targets."""

    set: Reference | Sequence[Reference]
    connect: Reference | Sequence[Reference]
    disconnect: Reference | Sequence[Reference]


RelationInput = Reference | Sequence[Reference] | RelationChanges | None
# A media file: its id or documentId, or a mapping with one of them.
MediaInput = int | str | Mapping[str, object]
