"""Messages of commands, settings, schemas and `bifolio check`, collected from the source code.

A message is an argument in a call that raises an error or reports a problem. Variable parts of a message are
replaced with `…`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).parents[1] / "server"
# For each table, the files whose messages it contains.
SOURCES: Mapping[str, tuple[str, ...]] = {
    "messages of settings": ("config",),
    "messages of schemas": ("schema",),
    "messages of checks": (
        "site/check",
        "site/configure.py",
        "site/problems.py",
        "index/dangling.py",
        "documents/encode.py",
    ),
    "messages of files": (
        "formats",
        "storage/read.py",
        "storage/store.py",
        "storage/links.py",
        "storage/files.py",
    ),
    "messages of commands": ("commands", "tools"),
}
# For each function, the positions of the arguments that contain the message and the fix.
_CALLS: Mapping[str, tuple[int, int]] = {
    "SetupError": (2, 3),
    "Problem": (2, 3),
    "SyntaxProblem": (0, 2),
    "refuse": (0, 1),
    "refuse_key": (0, 1),
    "refuse_value": (0, 1),
    "add_mismatch": (1, 2),
    "_warning": (1, 2),
    "_refusal": (1, 2),
    "_warn": (0, 1),
}
MAX_DEPTH = 3  # maximum length of a chain of names that are assigned to each other
_ELLIPSES = re.compile(r"…(?:[\s.:/]*…)+")


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A problem's message, and its advice on how to fix the problem ("" if there is none)."""

    text: str
    fix: str


def messages_of(table: str) -> list[Message]:
    """Return the messages for a table in SOURCES, without duplicates, in alphabetical order."""
    found: set[Message] = set()
    for path in SOURCES[table]:
        files = [SERVER / path] if path.endswith(".py") else sorted((SERVER / path).rglob("*.py"))
        for file in files:
            found.update(_messages_in(ast.parse(file.read_text(encoding="utf-8"))))
    return sorted(found, key=lambda one: (one.text.strip('"…`').casefold(), one.fix))


def _messages_in(tree: ast.Module) -> Iterator[Message]:
    constants = _assigned(tree.body)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        known = {**constants, **_assigned(sorted(_statements(function), key=lambda node: node.lineno))}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and (name := _name_of(call)) in _CALLS:
                yield from _messages_of(call, name, known)


def _messages_of(call: ast.Call, name: str, known: Mapping[str, list[ast.expr]]) -> Iterator[Message]:
    at, fix_at = _CALLS[name]
    if len(call.args) <= at:
        return
    fixes = _texts(call.args[fix_at], known) if len(call.args) > fix_at else [""]
    fix = " / ".join(dict.fromkeys(text for text in fixes if text.strip("… ")))
    for text in _texts(call.args[at], known):
        shown = f"… must {text} (found …)" if name == "refuse_value" else text
        if shown.strip('…": .'):
            yield Message(shown, fix)


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt)]


def _name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _assigned(nodes: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return the expressions that the statements assign to each name."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _assign(target, node.value, found)
    return found


def _assign(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        found.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner, one in zip(target.elts, value.elts, strict=False):
            _assign(inner, one, found)


def _texts(node: ast.expr, known: Mapping[str, list[ast.expr]], depth: int = 0) -> list[str]:
    """Return the strings that an expression may produce, with all parts that are not literals replaced by
    `…`.
    """
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        return [_ELLIPSES.sub("…", "".join(map(str, parts)))]
    if isinstance(node, ast.BinOp):
        left, right = (_texts(side, known, depth) or ["…"] for side in (node.left, node.right))
        return [_ELLIPSES.sub("…", f"{one}{other}") for one in left for other in right]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, known, depth), *_texts(node.orelse, known, depth)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value, known, depth)]
    if isinstance(node, ast.Call) and _name_of(node) == "suggestion":
        return ['did you mean "…"?']
    if isinstance(node, ast.Name) and depth < MAX_DEPTH:
        # Use the nearest assignment above the name. Only a module's constants may be assigned below it.
        before = [value for value in known.get(node.id, ()) if value.lineno < node.lineno]
        for value in (before or known.get(node.id, []))[-1:]:
            return _texts(value, known, depth + 1)
    return ["…"]
