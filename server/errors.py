"""The exceptions that Bifolio raises.

    BifolioError
    ├── SetupError               the site's files are invalid: path, line, message, fix
    ├── NeedsThreadPool          another thread must handle the request
    ├── ClientGone               the client has disconnected
    ├── CommitError              a write can't be committed yet
    ├── UnreadableRecordError    a worker can't apply a record from the change log, and rescans the files
    └── ApiError                 becomes an HTTP error response
        ├── ValidationError      400
        │   ├── KeyNameError     400  unknown or forbidden query key
        │   ├── NotAllowedBySettingError 400  a setting in site.yaml forbids the request
        │   ├── PaginationError  400
        │   └── LimitError       400  the request costs too much
        ├── BadRequestError      400
        ├── ApplicationError     400  the account is blocked, for example
        │   └── DuplicateUserError       400  another user has the same name or e-mail address
        ├── UnauthorizedError    401
        ├── ForbiddenError       403
        ├── NotFoundError        404
        ├── MethodNotAllowedError 405
        ├── RequestTimeoutError  408  the body did not arrive in time
        ├── ConflictError        409
        │   ├── RemoteMergeError 409  commits from the git remote can't be applied without data loss
        │   ├── NotServedError   409  uncommitted edits prevent a pushed write from being served
        │   ├── BranchCheckedOutError  409  the branch is checked out in a working tree
        │   └── ConcurrentChangeError   409  another write changed the same values
        ├── MergeConflictError        409  two branches changed the same values
        ├── GoneError            410  the resource has been deleted or has expired
        ├── PreconditionError    412  If-Match does not name the current version
        │   ├── UnknownVersionError 412  the version in If-Match is unknown, so the change can't be merged
        │   └── OverlapError     412  the change overlaps with changes made since that version
        ├── PayloadTooLargeError 413
        ├── ContentCodingError   415  the body is compressed
        ├── RateLimitError       429
        ├── StorageError         507  the disk is full, or file permissions forbid the write
        │   ├── LogUnavailableError 503  the database of the event log does not respond
        │   └── BucketError      503  the media bucket does not respond, or denies access
        │       └── MissingObjectError 502  a file is missing or damaged in the bucket
        ├── RemoteError          503  the git remote can't be used
        │   ├── RemoteTimeoutError  503  the remote does not respond in time
        │   │   └── UnconfirmedPushError 503  the remote did not confirm a push
        │   ├── RemoteAccessError 503  the remote denies access
        │   ├── RemoteRefusedError 409  a hook or rule of the remote rejected the commit
        │   └── RemoteMovedError 503  the remote's branch is not at the expected commit
        ├── UnavailableError     503  the accounts can't be read
        └── BusyError            503  another write is taking too long, or there are too many requests
            ├── QueueError        503  the queue is full, or the request waited too long
            ├── CommitNotServedError      503  this server does not serve the required commit yet
            ├── GitBusyError     503  a git command is running
            └── GitError         503  a git command failed
                └── GitTimeoutError 503  a git command takes too long

`server.api.error_response` turns every ApiError into an HTTP response. Commands print every SetupError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# Names of the errors that Flask raises, by status.
HTTP_NAMES: Mapping[int, str] = {
    400: "BadRequestError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    413: "PayloadTooLargeError",
    415: "UnsupportedMediaTypeError",
    416: "RangeNotSatisfiableError",
    429: "RateLimitError",
}


# The key of `details` that contains the probable correction of a name in the request.
SUGGESTION = "suggestion"
# The key of `details` that contains the branch that is checked out.
CHECKED_OUT = "checkedOut"
# The key of `details` that contains the branch that does not exist, or that exists already.
ABOUT_BRANCH = "branch"


class BifolioError(Exception):
    """Base class of all errors."""


class SetupError(BifolioError):
    """An invalid site.yaml, schema or command. `str()` returns the error as one line."""

    def __init__(
        self, path: str, line: int | None, message: str, fix: str = "", column: int | None = None
    ) -> None:
        self.path, self.line, self.column, self.message, self.fix = path, line, column, message, fix
        super().__init__(f"{place_of(path, line, column)}: {with_fix(message, fix)}")


def place_of(path: str, line: int | None, column: int | None) -> str:
    return ":".join(str(part) for part in (path, line, line and column) if part)


def with_fix(message: str, fix: str) -> str:
    if not fix:
        return message
    return f"{as_sentence(message, upper=False)} {as_sentence(fix)}"


def as_sentence(text: str, *, upper: bool = True) -> str:
    text = f"{text[0].upper()}{text[1:]}" if upper else text
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


class NeedsThreadPool(BifolioError):
    """Raised on the event loop to move the request to a thread pool, for one of these reasons:

    - `costly`: the request might block.
    - `accounts`: the request might query a remote accounts database.
    - `long`: the request does not block, but takes too long for an event loop.
    """

    def __init__(self, *, costly: bool = False, accounts: bool = False, long: bool = False) -> None:
        self.costly, self.accounts, self.long = costly, accounts, long
        super().__init__("needs another thread")


class ClientGone(BifolioError):
    """The client has disconnected."""


class CommitError(BifolioError):
    """A write can't be committed now. The message says why.

    - `refused`: only this write is rejected. Other writes may succeed.
    - `overtaken`: a git command or another commit came first. An immediate retry may succeed.
    """

    def __init__(self, message: str, *, refused: bool = False, overtaken: bool = False) -> None:
        self.refused, self.overtaken = refused, overtaken
        super().__init__(message)


@contextmanager
def collect_setup_errors(errors: list[SetupError]) -> Iterator[None]:
    """Append a SetupError to `errors` instead of raising it."""
    try:
        yield
    except SetupError as error:
        errors.append(error)


@contextmanager
def add_operation_number(number: int) -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        error.details["operation"] = number
        raise


class UnreadableRecordError(BifolioError):
    """A record in the change log can't be decoded or applied."""


