"""Every error that Bifolio raises on purpose.

    BifolioError
    ├── SetupError               the site itself is wrong: path, line, message, fix
    ├── NeedsThreadPool                a thread that may wait has to answer the request
    ├── ClientGone               nobody waits for the answer any more
    ├── CommitError              a write can't be committed now, and is later
    ├── UnreadableRecordError    a worker can't apply a record of another; it looks at the files
    └── ApiError                 becomes an HTTP response with an error envelope
        ├── ValidationError      400
        │   ├── KeyNameError     400  a query names a key that it may not use
        │   ├── NotAllowedBySettingError 400  a setting of site.yaml would allow it
        │   ├── PaginationError  400
        │   └── LimitError       400  the request would cost more than one may
        ├── BadRequestError      400
        ├── ApplicationError     400  a rule of accounts forbids it, such as a blocked user
        │   └── TakenError       400  another user has the name or the e-mail address
        ├── UnauthorizedError    401
        ├── ForbiddenError       403
        ├── NotFoundError        404
        ├── MethodNotAllowedError 405
        ├── RequestTimeoutError  408  the body did not arrive in time
        ├── ConflictError        409
        │   ├── NotTakenOverError 409  what the git remote has can't be taken over without loss
        │   ├── NotServedError   409  the remote has a write that edits by hand keep from being served
        │   └── OvertakenError   409  somebody else has changed the same at the same time
        ├── UnmergedError        409  two branches have changed the same, each otherwise
        ├── GoneError            410  what is asked for was there, and is no longer kept
        ├── PreconditionError    412  If-Match names another version than the current one
        │   ├── UnknownVersionError 412  what it names can't be merged with: nobody knows what it was
        │   └── OverlapError     412  what it names can't be merged with: others have changed the same
        ├── PayloadTooLargeError 413
        ├── ContentCodingError   415  the body is compressed
        ├── RateLimitError       429
        ├── StorageError         507  the disk or the permissions of a file refuse it
        │   ├── LogUnavailableError 503  the database with the log of events does not answer
        │   └── BucketError      503  the bucket of media does not answer, or refuses
        │       └── MissingObjectError 502  a file is not in the bucket, or damaged there
        ├── RemoteError          503  the git remote can't be used
        │   ├── RemoteAwayError  503  it does not answer, or not in time
        │   │   └── RemoteLostError 503  it did not say whether it has taken a commit
        │   ├── RemoteAccessError 503  it does not let this server in
        │   ├── RemoteRefusedError 409  it takes no such commit, as its hooks or rules have it
        │   └── RemoteMovedError 503  its branch is at another commit than was expected
        ├── UnavailableError     503  the accounts can't be read
        └── BusyError            503  another process has been writing for too long, or too many ask for much
            ├── TurnError        503  too many requests wait for their turn, or this one has waited too long
            ├── BehindError      503  the commit that a request names has not arrived here yet
            ├── GitBusyError     503  a git command is changing the site's files
            └── GitError         503  a git command has failed, which says nothing of the repository
                └── GitSlowError 503  a git command takes too long

Only `api.failure` turns an ApiError into HTTP; only the commands print a SetupError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# By status, the names of errors that Flask itself raises.
HTTP_NAMES: Mapping[int, str] = {
    400: "BadRequestError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    413: "PayloadTooLargeError",
    415: "UnsupportedMediaTypeError",
    416: "RangeNotSatisfiableError",
    429: "RateLimitError",
}


class BifolioError(Exception):
    """The base class of all."""


class SetupError(BifolioError):
    """A site.yaml, schema or command that can't be used; its text is one line for a person."""

    def __init__(
        self, path: str, line: int | None, message: str, fix: str = "", column: int | None = None
    ) -> None:
        self.path, self.line, self.column, self.message, self.fix = path, line, column, message, fix
        super().__init__(f"{place_of(path, line, column)}: {with_fix(message, fix)}")


def place_of(path: str, line: int | None, column: int | None) -> str:
    """Return `path:line:column`, without the parts that are not known."""
    return ":".join(str(part) for part in (path, line, line and column) if part)


def with_fix(message: str, fix: str) -> str:
    """Return what is wrong and how to mend it as sentences; a message without a fix as it is."""
    if not fix:
        return message
    return f"{as_sentence(message, upper=False)} {as_sentence(fix)}"


def as_sentence(text: str, *, upper: bool = True) -> str:
    """Return a text with its final mark and, if `upper`, a capital letter at its beginning."""
    text = f"{text[0].upper()}{text[1:]}" if upper else text
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


