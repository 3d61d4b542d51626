"""Folders of Markdown files as used by static site generators, for the tests of `bifolio init`."""

from collections.abc import Mapping

from tests.sites import Files


def page(matter: str, body: str = "Text.") -> str:
    """Return the content of a Markdown file."""
    return f"---\n{matter}\n---\n\n{body}\n"


def _hugo_post(i: int, **more: str) -> str:
    lines = {
        "title": f"Post {i}",
        "date": f"2024-01-{i + 1:02d}",
        "draft": "false",
        "weight": str(10 * i),
        "version": f"1.{i}0",
        "tags": "[sea, fog]" if i % 2 else "[night]",
        "kind": "note" if i % 2 else "essay",
        "author": "nell" if i % 2 else "team/ida",
        **more,
    }
    return page("\n".join(f"{key}: {value}" for key, value in lines.items()))


HUGO: Files = {
    "hugo.toml": 'title = "Tides"\ndefaultContentLanguage = "en"\n',
    "archetypes/default.md": "+++\ntitle = 'x'\n+++\n",
    "themes/some/README.md": "A theme.\n",
    "public/index.html": "built",
    "content/_index.md": page("title: Tides"),
    "content/about.md": page("title: About\nlayout: about"),
    "content/about.fr.md": page("title: À propos\nlayout: about"),
    "content/posts/_index.md": page("title: Posts"),
    "content/authors/_index.md": page("title: Authors"),
    **{f"content/posts/post-{i}.md": _hugo_post(i) for i in range(8)},
    "content/posts/post-1.fr.md": _hugo_post(1, title="Billet 1"),
    "content/posts/bundle/index.md": _hugo_post(8, draft="true"),
    "content/posts/bundle/index.fr.md": _hugo_post(8, title="Billet 8"),
    "content/posts/bundle/cover.jpg": b"\xff\xd8",
    "content/posts/bundle/data.json": '{"rows": []}',
    "content/places/quay.yaml": "title: Quay\ncreatedAt: 2024-01-02\n",
    "content/authors/nell.md": page("name: Nell\nemail: nell@example.org\ncountry: NO\nzip: 01234"),
    "content/authors/team/ida.md": page("name: Ida\nemail: ida@example.org\ncountry: SE\nzip: 04321"),
}

JEKYLL: Files = {
    "_config.yml": "title: Tides\nlang: en\n",
    "_layouts/post.html": "<html>",
    "_includes/head.md": "include",
    "_site/index.html": "built",
    "README.md": "For readers.\n",
    "index.md": page("layout: home\ntitle: Home"),
    "about.markdown": page("layout: page\ntitle: About\npermalink: /about/"),
    "_drafts/later.md": page("title: Later"),
    **{
        f"_posts/2024-01-{i + 1:02d}-post-{i}.md": page(
            f"layout: post\ntitle: 'Post {i}: the tides'\ndate: 2024-01-{i + 1:02d} 10:00:00 +0100\n"
            f"categories: {'sea fog' if i % 2 else '[night]'}\ntags: [a, b]\nrating: {i}.5\npublished: true"
        )
        for i in range(6)
    },
    "_posts/2024-02-01-long.markdown": page(
        "layout: post\ntitle: Long\ndate: 2024-02-01\ncategories: []\ntags: []\nrating: 2\npublished: false"
    ),
    "_recipes/bread.md": page("title: Bread\nminutes: 90"),
    "_recipes/soup.md": page("title: Soup\nminutes: 30"),
}

PLAIN: Files = {
    "README.md": "# Notes\n",
    "package.json": "{}",
    "node_modules/x/a.md": "no content",
    "notes/a.md": "# No front matter\n",
    "notes/deep/b.md": page("title: B\nrelated: [a, deep/c]"),
    "notes/deep/c.md": page("title: C\nrelated: [deep/b]"),
    "people/ida.md": page("name: Ida\nborn: 1970-02-03\nnick name: I\n2nd: x\nstatus: gone"),
    "people/nell.md": page("name: Nell\nborn: 1971-02-03\nnick name: N"),
}

ASTRO: Files = {
    "astro.config.mjs": "export default { i18n: { defaultLocale: 'fr', locales: ['fr', 'en'] } }\n",
    "src/content.config.ts": "export {}",
    "src/pages/index.astro": "<html>",
    "src/pages/contact.md": page("layout: ../layouts/Base.astro\ntitle: Contact"),
    "src/content/blog/first.md": page(
        "title: First\npubDate: 'Jul 08 2022'\nauthor: nell\nrelated: [second]\nslug: first-post"
    ),
    "src/content/blog/second.mdx": page(
        "title: Second\npubDate: '2022-07-15'\nauthor: ida\nrelated: []\nslug: second-post"
    ),
    "src/content/authors/nell.json": '{"name": "Nell", "rank": 1, "score": 1.5, "active": true}',
    "src/content/authors/ida.json": '{"name": "Ida", "rank": 2, "score": 2.0, "active": false}',
    "src/content/docs/guides/start.mdx": page("title: Commencer"),
    "src/content/docs/en/guides/start.mdx": page("title: Start"),
    "src/content/docs/index.mdx": page("title: Accueil"),
}


