"""Random values for attributes, valid and invalid."""

import random
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from bench.differential.model import Attribute

_TEXT = """
tide harbour lantern salt marsh ferry gauge chart keel anchor mud island fog bell lens tower rope sand
Tide Salt Émile naïve straße 日本 smörgås 50% a_b c\\d it's "quoted" <b> 007 1.5 true null -3 ñandú"""
_WORDS = _TEXT.split()
PLAIN = _WORDS[:18]
_PARAGRAPH = {"type": "paragraph", "children": [{"type": "text", "text": "One "}]}
_BLOCKS: Sequence[Any] = (
    [_PARAGRAPH],
    [{"type": "heading", "level": 2, "children": [{"type": "text", "text": "Head"}]}, _PARAGRAPH],
    [{"type": "paragraph", "children": [{"type": "text", "text": "bold", "bold": True}]}],
    [
        {
            "type": "list",
            "format": "unordered",
            "children": [{"type": "list-item", "children": [{"type": "text", "text": "item"}]}],
        }
    ],
    [{"type": "quote", "children": [{"type": "text", "text": "quoted"}]}],
    [{"type": "code", "children": [{"type": "text", "text": "x = 1"}]}],
)
_JSON: Sequence[Any] = (
    {"a": 1},
    {"a": {"b": [1, 2, None]}},
    [1, "two", False],
    "text",
    5,
    True,
    {},
    [],
    1.5,
    {"k": "tide"},
)
_SAFE_JSON: Sequence[Any] = tuple(value for value in _JSON if not isinstance(value, bool))
Chance = random.Random


