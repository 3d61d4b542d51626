"""The language server in a process of its own, as an editor runs it."""

import json
import shutil
from io import BytesIO
from pathlib import Path

import pytest

from server.lsp.diagnostics import MAX_QUICK_FIXES
from server.lsp.protocol import MessageReader, MessageWriter
from tests.lsp.client import ResponseError, language_server
from tests.lsp.edits import apply_edits
from tests.sites import STRING, collection, relation, write

FILES = {
    "site.yaml": "name: A\n",
    **collection("author", {"name": {**STRING, "required": True}}),
    **collection(
        "article",
        {
            "title": STRING,
            "author": relation("manyToOne", "author"),
            "kind": {"type": "enumeration", "enum": ["news", "essay"]},
        },
    ),
    "content/authors/ann.yaml": "name: Ann\n",
    "content/articles/a.md": "---\ntitle: A\nauthor: ann\n---\nText\n",
}
ARTICLE, NOTE = "content/articles/a.md", "content/notes/n.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def messages(diagnostics: list[dict[str, str]]) -> list[str]:
    return [one["message"] for one in diagnostics]


def test_a_text_is_checked_while_it_is_typed(root: Path) -> None:
    with language_server(root) as client:
        assert client.start()["serverInfo"]["name"] == "bifolio"
        assert client.open(ARTICLE) == []
        client.change(ARTICLE, "---\ntitle: A\nauthor: bob\n---\nText\n")
        [found] = client.until_diagnosed(ARTICLE, bool)
        assert found["code"] == "dangling"
        assert found["range"] == {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 11}}
        client.change(ARTICLE, "---\ntitle: A\nauthor: ann\n---\nText\n")
        assert client.diagnostics(ARTICLE) == []
        assert client.stop() == 0
        assert client.errors == b""


def test_a_value_error_does_not_hide_links_and_relations(root: Path) -> None:
    write(root, collection("note", {"body": {"type": "richtext"}, "on": relation("manyToMany", "author")}))
    with language_server(root) as client:
        client.start()
        client.open(NOTE, "---\non: [bob, {a: 1}]\n---\n[x](d.md)\n")
        found = client.until_diagnosed(NOTE, lambda shown: len(shown) == 3)
        assert [(one["code"], one["range"]["start"]["line"]) for one in found] == [
            ("value", 1),
            ("dangling", 1),
            ("broken-link", 3),
        ]


def test_changes_of_other_files_on_disk_are_followed(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        (root / "content/authors/ann.yaml").rename(root / "content/authors/anna.yaml")
        client.until_diagnosed(ARTICLE, bool)
        (root / "content/authors/anna.yaml").rename(root / "content/authors/ann.yaml")
        count = len(client.messages)
        client.wait(lambda m: m.get("params", {}).get("diagnostics") == [], count)


def test_a_fix_is_offered_for_its_problem_and_for_the_whole_file(root: Path) -> None:
    text = "---\ntitle: A\nauthor: Ann\nkind: News\n---\nText\n"
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE, text)
        client.until_diagnosed(ARTICLE, lambda found: sum("--fix" in one for one in found) == 2)
        request = client.at(ARTICLE, 0, 0, context={"diagnostics": []})
        request["range"] = {"start": {"line": 2, "character": 9}, "end": {"line": 2, "character": 9}}
        fix, fix_all = client.ask("textDocument/codeAction", request)
        assert (fix["title"], fix["isPreferred"]) == ('Change to "ann"', True)
        [change] = fix["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": client.uri(ARTICLE), "version": 1}
        assert apply_edits(text, change["edits"]) == text.replace("Ann", "ann")
        [change] = fix_all["edit"]["documentChanges"]
        assert apply_edits(text, change["edits"]) == text.replace("Ann", "ann").replace("News", "news")
        assert (root / ARTICLE).read_text() == FILES[ARTICLE]  # nothing is written


def test_only_the_first_problems_in_a_large_range_get_quick_fixes(root: Path) -> None:
    keys = "".join(f"titel{'l' * i}: A\n" for i in range(MAX_QUICK_FIXES + 10))
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE, f"---\ntitle: A\n{keys}---\n")
        client.until_diagnosed(ARTICLE, lambda found: len(found) == MAX_QUICK_FIXES + 10)
        request = client.at(ARTICLE, 0, 0, context={"diagnostics": [], "only": ["quickfix"]})
        request["range"] = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        fixes = client.ask("textDocument/codeAction", request)
        assert 0 < len(fixes) <= MAX_QUICK_FIXES
        [problem] = fixes[0]["diagnostics"]
        assert problem["range"] == {
            "start": {"line": 2, "character": 0},
            "end": {"line": 2, "character": 5},
        }