class NeedsThreadPool(BifolioError):
    """The thread that has a request must not wait, and the answer may have to; `costly` says that it will.

    `accounts`: it may have to wait for a database of accounts that is elsewhere. `long`: it does not wait,
    but takes longer than an event loop may.
    """

    def __init__(self, *, costly: bool = False, accounts: bool = False, long: bool = False) -> None:
        self.costly, self.accounts, self.long = costly, accounts, long
        super().__init__("another thread answers")


class ClientGone(BifolioError):
    """The client has left; there is nobody to answer."""


class CommitError(BifolioError):
    """A write can't be committed now; its text says why. `refused`: not this one, while others may be.

    `overtaken`: a git command or another commit came in between, so that another try may do at once.
    """

    def __init__(self, message: str, *, refused: bool = False, overtaken: bool = False) -> None:
        self.refused, self.overtaken = refused, overtaken
        super().__init__(message)


@contextmanager
def noting(found: list[SetupError]) -> Iterator[None]:
    """Add a SetupError that the block raises to a list, and go on after the block."""
    try:
        yield
    except SetupError as error:
        found.append(error)


@contextmanager
def of_operation(number: int) -> Iterator[None]:
    """Say in the details of an ApiError that the block raises which operation of a batch it is of."""
    try:
        yield
    except ApiError as error:
        error.details["operation"] = number
        raise


class UnreadableRecordError(BifolioError):
    """A record in the change log can't be decoded or applied."""


class ApiError(BifolioError):
    """An HTTP response with an error envelope: `status`, `name`, `message`, `details`."""

    status = 500
    name = "InternalServerError"
    default = "Internal Server Error"
    retry_s = 0  # after how many seconds the request may be made again; 0 where that is not known

    def __init__(self, message: str = "", details: Mapping[str, Any] | None = None) -> None:
        self.message = message or self.default
        self.details = dict(details or {})
        super().__init__(self.message)


class ValidationError(ApiError):
    """The request asks for something that the schema does not have or allow."""

    status, name, default = 400, "ValidationError", "Validation error"


class NotAllowedBySettingError(ValidationError):
    """The request asks for something that a setting of site.yaml would allow, which the message names."""


class KeyNameError(ValidationError):
    """Unknown or forbidden query key."""


class BadRequestError(ApiError):
    """The request lacks what its route can't do without."""

    status, name, default = 400, "BadRequestError", "Bad Request"


class PaginationError(ValidationError):
    """Page and offset pagination in one request."""

    name = "PaginationError"


class LimitError(ValidationError):
    """The request would cost more than one may."""

    def __init__(self, message: str, limit: str) -> None:
        """`limit` is the key below `api.limits` of site.yaml that says how much."""
        super().__init__(message, {"limit": limit})


class ApplicationError(ApiError):
    """Something that can't be done as things are: a name that is taken, a blocked account."""

    status, name, default = 400, "ApplicationError", "An application error occurred"


class TakenError(ApplicationError):
    """Another user has the name or the address."""

    default = "Email or Username are already taken"


class RateLimitError(ApiError):
    """Too many requests, or too many failed logins."""

    status, name, default = 429, "RateLimitError", "Too many requests, please try again later."

    def __init__(self, retry_s: int = 0) -> None:
        super().__init__()
        self.retry_s = retry_s


class UnauthorizedError(ApiError):
    """Credentials were sent and are not valid."""

    status, name, default = 401, "UnauthorizedError", "Missing or invalid credentials"


class ForbiddenError(ApiError):
    """The caller may not do this."""

    status, name, default = 403, "ForbiddenError", "Forbidden"

    def __init__(self, message: str = "", *, actor: str = "", permission: str = "") -> None:
        """`actor` lacks `permission`, "article.create"; the response names neither, the log does."""
        super().__init__(message)
        self.actor, self.permission = actor, permission


class NotFoundError(ApiError):
    """Nothing is there."""

    status, name, default = 404, "NotFoundError", "Not Found"


class MethodNotAllowedError(ApiError):
    """The path exists, the method does not."""

    status, name, default = 405, "MethodNotAllowedError", "Method Not Allowed"

    def __init__(self, allowed: tuple[str, ...] = (), message: str = "") -> None:
        """`allowed` are the methods that the path has."""
        self.allowed = allowed
        super().__init__(message)


class PayloadTooLargeError(ApiError):
    """The body is larger than the server takes."""

    status, name, default = 413, "PayloadTooLargeError", "Payload Too Large"


class ContentCodingError(ApiError):
    """The body is compressed, or in another content coding."""

    status, name = 415, "UnsupportedMediaTypeError"
    default = "A body can't be compressed; send it without Content-Encoding"


class RequestTimeoutError(ApiError):
    """The body of the request did not arrive in time."""

    status, name, default = 408, "RequestTimeoutError", "The request did not arrive in time"