DOCUSAURUS: Files = {
    "docusaurus.config.js": "module.exports = {i18n: {defaultLocale: 'fr', locales: ['fr', 'en']}}\n",
    "README.md": "# Docs\n",
    "docs/intro.md": page("sidebar_position: 1"),
    "docs/guide/_category_.json": '{"label": "Guide"}',
    "docs/guide/start.mdx": page("sidebar_position: 2"),
    "blog/2024-01-01-hello.md": page("title: Bonjour\nauthors: [ida]"),
    "blog/authors.yml": "ida:\n  name: Ida\n",
    "i18n/en/docusaurus-plugin-content-docs/current/intro.md": page("sidebar_position: 1", "Hello."),
    "i18n/en/docusaurus-plugin-content-docs/current/guide/start.mdx": page("sidebar_position: 2", "Start."),
    "i18n/en/docusaurus-plugin-content-blog/2024-01-01-hello.md": page("title: Hello"),
    "i18n/en/code.json": '{"theme.common": {"message": "x"}}',
}

VITEPRESS: Files = {
    "package.json": "{}",
    "docs/.vitepress/config.mts": "export default {}\n",
    "docs/index.md": page("layout: home\nhero:\n  name: X"),
    "docs/guide/start.md": "# Start\n",
    "docs/fr/index.md": page("layout: home"),
    "docs/fr/guide/start.md": "# Commencer\n",
}

MKDOCS: Files = {
    "mkdocs.yml": "site_name: Tides\n",
    "docs/index.md": "# Tides\n",
    "docs/about/license.md": "# License\n",
    "docs/img/tide.png": b"\x89PNG",
    "README.md": "# Tides\n",
}

ELEVENTY: Files = {
    "eleventy.config.js": "export default {}\n",
    "src/content/blog/blog.json": '{"layout": "post", "tags": ["posts"]}',
    "src/content/blog/blog.11tydata.json": '{"eleventyExcludeFromCollections": true}',
    "src/content/blog/first.md": page("title: First"),
    "src/content/blog/second/index.md": page("title: Second"),
    "src/content/blog/second/tide.jpg": b"\xff\xd8",
    "_data/metadata.json": '{"title": "Tides"}',
}

HUGO_BUNDLES: Files = {
    "hugo.yaml": "baseURL: https://tides.example.org\nlanguageCode: en-us\ntitle: Tide Tables\n",
    "content/_index.md": page("title: Home"),
    "content/about/index.md": page("title: About"),
    "content/about/me.png": b"\x89PNG",
    "content/contact/index.md": page("title: Contact\nemail: ida@example.org"),
    "content/contact/index.fr.md": page("title: Contactez-nous\nemail: ida@example.org"),
    "content/posts/_index.md": page("title: Posts"),
    "content/posts/foo/index.md": page("title: Foo\ncover: cover.jpg"),
    "content/posts/foo/cover.jpg": b"\xff\xd8",
    "content/posts/2023/bar/index.md": page("title: Bar"),
    "content/posts/plain.md": page("title: Plain"),
    "data/authors.yaml": "ida: {name: Ida}\n",
    "i18n/en.yaml": "hello: Hi\n",
}

ELEVENTY_BASE_BLOG: Files = {
    "eleventy.config.js": "export default {}\n",
    "content/content.11tydata.js": "export default {}\n",
    "content/index.md": page("layout: home.njk"),
    "content/about/index.md": page("title: About"),
    "content/blog/blog.11tydata.js": "export default {}\n",
    "content/blog/posts.json": '{"layout": "post"}',
    "content/blog/first.md": page("title: First\ndate: 2018-05-01"),
    "content/blog/fourth/fourth.md": page("title: Fourth\ndate: 2018-09-30"),
    "content/blog/fourth/possum.jpg": b"\xff\xd8",
    "content/feed/feed.njk": "{{ title }}\n",
    "_data/metadata.js": "export default {}\n",
}

ELEVENTY_SRC: Files = {
    ".eleventy.js": "module.exports = {}\n",
    "src/_data/site.json": "{}",
    "src/_includes/base.njk": "{{ content }}\n",
    "src/index.md": page("title: Home"),
    "src/posts/posts.json": '{"layout": "post"}',
    "src/posts/a.md": page("title: A"),
    "src/posts/b.md": page("title: B"),
}

VITEPRESS_TOP: Files = {
    ".vitepress/config.mts": "export default {}\n",
    "package.json": "{}",
    "index.md": page("layout: home"),
    "markdown-examples.md": "# Markdown\n",
}