def test_invalid_settings_and_schemas_are_shown_until_they_are_mended(root: Path) -> None:
    (root / "site.yaml").write_text("nam: A\n")
    with language_server(root) as client:
        client.start()
        [found] = client.until_diagnosed("site.yaml", bool)
        assert found["message"] == 'unknown key "nam". Did you mean "name"?'
        (root / "site.yaml").write_text("name: A\n")
        client.until_diagnosed("site.yaml", lambda found: not found)
        assert client.open(ARTICLE, "---\ntitle: A\nauthor: bob\n---\n") != []


def test_unsaved_settings_are_checked(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open("site.yaml")
        client.change("site.yaml", "name: A\ncolour: red\n")
        [found] = client.until_diagnosed("site.yaml", bool)
        assert (found["code"], found["range"]["start"]["line"]) == ("settings", 1)


def test_files_outside_of_sites_have_no_diagnostics(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    with language_server(other) as client:
        client.start()
        document = {"uri": client.uri("a.md"), "languageId": "markdown", "version": 1, "text": "---\na: [\n"}
        client.notify("textDocument/didOpen", {"textDocument": document})
        position = client.at("a.md", 1, 3)
        assert client.ask("textDocument/codeAction", {**position, "range": {}, "context": {}}) == []
        assert not [one for one in client.messages if one.get("method")]
        assert client.stop() == 0


def test_two_sites_are_open_at_once(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, {**FILES, "content/authors/bob.yaml": "name: Bob\n"})
    text = "---\ntitle: A\nauthor: bob\n---\n"
    with language_server(root) as client:
        client.start(folders=[root, other])
        assert len(client.open(ARTICLE, text)) == 1
        client.folder = other
        assert client.open(ARTICLE, text) == []


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 1000000000000\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Type: application/json\r\n\r\n",
        b"\0\xff\r\n\r\n",
        b"",
    ],
)  # fmt: skip
def test_an_invalid_header_is_answered_and_the_next_message_is_read(root: Path, header: bytes) -> None:
    with language_server(root) as client:
        client.start()
        assert client.process.stdin is not None
        client.process.stdin.write(header + b'{"id": 99, "method": "shutdown"}')
        if not header:
            client.process.stdin.write(b"\r\n")
        assert client.open(ARTICLE) == []
        refused = client.wait(lambda message: "error" in message)
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        assert client.stop() == 0
        assert client.errors.count(b"\n") == 1


