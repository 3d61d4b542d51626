"""Tokens and roles, which have the same permissions on both servers."""

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.differential.model import LOCALES, Model, Type

# Strapi's names for permissions, by Bifolio's names
_THEIRS = {
    "upload": "plugin::upload.content-api",
    "user": "plugin::users-permissions.user",
    "role": "plugin::users-permissions.role",
}
_AUTH = (
    "callback", "register", "forgotPassword", "resetPassword", "sendEmailConfirmation", "emailConfirmation",
    "connect",
)  # fmt: skip
Grants = Mapping[str, list[str]]  # a token's permissions (with Bifolio's names), by the token's name


def grants(model: Model, seed: str) -> Grants:
    """Return two tokens with limited permissions. The first allows only reading; the second also allows
    writing.
    """
    chance = random.Random(f"grants/{seed}")
    types = sorted(model.types.values(), key=lambda type_: type_.singular)
    some = chance.sample(types, max(len(types) // 2, 1))
    reader = [f"{type_.singular}.{action}" for type_ in some for action in _actions(type_)[:2]]
    every = [f"{type_.singular}.{action}" for type_ in types for action in _actions(type_)]
    editor = [permission for permission in every if chance.random() < 0.6]
    return {"reader": [*reader, "upload.find"], "editor": editor or reader}


def _actions(type_: Type) -> tuple[str, ...]:
    return ("find", "update", "delete") if type_.single else ("find", "findOne", "create", "update", "delete")


def their_tokens(made: Grants) -> str:
    tokens: list[dict[str, Any]] = [{"name": "read-only", "type": "read-only"}]
    for name, permissions in made.items():
        told = [_theirs(*permission.split(".")) for permission in permissions]
        tokens.append({"name": name, "type": "custom", "permissions": told})
    return json.dumps(tokens)


def _theirs(subject: str, action: str) -> str:
    return f"{_THEIRS.get(subject, f'api::{subject}.{subject}')}.{action}"


def our_token(root: Path, name: str, kind: str, permissions: list[str]) -> str:
    command = [sys.executable, "-m", "server", "token", "create", name, "--type", kind, "--site", str(root)]
    command += [part for permission in permissions for part in ("--permission", permission)]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return made.stdout.strip().splitlines()[-1]


def site_yaml(model: Model) -> str:
    """Return a site.yaml with the permissions of a new Strapi project."""
    # JSON is valid YAML.
    public = {type_.singular: ["find", "findOne"] for type_ in model.types.values()}
    public |= {"upload": ["find", "findOne"], "auth": list(_AUTH)}
    settings = {
        "locales": {"default": LOCALES[0], "available": list(LOCALES)},
        "api": {"populate_with_pagination": "allow"},
        "search": {"index": False},
        "roles": {"public": public, "authenticated": {"user": ["me"], "auth": ["changePassword"]}},
    }
    return json.dumps(settings)