def rust_blog(posts: int = 746) -> Files:
    """Return a Zola site with the structure of the Rust blog: TOML front matter, a path, authors and two
    tables.
    """
    files: Files = {
        "config.toml": 'title = "Rust Blog"\nbase_url = "https://blog.example.org"\n',
        "content/_index.md": '+++\ntitle = "Blog"\nsort_by = "date"\n[extra]\nindex_title = "News"\n+++\n',
        "content/inside/_index.md": '+++\ntitle = "Inside"\n+++\n',
    }
    for i in range(posts):
        folder, day = ("inside/" if i % 4 == 0 else ""), f"{2015 + i % 10}-{i % 12 + 1:02d}-{i % 28 + 1:02d}"
        lines = [
            f'path = "{folder}{day.replace("-", "/")}/post-{i}"',
            f'title = "Announcing Rust 1.{i}.0"',
            'authors = ["The Rust Release Team"]'
            if i % 3
            else 'authors = [\'Ida\', "Nell \\"N\\" Trevanion"]',
            *([f'aliases = ["{day}-post-{i}.html"]'] if i % 2 else []),
            *(["draft = true"] if i == 5 else []),
            "",
            "[extra]",
            'team = "the release team" # who signs',
            f"release = {'true' if i % 3 else 'false'}",
            *(["", "[taxonomies]", 'tags = ["release"]'] if i % 5 == 0 else []),
        ]
        body = f"The team is happy to announce 1.{i}.0.\n\n```toml\n[dependencies]\n```\n"
        files[f"content/{folder}{day}-post-{i}.md"] = "+++\n" + "\n".join(lines) + f"\n+++\n\n{body}"
    return files


def ruby_site() -> Files:
    """Return a Jekyll site with the structure of www.ruby-lang.org: a folder in the root for each locale."""
    news = {
        "en": ("2013-02-01-release", "2013-02-02-release", "2013-02-03-release"),
        "ja": ("2013-02-01-release", "2013-02-09-rubykaigi"),
        "zh_cn": ("2013-02-02-release",),
    }
    files: Files = {
        "_config.yml": "markdown: kramdown\npermalink: pretty\n",
        "README.md": "www.ruby-lang.org\n=================\n",
        "_data/locales/en.yml": "posted_by: Posted by\n",
        "_data/releases.yml": "- version: 2.0.0\n",
    }
    for code, names in news.items():
        for name in names:
            matter = f'layout: news_post\ntitle: "{code} {name}"\nauthor: "Ida"\nlang: {code}\ntags: security'
            files[f"{code}/news/_posts/{name}.md"] = page(matter)
        for name in ("about", "documentation"):
            matter = f'layout: page\ntitle: "{name}"\nlang: {code}'
            files[f"{code}/{name}/index.md"] = page(matter)
    return files


def directory() -> Files:
    """Return YAML files with the structure of opensource-observer/oss-directory: projects by letter, and
    collections.
    """
    names = ("aave", "across", "babel", "1inch", "deno")
    files: Files = {
        "README.md": "# OSS Directory [![License: Apache 2.0][badge]][license]\n\n[badge]: x\n",
        "LICENSE": "Apache\n",
        "package.json": '{"name": "oss-directory"}',
        "src/index.ts": "export {}\n",
        "src/resources/schema/project.json": '{"$id": "project.json"}',
        "src/utils/a.ts": "export {}\n",
        "data/projects/README.md": "# Projects\n",
    }
    for i, name in enumerate(names):
        more = [
            "websites:\n  - url: https://example.org",
            "github:\n  - url: https://git.example.org/x",
            f"token: {name}",
        ]
        lines = ["version: 7", f"name: {name}", f"display_name: {name.title()}", *more[: i % 4]]
        files[f"data/projects/{name[0]}/{name}.yaml"] = "\n".join(lines).replace("1Inch", "1inch") + "\n"
    for name in ("defi", "runtimes"):
        chosen = "".join(f"  - {each}\n" for each in (names[:2] if name == "defi" else names[2:]))
        files[f"data/collections/{name}.yaml"] = (
            f"version: 7\nname: {name}\ndisplay_name: {name.title()}\nprojects:\n{chosen}"
        )
    return files


TREES: Mapping[str, Files] = {
    "hugo": HUGO,
    "jekyll": JEKYLL,
    "plain": PLAIN,
    "astro": ASTRO,
    "docusaurus": DOCUSAURUS,
    "vitepress": VITEPRESS,
    "mkdocs": MKDOCS,
    "eleventy": ELEVENTY,
    "hugo-bundles": HUGO_BUNDLES,
    "eleventy-base-blog": ELEVENTY_BASE_BLOG,
    "eleventy-src": ELEVENTY_SRC,
    "vitepress-top": VITEPRESS_TOP,
}
