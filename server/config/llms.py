"""The `llms` section of site.yaml (docs/markdown.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.config.public_site import OddName, unknown_type
from server.config.setting import setting
from server.schema.model import Schema

ROLE = "public"


@dataclass(frozen=True, slots=True)
class LlmsSettings:
    """Settings for `/llms.txt`."""

    enabled: bool = setting(
        False, "flag", "Whether `/llms.txt` lists the public documents ([more](markdown.md#llmstxt))."
    )
    title: str = setting("", "text", "The heading of `/llms.txt`.", "the site's `name`")
    summary: str = setting("", "text", "A sentence about the site, for `/llms.txt`.")
    types: tuple[str, ...] = setting(
        (),
        "names",
        "The content types in `/llms.txt`, in this order.",
        "all that the public can `find`",
    )
    url: str = setting(
        "", "URL", "The URL of this server, which is put in front of the links in `/llms.txt`."
    )
    max_size: int = setting(100_000, "size", "The maximum size of `/llms.txt`.", "`100kB`")


def check_llms_names(
    settings: LlmsSettings, roles: Mapping[str, frozenset[str]], schema: Schema
) -> Iterator[OddName]:
    for i, name in enumerate(settings.types):
        if name not in schema.subjects:
            yield unknown_type(name, schema, "llms.types", ("llms", "types", i))
        elif f"{name}.find" not in roles[ROLE]:
            what = f"/llms.txt contains no {name} documents: the public role lacks the find permission"
            yield what, f"add find to roles.public.{name}", ("llms", "types", i)