class ApiError(BifolioError):
    """Base class of errors that become HTTP responses, with `status`, `name`, `message` and `details`."""

    status = 500
    name = "InternalServerError"
    default = "Internal Server Error"
    # Seconds until a retry may succeed, for the `Retry-After` header. If it is 0, the header is omitted.
    retry_s = 0

    def __init__(self, message: str = "", details: Mapping[str, Any] | None = None) -> None:
        self.message = message or self.default
        self.details = dict(details or {})
        super().__init__(self.message)


class ValidationError(ApiError):
    """The request is invalid, or the schema does not allow it."""

    status, name, default = 400, "ValidationError", "Validation error"


class NotAllowedBySettingError(ValidationError):
    """A setting in site.yaml forbids the request. The message names the setting."""


class KeyNameError(ValidationError):
    """The query contains a key that does not exist, or that the caller is not allowed to use."""

    def __init__(self, message: str, details: Mapping[str, Any], inside: str = "") -> None:
        """`inside` is the uid of the type or component that lacks the key, or "" if that is not known."""
        super().__init__(message, details)
        self.inside = inside


class BadRequestError(ApiError):
    """The HTTP request is malformed or incomplete. For example, its Host header is invalid."""

    status, name, default = 400, "BadRequestError", "Bad Request"


class PaginationError(ValidationError):
    """The request combines pagination by page with pagination by offset."""

    name = "PaginationError"


class LimitError(ValidationError):
    """The request exceeds a limit. `details.limit` is the last part of the setting's name, such as `steps`
    for `api.limits.steps`. If a branch changes too many files to be merged, it is `files`.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message, {"limit": limit})


class ApplicationError(ApiError):
    """The request is valid, but can't be carried out now. For example, the user's account is blocked."""

    status, name, default = 400, "ApplicationError", "An application error occurred"


class DuplicateUserError(ApplicationError):
    """Another user has the same name or e-mail address."""

    default = "Email or Username are already taken"


class RateLimitError(ApiError):
    """The client has sent too many requests, or has failed to log in too often."""

    status, name, default = 429, "RateLimitError", "Too many requests, please try again later."

    def __init__(self, retry_s: int = 0, message: str = "") -> None:
        super().__init__(message)
        self.retry_s = retry_s


class UnauthorizedError(ApiError):
    """The request's credentials are missing or invalid."""

    status, name, default = 401, "UnauthorizedError", "Missing or invalid credentials"


