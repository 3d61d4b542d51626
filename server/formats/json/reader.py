"""JSON text → tree, and where everything in it stands."""

import json
import re
from collections import Counter

from server.formats.positions import Positions, position_at
from server.formats.scalars import MAX_DIGITS
from server.formats.tree import MAX_DEPTH, Plain, SyntaxProblem, Tree, depth_of
from server.formats.yaml.reader import read_yaml

# JSON strings, and the numbers that Python's reader refuses without saying where they are.
_ODD_JSON = re.compile(rf'"(?:[^"\\]|\\.)*+"?|-?(?:NaN|Infinity|[0-9]{{{MAX_DIGITS + 1},}})', re.DOTALL)
_MARKS = (",", "[", "{", "\\u")  # Every value but the first follows one of them.
_NESTED = re.compile(r'"\s*[\[{\\]')  # text that may be JSON, or is once its escapes are read
# JSON strings and empty lists and objects, and what a further value follows.
_VALUES = re.compile(r'"(?:[^"\\]|\\.)*+"?|\[\s*\]|\{\s*\}|[\[{,]', re.DOTALL)

_ENDS = {"}": "object", "]": "array"}


def has_more_values(text: str, most: int) -> bool:
    """Whether a JSON text has more values than `most`, lists and objects included; told before it is read.

    What text in quotes holds that may be JSON itself counts as well.
    """
    if sum(map(text.count, _MARKS)) < most:  # Most texts are short.
        return False
    left = most
    for number, found in enumerate(_VALUES.finditer(text)):
        token = found[0]
        if len(token) == 1:
            left -= 1
        elif _NESTED.match(token):
            left -= sum(map(token.count, _MARKS))
        # A value has at most a key, itself and a comma: what has more parts is no JSON.
        if left <= 0 or number > 4 * most:
            return True
    return False


def read_json(text: str) -> Tree:
    """JSON text → tree; integers exact, numbers with a fraction as Plain. Raises SyntaxProblem."""
    try:
        tree = json.loads(
            text, parse_float=Plain, parse_constant=_no_constant, object_pairs_hook=_unique_pairs
        )
        if "\\u" in text:
            json.dumps(tree, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _not_json(error) from error
    except UnicodeEncodeError as error:
        raise SyntaxProblem(
            "half of a surrogate pair has no UTF-8 form", None, "write both halves"
        ) from error
    except RecursionError as error:
        raise SyntaxProblem("nested too deeply", None, "flatten it") from error
    except SyntaxProblem as problem:
        raise _with_position(problem, text) from problem
    except ValueError as error:
        what = f"a number has more than {MAX_DIGITS} digits"
        raise _with_position(SyntaxProblem(what, None, "put it in quotes"), text) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(tree) > MAX_DEPTH:
        raise SyntaxProblem(f"nested more than {MAX_DEPTH} deep", None, "flatten it")
    return tree


def _not_json(error: json.JSONDecodeError) -> SyntaxProblem:
    """What Python's reader says of a text. Of a comma too many it says so since 3.13; here it always does."""
    what, text = error.msg, error.doc
    line, column, _ = position_at(text, error.pos)
    comma = text.rfind(",", 0, error.pos)
    if text[error.pos : error.pos + 1] in _ENDS and comma >= 0 and not text[comma + 1 : error.pos].strip():
        what = f"Illegal trailing comma before end of {_ENDS[text[error.pos]]}"
        line, column, _ = position_at(text, comma)
    fix = "look at the commas, quotes and brackets near it"
    return SyntaxProblem(f"not JSON: {what} (column {column})", line, fix, column)


def _with_position(problem: SyntaxProblem, text: str) -> SyntaxProblem:
    """A problem with its line and column, which Python's reader does not tell for all problems.

    Odd numbers are looked for with a pattern, keys that stand twice by reading the text as YAML.
    """
    odd = next((found for found in _ODD_JSON.finditer(text) if found[0][0] != '"'), None)
    if odd:
        line, column, _ = position_at(text, odd.start())
        return SyntaxProblem(problem.message, line, problem.fix, column)
    try:
        json_positions(text)
    except SyntaxProblem as found:
        if found.message == problem.message:
            return found
    return problem


def json_positions(text: str) -> Positions:
    """The position of every key and list item of a JSON text. Raises SyntaxProblem.

    JSON is read as YAML for it, which it is once tabs are spaces.
    """
    positions: Positions = {}
    read_yaml(text.replace("\t", " "), positions)
    return positions


def _no_constant(name: str) -> Tree:
    raise SyntaxProblem(f"{name} is not JSON", None, "use null or a number")


def _unique_pairs(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise SyntaxProblem(f'the key "{twice}" stands twice', None, "remove one of the two")
    return found
