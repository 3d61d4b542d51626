"""Client for the server of a tree, with a full-access token and one connection."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bench.real.answers import populate
from bench.real.layout import ContentType

PAGE_SIZE = 100
TIMEOUT_S = 60.0


@dataclass(slots=True)
class Client:
    """Connection to a server, and the token for its requests."""

    connection: http.client.HTTPConnection
    token: str

    def send(self, method: str, path: str, data: Any = None) -> tuple[int, Any]:
        """Send a request. Return the status and the body."""
        headers = {"Authorization": f"Bearer {self.token}"}
        body = None
        if data is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps({"data": data})
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw else None

    def read_all(
        self, content_type: ContentType, locales: list[str], status: str
    ) -> Iterator[dict[str, Any]]:
        """Yield all documents of a type in all locales, with components. Raises RuntimeError."""
        query = populate(content_type) + (f"&status={status}" if content_type.has_drafts else "")
        if content_type.is_single:
            for locale in locales if content_type.is_localized else locales[:1]:
                code, body = self.send("GET", f"{content_type.path}?{query}&locale={quote(locale)}")
                if code != 404:
                    yield self._data(content_type.path, code, body)["data"]
            return
        query += "&locale=*" if content_type.is_localized else ""
        page, pages = 1, 1
        while page <= pages:
            paging = f"pagination[page]={page}&pagination[pageSize]={PAGE_SIZE}"
            code, body = self.send("GET", f"{content_type.path}?{query}&{paging}")
            yield from self._data(content_type.path, code, body)["data"]
            page, pages = page + 1, body["meta"]["pagination"]["pageCount"]

    @staticmethod
    def _data(path: str, code: int, body: Any) -> dict[str, Any]:
        if code != 200:
            raise RuntimeError(f"GET {path}: {code} {body}")
        return dict(body)
