"""Generator of random requests about users: accounts, logins, passwords and roles."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bench.differential.request import Query, Request, flatten
from bench.differential.steps import Step
from bench.differential.values import Chance
from bench.differential.world import World

_NAMES = ("ann", "Bob", "cleo", "dora", "émile", "fritz", "x", "", "a b", "ANN")
_PASSWORDS = ("secret12", "secret34", "Secret12", "12", "", "p" * 72)
_WRONG: tuple[Any, ...] = (None, 5, True, [], {}, "", " ", "zzz")
_FIELDS = ("username", "email", "confirmed", "blocked", "provider", "id", "createdAt")
_LOOK = Request("GET", "/api/users", (("populate", "role"), ("sort", "username")))
_JSON = "application/json"


class People:
    """Generator of the steps in one conversation (a short sequence of requests) about users."""

    def __init__(self, world: World, chance: Chance, prefix: str) -> None:
        self.chance, self._prefix, self._count = chance, prefix, 0
        self.users: dict[str, dict[str, str]] = {}  # data of accounts, by the name of the reference
        self.sessions: list[str] = []

    def step(self, areas: Mapping[str, int]) -> Step | None:
        area = self.chance.choices(list(areas), list(areas.values()))[0]
        made = self.chance.choice(_PARTS[area])(self) if self.users else self._create()
        return replace(made, area=area)

    def _account(self) -> dict[str, Any]:
        self._count += 1
        name = f"{self.chance.choice(_NAMES)}{self._prefix}{self._count}"
        if self.chance.random() < 0.15:
            name = self.chance.choice(_NAMES)
        address = f"{self.chance.choice(('a', 'B', 'c.d'))}{self._prefix}{self._count}@example.org"
        return {"username": name, "email": address, "password": self.chance.choice(_PASSWORDS[:3])}

    def _spoiled(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.chance.random() < 0.65:
            return body
        name = self.chance.choice([*body, "nope", "id", "provider", "role"])
        if self.chance.random() < 0.3:
            return {key: value for key, value in body.items() if key != name}
        return {**body, name: self.chance.choice(_WRONG)}

    def _user(self) -> str:
        if self.chance.random() < 0.08:
            return self.chance.choice(("999999", "abc", "0"))
        return f"«{self.chance.choice(list(self.users))}»"

    def _create(self) -> Step:
        body = {**self._account(), "role": "«role:authenticated»"}
        if self.chance.random() < 0.3:
            body |= {self.chance.choice(("confirmed", "blocked")): self.chance.random() < 0.5}
        return self._making(Request("POST", "/api/users", body=self._spoiled(body)), "")

    def _register(self) -> Step:
        body = self._spoiled(self._account())
        return self._making(Request("POST", "/api/auth/local/register", body=body, who="public"), "user.")

    def _making(self, request: Request, where: str) -> Step:
        """Return a step that creates a user."""
        name, said = f"user:{len(self.users)}", dict(request.body)

        def done() -> None:
            self.users[name] = said

        captures = {name: f"{where}id", f"doc:{name}": f"{where}documentId"}
        return Step("", request, captures, looks=(_LOOK,), done=done)

    def _change(self) -> Step:
        account = self._account()
        few = self.chance.sample(
            [*account, "blocked", "confirmed", "role", "nope"], self.chance.randint(1, 2)
        )
        values = {**account, "blocked": self.chance.random() < 0.5, "confirmed": True, "nope": 1}
        values["role"] = self.chance.choice(
            ("«role:public»", {"connect": [{"id": "«role:authenticated»"}]}, {"set": ["«role:public»"]}, None)
        )
        body = self._spoiled({name: values[name] for name in few})
        return Step("", Request("PUT", f"/api/users/{self._user()}", body=body), looks=(_LOOK,))

    def _delete(self) -> Step:
        return Step("", Request("DELETE", f"/api/users/{self._user()}"), looks=(_LOOK,))

    def _list(self) -> Step:
        return Step("", Request("GET", "/api/users", self._query()))

    def _one(self) -> Step:
        return Step("", Request("GET", f"/api/users/{self._user()}", self._query(("fields", "populate"))))

    def _counted(self) -> Step:
        return Step("", Request("GET", "/api/users/count", self._query(("filters",))))

    def _query(self, parts: tuple[str, ...] = ("filters", "sort", "fields", "populate", "limit")) -> Query:
        chance, known = self.chance, list(self.users.values())
        trees: dict[str, Any] = {
            "filters": {
                chance.choice((*_FIELDS[:4], "nope", "password")): {
                    chance.choice(("$eq", "$ne", "$contains", "$startsWithi", "$null", "$in")): str(
                        chance.choice(known).get(chance.choice(("username", "email")), "true")
                    )
                }
            },
            "sort": chance.choice(
                ("username", "email:desc", "id", "password", "nope", ["blocked", "username"])
            ),
            "fields": chance.sample((*_FIELDS, "password", "nope"), chance.randint(1, 3)),
            "populate": chance.choice(("role", "*", {"role": {"fields": ["name", "type"]}}, "nope")),
            "limit": "2",
        }
        few = chance.sample(parts, chance.randint(0, min(2, len(parts))))
        query = tuple(pair for name in few for pair in flatten(name, trees[name]))
        return query if "sort" in few or "sort" not in parts else (*query, ("sort", "username"))

    def _log_in(self) -> Step:
        said = self.chance.choice(list(self.users.values()))
        name = self.chance.choice(("username", "email"))
        body = {"identifier": said.get(name, ""), "password": said.get("password", "")}
        if self.chance.random() < 0.2:
            body["password"] = "wrong1"
        session = f"jwt:{len(self.sessions)}"
        request = Request("POST", "/api/auth/local", body=self._spoiled(body), who="public")
        return Step("", request, {session: "jwt"}, done=lambda: self.sessions.append(session))

    def _me(self) -> Step:
        return Step("", Request("GET", "/api/users/me", self._query(("fields", "populate")), who=self._who()))

    def _who(self) -> str:
        return self.chance.choice((*self.sessions, *self.sessions, "public", "full", "nonsense"))

    def _password(self) -> Step:
        said = self.chance.choice(list(self.users.values()))
        new = self.chance.choice(_PASSWORDS)
        body = {"currentPassword": said.get("password"), "password": new, "passwordConfirmation": new}
        request = Request("POST", "/api/auth/change-password", body=self._spoiled(body), who=self._who())
        return Step("", request, looks=(_LOOK,))

    def _nobody(self) -> Step:
        """Return a step whose request has an unknown code or email address."""
        code = {"code": "x", "password": "secret12", "passwordConfirmation": "secret12"}
        path, body = self.chance.choice(
            (
                ("forgot-password", {"email": "nobody@example.org"}),
                ("reset-password", code),
                ("send-email-confirmation", {"email": "nobody@example.org"}),
            )
        )
        return Step("", Request("POST", f"/api/auth/{path}", body=self._spoiled(body), who="public"))

    def _roles(self) -> Step:
        path = self.chance.choice(("", "/«role:public»", "/«role:authenticated»", "/99", "/abc"))
        return Step("", Request("GET", f"/api/users-permissions/roles{path}"))

    def _open(self) -> Step:
        path = self.chance.choice(
            ("/api/users", "/api/users/count", "/api/upload/files", "/api/users-permissions/roles")
        )
        return Step("", Request("GET", path, who=self._who()))


_Make = Callable[[People], Step]
_PARTS: Mapping[str, tuple[_Make, ...]] = {
    "people accounts": (People._create, People._create, People._change, People._change, People._delete),
    "people lists": (People._list, People._list, People._one, People._counted, People._roles),
    "people logins": (
        People._register, People._log_in, People._log_in, People._me, People._password, People._nobody,
        People._open,
    ),
}  # fmt: skip
AREAS: Mapping[str, int] = {"people accounts": 10, "people lists": 8, "people logins": 12}
