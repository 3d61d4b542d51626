"""The texts of the studio: all of them can be translated, and each translation is complete."""

import json
import re
from pathlib import Path

import pytest

from server.api.studio.routes import compressed
from server.config.model import ACTIONS, KEYS
from tests.studio.messages import Message, messages_in, unwrapped_in
from tests.studio.test_page import MODULES, PAGE

LANGUAGES = sorted(path.stem for path in (PAGE / "messages").glob("*.json"))


def is_translatable(module: str) -> bool:
    return module != "preview/script.js"  # runs in the site's own pages, and shows nothing


@pytest.mark.parametrize("name", [name for name in MODULES if is_translatable(name)])
def test_every_text_of_a_module_can_be_translated(name: str) -> None:
    code = (PAGE / name).read_text()
    found = [(code.count("\n", 0, text.start) + 1, text.text) for text in unwrapped_in(code)]
    assert found == [], "write texts as t`…`, or add what is no text to NOT_WORDS in tests/studio/messages.py"


def test_the_lint_finds_text_wherever_a_user_sees_it() -> None:
    code = """
      const A = { label: "Save" };
      const key = event.key === "Escape" || "If-Match";
      throw new Error(`No branch ${name} here`);
      html`<p class="hint big" title="Very important">Some <code>git add</code> text
          ${"more"} ${t`fine ${"x"}`}</p>
        <${Empty} title="No results" to="list" name="media" />
        <b aria-label=${is ? "yes" : t`no`}>${count}</b>
        <button onClick=${() => ask({ title: "Really?" })} />
        ${plural(2, { one: "One file", other: "{0} files" })}
        ${rows.map((row) => html`<i key="a b">Deep</i>`)}`;
    """
    assert [text.text.strip() for text in unwrapped_in(code)] == [
        '"Save"',
        "`No branch ${name} here`",
        "Very important",
        "Some",
        "text",
        '"more"',
        "No results",
        '"yes"',
        '"Really?"',
        "Deep",
    ]


def test_messages_are_found_in_their_order_of_values() -> None:
    code = r"""
      // t`not a message`, plural(1, x)
      const at = /[`"]/.test(text) ? t`Sends ${html`<b>${t`inner`}</b>`}
        to ${url}` : t`a \`quoted\` ${1 / 2}`;
      plural(of(a, [b]), { one: "One \"x\"", other: "{0} of {1}" }, total);
    """
    found = [message.forms for message in messages_in(code)]
    assert found == [
        {"": "Sends {0} to {1}"},
        {"": "inner"},
        {"": "a `quoted` {0}"},
        {"one": 'One "x"', "other": "{0} of {1}"},
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_every_message_and_no_other(language: str) -> None:
    text = messages_file(language).read_text()
    translations = json.loads(text)
    used = used_messages()
    known = {*used, *settings_messages()}
    assert sorted(known - set(translations)) == [], "messages without a translation"
    assert sorted(set(translations) - known) == [], "translations of messages that no module has"
    assert text == json.dumps(dict(sorted(translations.items())), ensure_ascii=False, indent=1) + "\n"
    for id_, message in used.items():
        forms = translations[id_]
        assert isinstance(forms, str) == ("" in message.forms), id_
        for form in [forms] if isinstance(forms, str) else forms.values():
            assert form.strip()
            # A form for a single number may say "one" instead of the number.
            assert placeholders(form) | {"{0}"} == placeholders(id_) | {"{0}"}, id_
            assert isinstance(forms, dict) or placeholders(form) == placeholders(id_), id_


def test_there_are_languages_and_the_studio_offers_each_of_them() -> None:
    offered = re.search(r"LANGUAGES = \{(.+?)\}", (PAGE / "language.js").read_text())
    assert offered
    assert LANGUAGES
    assert sorted(re.findall(r"(\w+):", offered[1])) == sorted(["en", *LANGUAGES])
    for language in LANGUAGES:
        assert len(compressed(f"messages/{language}.json")) < len(messages_file(language).read_bytes()) / 2


def test_a_message_is_either_a_text_or_has_plural_forms() -> None:
    kinds: dict[str, set[bool]] = {}
    for message in all_messages():
        kinds.setdefault(message.id, set()).add("" in message.forms)
    assert [id_ for id_, both in kinds.items() if len(both) > 1] == []


def test_every_action_and_subject_of_permissions_has_a_name() -> None:
    code = (PAGE / "admin/requests.js").read_text()
    named = set(re.findall(r"^  \"?([\w-]+)\"?: t`", code, re.MULTILINE))
    actions = {action for actions in ACTIONS.values() for action in actions}
    assert sorted(({*ACTIONS} - {""}) - named) == []
    assert sorted(actions - named) == []


def test_numbers_are_written_in_the_language_of_the_studio() -> None:
    assert [name for name in MODULES if ".toFixed(" in (PAGE / name).read_text()] == []


def settings_messages() -> set[str]:
    """Return the ids of the labels and descriptions of the settings that the studio can change."""
    editable = [key.name for key in KEYS.values() if key.editable]
    return {f"{kind}:{name}" for name in editable for kind in ("setting", "help")}


def all_messages() -> list[Message]:
    return [message for name in MODULES for message in messages_in((PAGE / name).read_text())]


def used_messages() -> dict[str, Message]:
    return {message.id: message for message in all_messages()}


def messages_file(language: str) -> Path:
    return PAGE / "messages" / f"{language}.json"


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{\d+\}", text))
