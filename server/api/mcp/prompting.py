"""The methods for prompts. A site can replace the texts of the prompts with files in `prompts/`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.api.mcp.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, Json, RpcError, encode
from server.api.mcp.request import Request, with_cache_hints
from server.formats.tree import SyntaxProblem
from server.storage.files import MISSING_FILE_ERRORS
from server.storage.read import decode, read_bytes

FOLDER = "prompts"
MAX_ARGUMENT_CHARS = 200
_DEFAULTS = Path(__file__).with_name(FOLDER)
_PLACEHOLDER = re.compile(r"\{([A-Za-z]+)\}")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt. Its value replaces a placeholder in the text, such as `{branch}`."""

    name: str
    description: str

    def describe(self) -> Json:
        return {"name": self.name, "description": self.description, "required": True}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One of the prompts that `prompts/list` returns."""

    name: str
    title: str
    description: str
    arguments: Sequence[Argument] = ()

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.md"

    def describe(self) -> Json:
        about = {"name": self.name, "title": self.title, "description": self.description}
        return {**about, "arguments": [argument.describe() for argument in self.arguments]}


PROMPTS: Mapping[str, Prompt] = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "review-branch",
            "Review a branch",
            "Report what a branch changes, and whether to merge it",
            (Argument("branch", "The branch"),),
        ),
        Prompt(
            "translate",
            "Translate a document",
            "Write a translation of one document",
            (
                Argument("type", "The content type"),
                Argument("documentId", "The document"),
                Argument("locale", "The locale to translate into"),
            ),
        ),
        Prompt(
            "alternative-texts",
            "Write alternative texts",
            "Write alternative texts for images that lack one",
        ),
        Prompt(
            "fix-problems", "Fix problems", "Fix the problems that `check` reports, if the solution is clear"
        ),
    )
}


def list_prompts(request: Request) -> Json:
    return with_cache_hints({"prompts": [prompt.describe() for prompt in PROMPTS.values()]}, request.version)


def get_prompt(request: Request) -> Json:
    """Return the text of a prompt, with the values of its arguments inserted."""
    prompt = prompt_named(request.params.get("name"))
    arguments = _arguments(prompt, request.params.get("arguments", {}))
    max_bytes = request.settings.mcp.max_bytes
    template = _read_text(prompt, request.rest.root)
    _check_size(prompt, template, max_bytes)  # before the arguments make it longer
    text = _PLACEHOLDER.sub(lambda found: arguments.get(found[1], found[0]), template)
    _check_size(prompt, text, max_bytes)
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message]}


def _check_size(prompt: Prompt, text: str, max_bytes: int) -> None:
    if (size := len(encode(text))) > max_bytes:
        limit = f"more than mcp.max_bytes allows ({max_bytes:,})"
        raise RpcError(INTERNAL_ERROR, f"The text of {prompt.path} has {size:,} bytes, {limit}")


def prompt_named(name: object) -> Prompt:
    found = PROMPTS.get(name) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(PROMPTS)
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: {str(name)[:100]}; the prompts are {known}")
    return found


def _arguments(prompt: Prompt, given: Any) -> Mapping[str, str]:
    names = [argument.name for argument in prompt.arguments]
    if not isinstance(given, dict):
        raise RpcError(INVALID_PARAMS, '"arguments" must be an object')
    for name in names:
        if name not in given:
            raise RpcError(INVALID_PARAMS, f'The argument "{name}" is missing')
    for name, value in given.items():
        if name not in names:
            allowed = f"the arguments are {', '.join(names)}" if names else "it has no arguments"
            raise RpcError(INVALID_PARAMS, f'{prompt.name} has no argument "{name[:100]}"; {allowed}')
        # A line break could begin a new instruction.
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= MAX_ARGUMENT_CHARS:
            raise RpcError(
                INVALID_PARAMS,
                f'The argument "{name}" must be a string of 1 to {MAX_ARGUMENT_CHARS} characters without '
                "line breaks",
            )
    return given


def _read_text(prompt: Prompt, root: Path) -> str:
    try:
        return decode(read_bytes(root, prompt.path)[0])
    except MISSING_FILE_ERRORS:
        return (_DEFAULTS / f"{prompt.name}.md").read_text(encoding="utf-8")
    except (OSError, SyntaxProblem) as error:
        raise RpcError(INTERNAL_ERROR, f"{prompt.path} can't be read") from error
