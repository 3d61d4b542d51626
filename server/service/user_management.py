"""User management for administrators (docs/access.md).

A caller can change only users whose role permits no more than the caller's own role, and can assign only such
roles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from server.auth.last_uses import user_key
from server.auth.login_record import Login
from server.auth.permissions import Actor, forbidden, has_all
from server.auth.user import MIN_NAME_CHARS, MIN_PASSWORD_CHARS, User
from server.config.model import Settings
from server.errors import ForbiddenError, NotFoundError, PreconditionError, ValidationError
from server.service.forms import field_error, field_errors, form_error, read_form
from server.service.read import Caller
from server.write.faults import UNSAID

if TYPE_CHECKING:
    from server.auth.directory import Directory

# Anyone who may create users can give this role, because it is the role of new users.
DEFAULT_ROLE = "authenticated"
NO_USER_MESSAGE = "User not found"
TOO_MUCH_MESSAGE = "You can't change a user who can do more than you, or give a role that can do more"
OWN = "me"  # stands for the caller's id
MAX_ID_CHARS = 20
_CHANGEABLE = ("username", "email", "role", "blocked")


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user in a list. `is_changeable` is set if the caller may change the user."""

    user: User
    last_seen: str | None
    sessions: int
    is_invited: bool
    is_changeable: bool


@dataclass(frozen=True, slots=True)
class UserFilter:
    """A filter for users. `text` matches any part of the name or the email address."""

    text: str = ""
    role: str = ""

    def matches(self, user: User) -> bool:
        text = self.text.casefold()
        found = not text or text in user.username.casefold() or text in user.email
        return found and self.role in ("", user.role)


