"""A list of other things than documents, in a browser: the list component only needs a description of
them.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.sites import STRING, collection
from tests.studio.conftest import Page, Studio, expect

# Renders a list of the site's files in place of the current page.
FILES = """
async () => {
  const own = document.querySelector("script[type=module]").src;
  const take = (path) => import(new URL(path, own).href);
  const [{ List }, { filtersOf }, { ask }, { usePlace }, { html, render }] = await Promise.all(
    ["list/list.js", "list/operators.js", "api.js", "router.js", "vendor/preact.js"].map(take));
  const text = (name, label) => ({ name, label, type: "string", sort: name });
  const filters = [{ path: "mime", label: "Kind", kind: "text", keys: ["mime"] }];
  const resource = {
    name: "files", heading: "Files", countText: (count) => `${count} files`, selectionLabel: "Selected files",
    title: text("name", "Name"), fixed: [],
    columns: [text("mime", "Kind"), text("ext", "Ending")], usualColumns: ["mime"], filters, choices: [],
    usualSort: "name:asc", isSingle: false, emptyText: "No files yet", links: [],
    placeNote: () => "", addressOf: () => "", create: () => null,
    address: (params) => `${location.pathname}?${params}`,
    actions: [{ name: "note", label: "Note", done: "noted", concerns: ({ values }) => values.ext === ".txt",
      run: async (rows) => { document.title = rows.map(({ title }) => title).join(); return []; } }],
    query: ({ q, conditions, sort, page }) => ({ _q: q, sort, filters: filtersOf(filters, conditions),
      pagination: { page, pageSize: 3 } }),
    load: async (query, columns, signal) => {
      const { data, meta } = await ask("api/upload/files/page", { query, signal });
      const rows = data.map((file) => ({ id: String(file.id), title: file.name, values: file }));
      return { rows, total: meta.pagination.total, pages: meta.pagination.pageCount };
    },
  };
  const place = document.createElement("main");
  document.body.replaceChildren(place);
  const Page = () => html`<${List} resource=${resource} params=${usePlace().params} />`;
  render(html`<${Page} />`, place);
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with five files."""
    files = {f"content/uploads/{name}.txt": name.encode() for name in ("a", "b", "c", "d")}
    files["content/uploads/z.json"] = json.dumps({}).encode()
    studio = Studio(
        tmp_path_factory.mktemp("resources"),
        files={**collection("note", {"title": STRING}), **files},
        separate_modules=True,
    )
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def files(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    page = new_page(storage_state=entered)
    page.goto(site.url)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.evaluate(FILES)
    page.get_by_role("heading", level=1, name="Files").wait_for()
    return page


def titles(page: Page) -> Any:
    return page.locator("tbody th")


def test_files_are_listed_sorted_filtered_and_paged(files: Page) -> None:
    expect(titles(files)).to_have_text(["a.txt", "b.txt", "c.txt"])
    files.get_by_text("5 files").wait_for()
    files.get_by_role("link", name="Next page").click()
    expect(titles(files)).to_have_text(["d.txt", "z.json"])
    files.get_by_role("button", name="Name").click()
    expect(titles(files)).to_have_text(["z.json", "d.txt", "c.txt"])
    files.get_by_role("button", name="Filter").click()
    files.get_by_label("Value").fill("json")
    files.get_by_role("button", name="Add filter").click()
    expect(titles(files)).to_have_text(["z.json"])
    files.get_by_role("button", name="Columns").click()
    files.get_by_label("Ending").check()
    files.get_by_role("cell", name=".json", exact=True).wait_for()
    files.get_by_role("searchbox", name="Search Files").fill("nothing")
    files.get_by_role("button", name="Show all").click()
    expect(titles(files)).to_have_count(3)


def test_what_a_resource_offers_is_done_with_the_selected_rows(files: Page) -> None:
    files.get_by_role("checkbox", name="Select all on this page").check()
    bar = files.get_by_role("region", name="Selected files")
    bar.get_by_text("3 selected").wait_for()
    bar.get_by_role("button", name="Note 3").click()
    expect(bar.get_by_text("selected")).to_have_count(0)
    assert files.title() == "a.txt,b.txt,c.txt"