class ForbiddenError(ApiError):
    """The caller lacks the required permission."""

    status, name, default = 403, "ForbiddenError", "Forbidden"

    def __init__(
        self,
        message: str = "",
        *,
        actor: str = "",
        permission: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        # `actor` and `permission` are logged. Only `details` are sent to the client.
        super().__init__(message, details)
        self.actor, self.permission = actor, permission


class NotFoundError(ApiError):
    """The path or document does not exist, or the caller is not allowed to see it."""

    status, name, default = 404, "NotFoundError", "Not Found"


class MethodNotAllowedError(ApiError):
    """The path does not support this method."""

    status, name, default = 405, "MethodNotAllowedError", "Method Not Allowed"

    def __init__(self, allowed: tuple[str, ...] = (), message: str = "") -> None:
        self.allowed = allowed
        super().__init__(message)


class PayloadTooLargeError(ApiError):
    """The request body is larger than allowed."""

    status, name, default = 413, "PayloadTooLargeError", "Payload Too Large"


class ContentCodingError(ApiError):
    """The request body is compressed, or has another content coding that is not supported."""

    status, name = 415, "UnsupportedMediaTypeError"
    default = "The request body is compressed; send it without Content-Encoding"


class RequestTimeoutError(ApiError):
    """The request body did not arrive in time."""

    status, name, default = (
        408,
        "RequestTimeoutError",
        "The request body did not arrive in time; send the request again",
    )


class ConflictError(ApiError):
    """Another program changed the file during the write, or the write would lose data."""

    status, name, default = 409, "ConflictError", "Conflict"


class RemoteMergeError(ConflictError):
    """Commits from the git remote can't be merged now. The log and `/_health/ready` report the reason."""

    default = "Commits from the git remote can't be applied now; see the server's log or /_health/ready"


class NotServedError(ConflictError):
    """The write was pushed to the git remote, but conflicts with uncommitted changes on this server."""


class BranchCheckedOutError(ConflictError):
    """The branch is checked out in a folder, and a write to the branch would not change the files there.
    `details.checkedOut` names the branch.
    """


class ConcurrentChangeError(ConflictError):
    """Another write changed the same values at the same time. `details` lists these values."""

    default = "Another write changed the same values; read the document again and repeat your change"


class MergeConflictError(ApiError):
    """Both branches changed the same values. `details` lists the conflicts."""

    status, name = 409, "ConflictError"
    default = (
        'Both branches changed the same values; choose a side for each conflict in "details", '
        'and send your choices in the key "resolve"'
    )


class GoneError(ApiError):
    """The requested resource existed, but has been deleted or has expired."""

    status, name, default = 410, "GoneError", "Gone"


class PreconditionError(ApiError):
    """The document has changed since the version that `If-Match` specifies."""

    status, name, default = 412, "PreconditionFailedError", "The document has changed; read it again"


class UnknownVersionError(PreconditionError):
    """The document has changed, and the version in `If-Match` is no longer available for merging."""

    default = (
        "The document has changed, and the version in If-Match is no longer available; "
        "read the document again"
    )


class OverlapError(PreconditionError):
    """The change conflicts with changes that were made since the version in `If-Match`."""

    default = "The document has changed, and the changes overlap with yours; see details.conflicts"


class StorageError(ApiError):
    """Files can't be written. Their previous content is unchanged."""

    status, name, default = 507, "InsufficientStorageError", "The files can't be written"


class LogUnavailableError(StorageError):
    """The database of the event log does not respond."""

    status, name = 503, "ServiceUnavailableError"
    default = "The event log is unavailable; try again later"
    retry_s = 5


class RemoteError(ApiError):
    """The git remote is unavailable, for example because its disk is full."""

    status, name, default = 503, "ServiceUnavailableError", "The git remote is unavailable; try again later"
    retry_s = 5


class RemoteTimeoutError(RemoteError):
    """The git remote does not respond in time."""

    default = "The git remote did not respond; try again later"


class UnconfirmedPushError(RemoteTimeoutError):
    """The git remote did not confirm a push, so the change may or may not have been pushed."""

    default = (
        "The git remote did not confirm the push, so the change may have been saved; "
        "check this before you send the request again"
    )


class RemoteAccessError(RemoteError):
    """The git remote denies access to this server."""

    default = (
        "The git remote denies access to this server; check the credentials that the server uses for git"
    )
    retry_s = 30


class RemoteRefusedError(RemoteError):
    """A hook or rule of the git remote rejected the commit."""

    status, name, default = 409, "ConflictError", "The git remote rejected this change"
    retry_s = 0


class RemoteMovedError(RemoteError):
    """The branch on the git remote is no longer at the expected commit."""

    default = "The branch on the git remote has changed; try again"


class UnavailableError(ApiError):
    """The accounts database can't be read, so tokens and users can't be verified."""

    status, name, default = (
        503,
        "ServiceUnavailableError",
        "The accounts database is unavailable; try again later",
    )
    retry_s = 30


class BucketError(StorageError):
    """The media bucket does not respond, or denies access."""

    status, name, default = (
        503,
        "ServiceUnavailableError",
        "The media bucket did not respond; try again later",
    )
    retry_s = 5


class MissingObjectError(BucketError):
    """A media file is missing or damaged in the bucket."""

    status, name, default = 502, "BadGatewayError", "The media file is missing from the bucket"


class BusyError(ApiError):
    """Another write is taking too long, or too many requests are being processed."""

    status, name, default = 503, "ServiceUnavailableError", "Another write is taking too long; try again"
    retry_s = 5


class QueueError(BusyError):
    """Too many requests are waiting, or this request has waited too long for its turn."""


class CommitNotServedError(BusyError):
    """This server does not yet serve the commit in the request's `Bifolio-After` header."""

    default, retry_s = "This server does not serve the commit in Bifolio-After yet; try again", 1


class GitBusyError(BusyError):
    """A git command is running in the site's repository."""

    default = "A git command is running in the site's repository; try again"


class GitError(BusyError):
    """A git command failed, for example because the repository is damaged."""

    default = "A git command failed; try again"


class GitTimeoutError(GitError):
    """A git command took too long and was terminated."""

    default = "A git command took too long; try again"


def invalid_key(key: str, path: str | None, param: str, inside: str = "") -> KeyNameError:
    """Return the error that Strapi sends for a query key that is unknown or forbidden.

    `param` is the query parameter that contains the key. `path` is the path to the key in this parameter, or
    None at the top level.
    """
    at = f" at {path}" if path and path != key else ""
    return KeyNameError(
        f"Invalid key {key}{at}", {"key": key, "path": path, "source": "query", "param": param}, inside
    )


# Errors that only keep a response from being computed. After a write has been made, the response must be a
# success, because a client could repeat a write that seems to have failed.
RESPONSE_ERRORS = (LimitError, BusyError)