@dataclass(frozen=True, slots=True)
class UserManagement:
    """User management on behalf of one caller."""

    directory: "Directory"
    caller: Caller
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.caller.state.settings)

    # --- reading ------------------------------------------------------------------------------------

    def list(self, user_filter: UserFilter) -> Sequence[ListedUser]:
        self._require("find")
        users = [user for user in self.directory.users.all() if user_filter.matches(user)]
        self.caller.budget.spend(len(users))
        return self._listed(sorted(users, key=lambda user: user.username.casefold()))

    def get(self, key: str) -> ListedUser:
        self._require("findOne")
        return self._listed([self._find_user(key)])[0]

    def sessions(self, key: str) -> Sequence[Login]:
        user = self._find_user(key) if self._is_own(key) else self._user_to_change(key)
        return self.directory.logins.list_for_user(user.id)

    def assignable_roles(self) -> Mapping[str, bool]:
        return {
            role: may_assign(self.caller.actor, self.settings, role)
            for role in self.settings.roles
            if role != "public"
        }

    def can_sign_in_with_password(self) -> bool:
        """Return True if users may sign in with a password, which is a permission of the public role."""
        return "auth.callback" in self.settings.roles.get("public", ())

    # --- changes ------------------------------------------------------------------------------------

    def invite(self, data: object) -> tuple[ListedUser, str]:
        """Create a user without a password. Return the user, and the code with which the user can set one.

        Raises ForbiddenError, DuplicateUserError or ValidationError.
        """
        self._require("create")
        values = self._read_user(data, creating=True)
        role = values.get("role", DEFAULT_ROLE)
        require_assignable(self.caller.actor, self.settings, role)
        user, code = self.directory.users.invite(values["username"], values["email"], role=role)
        return self._listed([user])[0], code

    def invite_again(self, key: str) -> tuple[ListedUser, str]:
        """Return a user with a new invitation code. The earlier code becomes invalid.

        Raises ForbiddenError or NotFoundError.
        """
        user = self._user_to_change(key)
        if user.id not in self.directory.users.ids_without_password():
            require_takeover(self.caller.actor, self.settings, user.role)
        return self._listed([user])[0], self.directory.users.invitation_code(user)

    def update(self, key: str, data: object, if_match: str) -> ListedUser:
        """Change or block a user.

        Raises PreconditionError if the user's version is not `if_match`. Also raises ForbiddenError,
        NotFoundError, ValidationError or DuplicateUserError.
        """
        user = self._user_to_change(key)
        if not if_match:
            raise ValidationError("The If-Match header is missing; it must contain the user's version")
        values = self._read_user(data, creating=False)
        if "role" in values:
            require_assignable(self.caller.actor, self.settings, values["role"])
        if "email" in values and user.id != self.caller.actor.user_id:
            require_takeover(self.caller.actor, self.settings, user.role)
        if user.id == self.caller.actor.user_id and values.get("blocked"):
            raise ValidationError("You can't block yourself")
        expected = user.updated_at if if_match.strip() == "*" else if_match.strip().strip('"')
        if expected != user.updated_at:
            raise PreconditionError("The user has changed since you read it", {"version": user.updated_at})
        changed = self.directory.users.update(user.id, values, expected)
        if changed is None:
            raise NotFoundError(NO_USER_MESSAGE)
        return self._listed([changed])[0]

    def delete(self, key: str) -> None:
        user = self._user_to_change(key, "destroy")
        if user.id == self.caller.actor.user_id:
            raise ValidationError("You can't delete yourself")
        self.directory.users.delete(user.id)
        self.directory.accounts.last_uses.forget(user_key(user.id))

    def end_sessions(self, key: str) -> None:
        user = self._find_user(key) if self._is_own(key) else self._user_to_change(key)
        self.directory.users.end_sessions(user.id)
        self.directory.logins.end_all(user.id)

    def end_session(self, key: str, session: str) -> None:
        user = self._find_user(key) if self._is_own(key) else self._user_to_change(key)
        if not session or not self.directory.logins.end(user.id, session):
            raise NotFoundError("Session not found")

    # --- helpers ------------------------------------------------------------------------------------

    def _is_own(self, key: str) -> bool:
        own = self.caller.actor.user_id
        return own is not None and key in (OWN, str(own))

    def _require(self, action: str) -> None:
        if not self.caller.actor.may("user", action):
            raise forbidden(self.caller.actor, "user", action, is_type=False)

    def _find_user(self, key: str) -> User:
        own = str(self.caller.actor.user_id) if key == OWN else key
        is_number = own.isascii() and own.isdigit()
        user = self.directory.users.get(int(own[:MAX_ID_CHARS])) if is_number else None
        if user is None:
            raise NotFoundError(NO_USER_MESSAGE)
        return user

    def _user_to_change(self, key: str, action: str = "update") -> User:
        self._require(action)
        user = self._find_user(key)
        require_assignable(self.caller.actor, self.settings, user.role)
        return user

    def _listed(self, users: Sequence[User]) -> Sequence[ListedUser]:
        seen, counts = self.directory.accounts.last_uses.all(), self.directory.logins.count_by_user()
        invited = self.directory.users.ids_without_password()
        may = self.caller.actor.may("user", "update")
        return [
            ListedUser(
                user,
                seen.get(user_key(user.id)),
                counts.get(user.id, 0),
                user.id in invited,
                may and may_assign(self.caller.actor, self.settings, user.role),
            )
            for user in users
        ]

    def _read_user(self, data: object, *, creating: bool) -> dict[str, Any]:
        if not isinstance(data, dict) or not data:
            raise ValidationError('The request body must look like {"data": {"role": "…"}}')
        allowed = _CHANGEABLE[:3] if creating else _CHANGEABLE
        errors = [
            field_error(str(name)[:100], "is not a field", None) for name in data if name not in allowed
        ]
        for name, least in (("username", MIN_NAME_CHARS), ("email", 1)):
            if name in data or creating:
                errors += field_errors(name, data.get(name, UNSAID), least)
        if not isinstance(data.get("blocked", False), bool):
            errors.append(field_error("blocked", "must be true or false", data["blocked"]))
        values = {name: data[name] for name in allowed if name in data}
        # Unlike a name, an id or documentId could fit several roles.
        if "role" in data and data["role"] not in list(self.assignable_roles()):
            errors.append(field_error("role", "does not exist", data["role"]))
        if errors:
            raise form_error(errors)
        return values


def may_assign(actor: Actor, settings: Settings, role: str) -> bool:
    return role == DEFAULT_ROLE or has_all(actor, settings.roles.get(role, frozenset()))


def require_assignable(actor: Actor, settings: Settings, role: str) -> None:
    if not may_assign(actor, settings, role):
        raise ForbiddenError(TOO_MUCH_MESSAGE, actor=actor.name)


def require_takeover(actor: Actor, settings: Settings, role: str) -> None:
    """Raise ForbiddenError unless the actor has all permissions of a role.

    Call this before any change that would let the actor sign in as a user with this role. Unlike
    `require_assignable`, it also applies to DEFAULT_ROLE.
    """
    if not has_all(actor, settings.roles.get(role, frozenset())):
        raise ForbiddenError(TOO_MUCH_MESSAGE, actor=actor.name)


def accept_invitation(directory: "Directory", body: object) -> User:
    """Set the password of an invited user. Raises ValidationError if the code or password is invalid."""
    form = read_form(body, {"code": 1, "password": MIN_PASSWORD_CHARS})
    user = directory.users.spend_reset_code(form["code"])
    if user is None:
        raise ValidationError("This invitation has been used, replaced or has expired; ask for a new one")
    values = {"password": form["password"], "confirmed": True}
    # If the user's role changes at the same moment, the code must not give the new role.
    return directory.users.update(user.id, values, user.updated_at) or user