class ConflictError(ApiError):
    """Somebody changed the file meanwhile, or it can't be changed without harm."""

    status, name, default = 409, "ConflictError", "Conflict"


class NotTakenOverError(ConflictError):
    """What the git remote has can't be taken over now. The log and `/_health/ready` say why."""

    default = "What the git remote has can't be taken over now"


class NotServedError(ConflictError):
    """The git remote has taken a write that can't be served here yet: edits by hand are in its way."""


class OvertakenError(ConflictError):
    """Somebody else has changed the same of a document at the same time. `details` has what."""

    default = "Somebody else has changed the same meanwhile"


class UnmergedError(ApiError):
    """Two branches have changed the same, each otherwise. `details` has what, and what they have changed."""

    status, name = 409, "ConflictError"
    default = "Both branches have changed the same; send resolve to say of each conflict what it is to be"


class GoneError(ApiError):
    """What is asked for was there, and is no longer kept."""

    status, name, default = 410, "GoneError", "Gone"


class PreconditionError(ApiError):
    """The document is not in the version that the request was made for."""

    status, name, default = 412, "PreconditionFailedError", "The document was changed meanwhile"


class UnknownVersionError(PreconditionError):
    """The version that the request was made for is not known any more, so that it can't be merged."""

    default = "The document was changed meanwhile, and the version that If-Match names is not known any more"


class OverlapError(PreconditionError):
    """The request changes what others have changed since the version that it was made for."""

    default = "The document was changed meanwhile, where this changes it as well"


class StorageError(ApiError):
    """The files could not be written; what they held is still there."""

    status, name, default = 507, "InsufficientStorageError", "The files could not be written"


class LogUnavailableError(StorageError):
    """The log of events is in a database elsewhere, which does not answer."""

    status, name = 503, "ServiceUnavailableError"
    default = "The log of events can't be used; try again later"
    retry_s = 5


class RemoteError(ApiError):
    """The git remote can't be used."""

    status, name, default = 503, "ServiceUnavailableError", "The git remote can't be used; try again later"
    retry_s = 5


class RemoteAwayError(RemoteError):
    """The git remote does not answer, or not in time."""

    default = "The git remote does not answer; try again later"


class RemoteLostError(RemoteAwayError):
    """The git remote did not say whether it has taken a commit: the change is made, or not."""

    default = "The git remote did not say whether it has taken the change; look before you send it again"


class RemoteAccessError(RemoteError):
    """The git remote does not let the server in."""

    default = "The git remote does not let this server in"
    retry_s = 30


class RemoteRefusedError(RemoteError):
    """The git remote takes no such commit: a hook or a rule there forbids it."""

    status, name, default = 409, "ConflictError", "The git remote does not take this change"
    retry_s = 0


class RemoteMovedError(RemoteError):
    """The branch of the git remote is at another commit than was expected."""

    default = "Others have changed the branch of the git remote meanwhile; try again"


class UnavailableError(ApiError):
    """The accounts can't be read, so that no token and no user is known."""

    status, name, default = 503, "ServiceUnavailableError", "The accounts can't be read; try again later"
    retry_s = 30


class BucketError(StorageError):
    """The bucket of media does not answer, or refuses access."""

    status, name, default = (
        503,
        "ServiceUnavailableError",
        "The bucket of media does not answer; try again later",
    )
    retry_s = 5


class MissingObjectError(BucketError):
    """A file that content names is not in the bucket of media, or is damaged there."""

    status, name, default = 502, "BadGatewayError", "The media file is not in the bucket"


class BusyError(ApiError):
    """Somebody else is writing."""

    status, name, default = 503, "ServiceUnavailableError", "Another write is taking too long; try again"
    retry_s = 5


class TurnError(BusyError):
    """Too many requests wait for their turn already, or this one has waited for too long."""


class BehindError(BusyError):
    """A request is to be answered from a commit that is not served here yet."""

    default, retry_s = "This server has not got that commit yet; try again", 1


class GitBusyError(BusyError):
    """A git command is at work in the site's repository."""

    default = "git is changing the site; try again"


class GitError(BusyError):
    """A git command has failed, so that it is not known what it was to tell."""

    default = "git has failed; try again"


class GitSlowError(GitError):
    """A git command was ended, since it took too long."""

    default = "git takes too long; try again"


def invalid_key(key: str, path: str | None, param: str) -> KeyNameError:
    """The recorded form of a key that a query may not use; `path` is dotted, None at the root."""
    at = f" at {path}" if path and path != key else ""
    return KeyNameError(
        f"Invalid key {key}{at}", {"key": key, "path": path, "source": "query", "param": param}
    )
