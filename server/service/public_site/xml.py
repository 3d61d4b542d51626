"""XML writer that escapes text."""

import re
from collections.abc import Iterable
from html import escape

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def remove_illegal(text: str) -> str:
    return _ILLEGAL.sub("", text)


def element(name: str, content: str = "", **attributes: str) -> str:
    """Return an XML element. In the names of attributes, `__` is replaced with a colon."""
    start = f"{name}{_attributes(attributes)}"
    return f"<{start}>{escape(remove_illegal(content), quote=False)}</{name}>" if content else f"<{start}/>"


def parent_element(name: str, children: Iterable[str], **attributes: str) -> str:
    lines = "\n".join(children)
    return f"<{name}{_attributes(attributes)}>\n{lines}\n</{name}>"


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(
        f' {name.replace("__", ":").rstrip("_")}="{escape(remove_illegal(value))}"'
        for name, value in attributes.items()
    )
