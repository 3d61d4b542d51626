"""The text of a new site.yaml."""

from collections.abc import Iterable

from server.formats.yaml.writer import yaml_entry


def settings_text(
    name: str, locales: Iterable[str], readable: Iterable[str], comments: Iterable[str] = ()
) -> str:
    """A site.yaml that lets everybody read some subjects; the first locale is the default one."""
    text, codes = yaml_entry("name", name), list(locales)
    if codes:
        text += f"\nlocales:\n  default: {codes[0]}\n  available: [{', '.join(codes)}]\n"
    text += "\n# Lets a request have populate and pagination together.\n"
    text += "api:\n  populate_with_pagination: allow\n"
    text += "\n# What everybody may read; for everything else a client needs a token.\n"
    text += "".join(f"# {comment}\n" for comment in comments)
    grants = [
        f"    {subject}: [{'find' if subject == 'upload' else 'find, findOne'}]\n" for subject in readable
    ]
    return text + "roles:\n" + ("  public:\n" + "".join(grants) if grants else "  public: {}\n")
