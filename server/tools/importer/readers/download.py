"""HTTP client for a running Strapi installation."""

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from server.errors import SetupError
from server.formats.json import read_json
from server.formats.tree import SyntaxProblem

# advice if the token is missing or rejected
FULL_ACCESS = "create a full-access API token in Strapi (Settings, API Tokens) and pass it with --token"
TIMEOUT_S = 60.0
MAX_ATTEMPTS = 4
_MIN_BACKOFF_S = 0.5
_RETRIED_STATUSES = (429, 502, 503, 504)
_CHUNK_BYTES = 1 << 20
_MISSING: Any = object()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # Do not follow redirects, which could send the token to a different host.
    def redirect_request(self, *_: Any, **__: Any) -> None: ...


class Client:
    """Client for the API of a Strapi installation at the URL `base`."""

    def __init__(self, base: str, token: str) -> None:
        if urlsplit(base).scheme not in ("http", "https"):
            raise SetupError(base, None, "is not a URL", "use a URL such as https://…")
        self.base, self._token = base, token
        self._opener = urllib.request.build_opener(_NoRedirect)

    def get_json(self, path: str, default: Any = _MISSING) -> Any:
        """Send a GET request and return the JSON response. Raises SetupError if the request fails.

        If `default` is given, it is returned for a 404 response.
        """
        url = self.base + path
        try:
            with self._open(url, send_token=True) as response:
                return read_json(response.read().decode())
        except urllib.error.HTTPError as error:
            if error.code == 404 and default is not _MISSING:
                return default
            raise _refusal(url, error) from error
        except (SyntaxProblem, UnicodeDecodeError) as error:
            raise SetupError(url, None, "did not respond with JSON", "check the URL") from error
        except (OSError, http.client.HTTPException) as error:
            raise SetupError(url, None, f"the download failed: {error}", _RETRY_HINT) from error

    def download(self, url: str, target: Path, *, send_token: bool) -> None:
        """Download a file to `target`. Raises SetupError if the download fails.

        Set `send_token` only for URLs of the Strapi installation itself.
        """
        part = target.with_suffix(".part")
        try:
            with self._open(url, send_token=send_token) as response, part.open("wb") as file:
                expected, got = response.headers.get("Content-Length"), 0
                while block := response.read(_CHUNK_BYTES):
                    got += file.write(block)
        except urllib.error.HTTPError as error:
            raise _refusal(url, error) from error
        except (OSError, http.client.HTTPException) as error:
            raise SetupError(url, None, f"can't be fetched: {error}", _RETRY_HINT) from error
        if expected is not None and got != int(expected):
            raise SetupError(
                url, None, f"the download stopped after {got:,} of {int(expected):,} bytes", _RETRY_HINT
            )
        part.replace(target)

    def _open(self, url: str, *, send_token: bool) -> Any:
        """Send a request, with retries.

        Raises HTTPError if the server returns an error, or SetupError if it does not respond.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if send_token and self._token else {}
        request = urllib.request.Request(url, headers=headers)
        for left in reversed(range(MAX_ATTEMPTS)):
            try:
                return self._opener.open(request, timeout=TIMEOUT_S)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _RETRIED_STATUSES or not left:
                    raise
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    reason = getattr(error, "reason", None) or error
                    raise SetupError(url, None, f"did not respond: {reason}", _RETRY_HINT) from error
            time.sleep(_MIN_BACKOFF_S * 2 ** (MAX_ATTEMPTS - 1 - left))
        raise AssertionError("unreachable")


_RETRY_HINT = "nothing was imported; run the command again"
_WHY = {
    401: ("rejected the token", FULL_ACCESS),
    403: ("does not allow the token to read this", FULL_ACCESS),
    404: ("was not found", "use the URL that contains Strapi's /api"),
}


def _refusal(url: str, error: urllib.error.HTTPError) -> SetupError:
    if error.code in range(300, 400):
        where = error.headers.get("Location", "elsewhere")
        return SetupError(url, None, f"redirects to {where}", "use the target URL instead")
    what, fix = _WHY.get(error.code, (f"responded with status {error.code}", _RETRY_HINT))
    return SetupError(url, None, what, fix)