class Values:
    """Generator of attribute values. With `plain`, it generates only values that responses contain exactly as
    written.
    """

    def __init__(self, chance: Chance, prefix: str = "v", *, plain: bool = False) -> None:
        self.chance, self.plain = chance, plain
        self._prefix, self._count = prefix, 0

    def good(self, attribute: Attribute) -> Any:
        """Return a valid value for a scalar attribute."""
        made = _GOOD[attribute["type"]](self, attribute)
        if attribute.get("unique") and attribute["type"] in ("string", "text", "email"):
            made = f"{self._next()}{made}"[: attribute.get("maxLength", 200)]
        elif attribute.get("unique") and attribute["type"] in ("integer", "biginteger"):
            self._count += 1
            made = self._count + self.chance.randrange(10**6) * 100
        return made

    def text(self, max_words: int = 3) -> str:
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randint(1, max_words)))

    def _next(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _string(self, attribute: Attribute) -> str:
        if " " in attribute.get("regex", ""):
            return f"{self.chance.choice('abc')} {self.chance.choice('abc')}"
        if "{2}" in attribute.get("regex", ""):
            return "".join(self.chance.choices("ABC", k=2))
        if attribute.get("regex"):
            return "".join(self.chance.choices("abcdefghij", k=self.chance.randint(2, 6)))
        made = self.text()
        if self.chance.random() < 0.05:
            made = self.chance.choice(("", " edge ", "two\nlines", "tab\there", "\u00a0", "émoji 🎈"))
        least, most = attribute.get("minLength", 0), attribute.get("maxLength", 255)
        return (made if len(made) >= least else made + "x" * least)[:most]

    def _long(self, attribute: Attribute) -> str:
        if attribute.get("regex"):
            return self._string(attribute)
        made = "\n".join(self.text(4) for _ in range(self.chance.randint(1, 3)))
        least, most = attribute.get("minLength", 0), attribute.get("maxLength", 2000)
        return (made if len(made) >= least else made + "x" * least)[:most]

    def _number(self, attribute: Attribute) -> int:
        least, most = ceil(float(attribute.get("min", -50))), int(float(attribute.get("max", 1000)))
        return self.chance.randint(least, min(most, least + 60))

    def _decimal(self, attribute: Attribute) -> float:
        made = self._number(attribute) + self.chance.choice((0, 0.5, 0.25, 0.1))
        return min(made, float(attribute.get("max", made)))

    def _uid(self, attribute: Attribute) -> str:
        return f"{self.chance.choice(PLAIN)}-{self._next()}"

    def _email(self, attribute: Attribute) -> str:
        return f"{self.chance.choice(PLAIN)}@{self.chance.choice(PLAIN)}.example"

    def _date(self, attribute: Attribute) -> str:
        c = self.chance
        return f"{c.choice((1999, 2020, 2023, 2024))}-{c.randint(1, 12):02d}-{c.randint(1, 28):02d}"

    def _time(self, attribute: Attribute) -> str:
        c = self.chance
        made = f"{c.randint(0, 23):02d}:{c.randint(0, 59):02d}:{c.choice((0, 30, 59)):02d}"
        return made + c.choice(("", ".000", ".250"))

    def _datetime(self, attribute: Attribute) -> str:
        c = self.chance
        made = f"{self._date(attribute)}T{c.randint(0, 23):02d}:{c.randint(0, 59):02d}:00"
        return made + c.choice((".000Z", "Z", ".123Z", "+02:00"))

    def _enumeration(self, attribute: Attribute) -> str:
        return str(self.chance.choice(attribute["enum"]))

    def _boolean(self, attribute: Attribute) -> bool:
        return self.chance.random() < 0.5

    def _big(self, attribute: Attribute) -> Any:
        usual = (0, 7, -7, 123456789012, 9007199254740991)
        made = self.chance.choice((*(() if "min" in attribute else usual), self._number(attribute)))
        return str(made) if self.chance.random() < 0.6 else made

    def _json(self, attribute: Attribute) -> Any:
        return self.chance.choice(_SAFE_JSON if self.plain else _JSON)

    def _blocks(self, attribute: Attribute) -> Any:
        return self.chance.choice(_BLOCKS)


_GOOD: Mapping[str, Callable[[Values, Attribute], Any]] = {
    "string": Values._string,
    "text": Values._long,
    "richtext": Values._long,
    "enumeration": Values._enumeration,
    "email": Values._email,
    "password": Values._string,
    "uid": Values._uid,
    "date": Values._date,
    "time": Values._time,
    "datetime": Values._datetime,
    "timestamp": Values._datetime,
    "integer": Values._number,
    "biginteger": Values._big,
    "float": Values._decimal,
    "decimal": Values._decimal,
    "boolean": Values._boolean,
    "json": Values._json,
    "blocks": Values._blocks,
}

# Some attributes accept and convert some of these values.
_ANY_WRONG: Sequence[Any] = (5, -1, 1.5, "", "zzz", True, False, [], {}, ["a"], {"a": 1}, None, "0", "true")
_WRONG: Mapping[str, Sequence[Any]] = {
    "string": ("x" * 300, "x" * 61, "x", "UPPER", " "),
    "text": ("x" * 90, "x" * 2000),
    "uid": ("With Space", "ümlaut", "a/b", "a_b.c~d-e", "UPPER", "x" * 300),
    "email": ("no at", "a@b", "a@b.c", "@x.org", " a@x.org", "A@X.ORG"),
    "enumeration": ("purple", "RED", " red"),
    "date": (
        "2024-02-30",
        "2024-2-3",
        "02/03/2024",
        "2024-02-03T10:00:00.000Z",
        "yesterday",
        1700000000000,
        "2024",
    ),
    "time": ("25:00:00", "10:20", "10:20:30.1234", "10h", "10:60:00", 3600),
    "datetime": (
        "2024-02-30T10:00:00Z",
        "2024-02-03",
        "10:00",
        "now",
        1700000000000,
        "2024-02-03 10:00:00",
        "1700000000000",
    ),
    "timestamp": ("2024-02-03", "now", 1700000000000, "1700000000000"),
    "integer": (1.5, "12", "abc", "1.5", 10**12, "", " 7 ", "1e3", 5000, -5),
    "biginteger": ("abc", 1.5, "1.5", "99999999999999999999", 2**53 + 1, " 7 "),
    "float": ("1.5", "abc", "1,5", "", "1e3", 1e300),
    "decimal": ("1.5", "abc", "1,5", "", 0.1234567890123, 1e20),
    "boolean": ("true", "false", "yes", 1, 0, "1", "0", "t", 2),
    "json": ('{"a": 1}', "plain", "{broken", 5, None, [None], {"a": {"b": "c"}}),
    "blocks": (
        [{"type": "nope", "children": []}],
        [{"type": "paragraph"}],
        [{"type": "heading", "level": 9, "children": [{"type": "text", "text": "x"}]}],
        [{"type": "paragraph", "children": [{"type": "text"}]}],
        [{"type": "paragraph", "children": [{"type": "text", "text": 5}]}],
        [],
    ),
}


def wrong(chance: Chance, attribute: Attribute) -> Any:
    """Return a value that an attribute should reject or convert."""
    own = _WRONG.get(attribute["type"], ())
    return chance.choice(own) if own and chance.random() < 0.6 else chance.choice(_ANY_WRONG)
