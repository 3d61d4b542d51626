"""Registry of handlers. The keys are the operation ids from `server.api.operations.table`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from werkzeug.wrappers import Response

from server.api.operations.table import BY_ID

Handler = TypeVar("Handler", bound=Callable[..., Response])


class Handlers:
    """Registry of handlers. An instance is used as a decorator for handlers, for example
    `@handles("findUsers")`.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Callable[..., Response]] = {}

    def __call__(self, *ids: str) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a function as the handler for the given operations. The function
        is called with the variables in the path as its arguments.

        Raises KeyError if an operation id is unknown.
        """

        def bind(handler: Handler) -> Handler:
            self._by_id |= {BY_ID[id_].id: handler for id_ in ids}
            return handler

        return bind

    @property
    def by_id(self) -> Mapping[str, Any]:
        """The registered handlers. The keys are the operation ids."""
        return self._by_id