class Stream(BytesIO):
    """A stream that allows no large read."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 <= size <= 2**20
        return super().read(size)


def test_an_announced_length_is_not_allocated_at_once() -> None:
    written = BytesIO()
    reader = MessageReader(Stream(b"Content-Length: 60000000\r\n\r\n{}"), MessageWriter(written))
    assert reader.read() is None
    data = json.dumps({"method": "x" * 3_000_000}).encode()
    reader = MessageReader(
        Stream(b"Content-Length: %d\r\n\r\n%b" % (len(data), data)), MessageWriter(written)
    )
    message = reader.read()
    assert message is not None
    assert len(message.method) == 3_000_000
    assert written.getvalue() == b""


def test_a_message_that_is_cut_off_ends_the_server_with_one_line(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        assert client.process.stdin is not None
        client.process.stdin.write(b'Content-Length: 50\r\n\r\n{"id": ')
        client.process.stdin.close()
        assert client.process.wait(60) == 1
        client.wait(lambda message: "7 of 50 bytes" in str(message))
        assert client.errors.count(b"\n") <= 1


@pytest.mark.parametrize(
    "data",
    [
        b'{"id": 99, "method": "textDocument/hover", "params": {"textDocument": {"uri": "file:///\\ud800"}}}',
        b'{"id": 99, "method": "workspace/symbol", "params": {"query": "\\udc00\\ud800 \\\\ud800"}}',
        b'{"id": 99, "method": "\\uD83D\\uDE00 \\udfff"}',
        b'{"id": 99, "method": ""}',
        b'{"id": 99, "method": 3}',
        b'{"id": 99, "method": null}',
        b'{"id": 99, "method": "$/cancelRequest", "params": {"id": 3}}',
    ],
)  # fmt: skip
def test_each_request_with_an_id_is_answered(root: Path, data: bytes) -> None:
    with language_server(root) as client:
        client.start()
        client.send_bytes(data)
        client.wait(lambda message: message.get("id") == 99)
        assert client.stop() == 0


def test_surrogates_in_a_message_keep_pairs_and_lengths() -> None:
    data = rb'{"method": "x", "params": "\ud83d\ude00 \ud83d \ude00\\ud800 \n"}'
    stream = BytesIO(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    message = MessageReader(stream, MessageWriter(BytesIO())).read()
    assert message is not None
    assert message.params == "\U0001f600 \ufffd \ufffd\\ud800 \n"


def test_a_cancellation_without_a_valid_id_is_ignored(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        for id_ in ([], {}, None, [[]]):
            client.notify("$/cancelRequest", {"id": id_})
        assert client.open(ARTICLE) == []
        assert client.stop() == 0
        assert client.errors == b""


@pytest.mark.parametrize(
    "path",
    ["x" * 300 + "/a.md", "content/articles/" + "x" * 5000 + ".md", "x/" * 3000],
    ids=["folder", "file", "path"],
)
def test_a_file_whose_name_is_too_long_has_no_results(root: Path, path: str) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        for method in ("hover", "completion", "definition", "documentLink", "codeAction", "references"):
            found = client.ask(f"textDocument/{method}", client.at(path, 0, 0, range={}))
            assert found in (None, [], {"isIncomplete": False, "items": []})
        assert client.stop() == 0
        assert client.errors == b""


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[]", b"3", b'{"method": 3}', b'{"id": {}, "method": "x"}', b"\xff\xfe", b"",
        b'{"method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///x"}}}',
        b'{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "nonsense:\\u0000"}}}',
        b'{"method": "textDocument/didChange", "params": []}',
        b'{"method": "workspace/didChangeWorkspaceFolders", "params": {"event": {"added": [1]}}}',
    ],
)  # fmt: skip
def test_invalid_messages_are_skipped(root: Path, data: bytes) -> None:
    with language_server(root) as client:
        client.start()
        client.send_bytes(data)
        assert client.open(ARTICLE) == []
        assert client.stop() == 0
        assert b"Traceback" not in client.errors


def test_reading_goes_on_after_an_invalid_header(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        assert client.process.stdin is not None
        client.process.stdin.write(b"nonsense\r\n\r\nContent-Length: many\r\n\r\n{}\r\n")
        assert client.open(ARTICLE) == []


def test_requests_are_refused_before_initialize_and_after_shutdown(root: Path) -> None:
    with language_server(root) as client:
        with pytest.raises(ResponseError, match="initialize"):
            client.ask("textDocument/codeAction", {})
        client.start()
        with pytest.raises(ResponseError, match="not supported"):
            client.ask("textDocument/unknown", {})
        with pytest.raises(ResponseError, match="uri"):
            client.ask("textDocument/codeAction", {"textDocument": 3})
        client.ask("shutdown")
        with pytest.raises(ResponseError, match="shut down"):
            client.ask("textDocument/codeAction", {})
        client.notify("exit", {})
        assert client.process.wait(60) == 0


def test_a_cancelled_request_is_answered_with_its_error(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        ids = [client.begin("textDocument/codeAction", client.at(ARTICLE, 0, 0, range={})) for _ in range(50)]
        client.notify("$/cancelRequest", {"id": ids[-1]})
        answer = client.wait(lambda m: m.get("id") == ids[-1])
        assert "result" in answer or answer["error"]["code"] == -32800


def test_the_end_of_the_input_ends_the_server(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(60) == 1


def test_the_folder_of_a_site_can_disappear(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        shutil.rmtree(root)
        client.change(ARTICLE, "---\nauthor: bob\n---\n")
        client.until_diagnosed(ARTICLE, bool)
        assert client.stop() == 0
        assert b"Traceback" not in client.errors


def test_positions_outside_of_the_text_are_accepted(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        client.versions[ARTICLE] = 2
        far = {"line": 10**9, "character": 10**9}
        changes = [
            {"range": {"start": far, "end": far}, "text": "more"},
            {"range": {"start": {"line": -3, "character": "x"}, "end": None}, "text": ""},
            {
                "range": {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 11}},
                "text": "bob",
            },
        ]
        document = {"uri": client.uri(ARTICLE), "version": 2}
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        [found] = client.until_diagnosed(ARTICLE, bool)
        assert "bob" in found["message"]


def test_a_document_of_five_megabytes_is_checked(root: Path) -> None:
    text = "---\ntitle: A\nauthor: bob\n---\n" + "Some words.\n" * 420_000
    with language_server(root) as client:
        client.start()
        assert len(client.open(ARTICLE, text)) == 1
        client.change(ARTICLE, json.loads(json.dumps(text.replace("bob", "ann"))))
        client.until_diagnosed(ARTICLE, lambda found: not found)


def test_a_site_can_be_named(root: Path) -> None:
    with language_server(None, "--site", str(root)) as client:
        client.folder = root
        client.start(folders=[])
        assert client.open(ARTICLE) == []


def test_text_units_are_those_of_utf_16(root: Path) -> None:
    text = "---\ntitle: A\nkind: 🌊é🌊x\n---\n"
    with language_server(root) as client:
        client.start()
        [found] = client.open(ARTICLE, text)
        assert found["range"] == {"start": {"line": 2, "character": 6}, "end": {"line": 2, "character": 12}}


def test_settings_that_become_invalid_on_disk_are_shown_until_they_are_mended(root: Path) -> None:
    with language_server(root) as client:
        client.start()
        client.open(ARTICLE)
        (root / "site.yaml").write_text("name: [A\n")
        [found] = client.until_diagnosed("site.yaml", bool)
        assert found["severity"] == 1
        client.change(ARTICLE, "---\nauthor: bob\n---\n")  # The last valid settings are used.
        client.until_diagnosed(ARTICLE, bool)
        (root / "site.yaml").write_text("name: B\n")
        client.until_diagnosed("site.yaml", lambda found: not found)


def test_a_new_schema_applies_once_it_is_saved(root: Path) -> None:
    text = "---\ntitle: A\ncolour: red\n---\n"
    with language_server(root) as client:
        client.start()
        [found] = client.open(ARTICLE, text)
        assert found["code"] == "unknown-key"
        schema = json.loads((root / "content-types/article.json").read_text())
        schema["attributes"]["colour"] = {"type": "string"}
        (root / "content-types/article.json").write_text(json.dumps(schema))
        client.until_diagnosed(ARTICLE, lambda found: not found)


def test_features_over_the_protocol(root: Path) -> None:
    with language_server(root) as client:
        capabilities = client.start()["capabilities"]
        assert capabilities["positionEncoding"] == "utf-16"
        client.open(ARTICLE)
        found = client.ask("textDocument/completion", client.at(ARTICLE, 2, 8))
        [item] = found["items"]
        assert item["label"] == "ann"
        assert "Ann" in client.ask("completionItem/resolve", item)["documentation"]["value"]
        assert client.ask("textDocument/hover", client.at(ARTICLE, 2, 9))["contents"]["kind"] == "markdown"
        [place] = client.ask("textDocument/definition", client.at(ARTICLE, 2, 9))
        assert place["uri"] == client.uri("content/authors/ann.yaml")
        [place] = client.ask("textDocument/references", client.at("content/authors/ann.yaml", 0, 0))
        assert place["uri"] == client.uri(ARTICLE)
        for method in ("documentSymbol", "foldingRange", "documentLink"):
            assert client.ask(f"textDocument/{method}", client.at(ARTICLE, 0, 0)), method
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        hints = client.ask("textDocument/inlayHint", client.at(ARTICLE, 0, 0, range=whole))
        assert [hint["label"] for hint in hints] == ["Ann"]
        assert [s["name"] for s in client.ask("workspace/symbol", {"query": "ann"})] == ["Ann"]
        edit = client.ask("textDocument/rename", client.at(ARTICLE, 2, 9, newName="anna"))
        assert len(edit["documentChanges"]) == 2
        with pytest.raises(ResponseError, match="not a valid file name"):
            client.ask("textDocument/rename", client.at(ARTICLE, 2, 9, newName=".x"))
        arguments = [{"type": "author", "name": "zoe"}]
        client.ask("workspace/executeCommand", {"command": "bifolio.newDocument", "arguments": arguments})
        applied = client.wait(lambda message: message.get("method") == "workspace/applyEdit")
        assert applied["params"]["edit"]["documentChanges"][0]["kind"] == "create"
        assert not (root / "content/authors/zoe.md").exists()
        with pytest.raises(ResponseError):
            client.ask("workspace/executeCommand", {"command": "rm", "arguments": []})
        client.send({"id": applied["id"], "result": {"applied": True}})
        assert client.stop() == 0
        assert client.errors == b""
