"""The documentation site: every public name has an entry and an example, examples run, links lead somewhere."""

import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from urllib.parse import unquote, urlsplit

import pytest

import moqd
from tests.documentation.test_docs import REFERENCE, ROOT, TEXTS
from tests.explorer.browser import CHROMIUM, Browser

EXAMPLE = re.compile(r"(<!-- slow: [^\n]*-->\s*)?^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of code; the mark before it says that it takes seconds."""
PLOTS = {
    "archive_map": ("archive_map",),
    "fronts": ("fronts",),
    "gait": ("draw_pose", "write_video"),
    "learning_curves": ("learning_curves",),
    "overview": ("save_overview",),
}
"""What draws, by its module, besides all that is called `..._figure`."""


def examples(page: Path, *, slow: bool) -> list[str]:
    return [code for mark, code in EXAMPLE.findall(page.read_text()) if slow or not mark]


def run_examples(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, slow: bool) -> None:
    monkeypatch.chdir(folder)
    (folder / "results").symlink_to(ROOT / "results")
    names = {"__name__": f"page_{page.stem}"}
    for code in examples(page, slow=slow):
        exec(compile(code, str(page), "exec"), names)


WITH_EXAMPLES = [page for page in REFERENCE if examples(page, slow=True)]
WITH_LONG_ONES = [page for page in REFERENCE if examples(page, slow=True) != examples(page, slow=False)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples_of_the_reference_run(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_LONG_ONES, ids=lambda page: page.stem)
def test_long_examples_of_the_reference_run(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch, slow=True)


def public_names() -> list[str]:
    functions = [
        f"features.{name}"
        for name, one in inspect.getmembers(moqd.features, inspect.isfunction)
        if one.__module__ == moqd.features.__name__
    ]
    figures = [f"plots.{module}.{name}" for module, names in PLOTS.items() for name in names]
    return [*(name for name in moqd.__all__ if name not in ("features", "plots")), *functions, *figures, *all_figures()]


def all_figures() -> list[str]:
    modules = [import_module(f"moqd.plots.{one.name}") for one in iter_modules(moqd.plots.__path__)]
    return [
        f"{module.__name__.removeprefix('moqd.')}.{name}"
        for module in modules
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if name.endswith("_figure") and one.__module__ == module.__name__
    ]


def test_every_public_name_has_an_entry_and_an_example():
    text = "\n".join(page.read_text() for page in REFERENCE)
    code = "\n".join(code for page in REFERENCE for code in examples(page, slow=True))
    entries = re.findall(r"^\.\. (?:auto\w+|py:type):: moqd\.(\S+)$", text, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert [name for name in public_names() if name not in entries] == []
    assert [name for name in public_names() if not re.search(rf"\b{name.split('.')[-1]}\b", code)] == []


def test_every_command_has_an_entry():
    from moqd.cli.main import COMMANDS

    text = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    for command in COMMANDS:
        assert re.search(rf"^```{{moqd}} {command} .*--help$", text, re.MULTILINE), command


def relative(link: str) -> str:
    """The path that a link names; empty if it leads to another site, or within its page."""
    parts = urlsplit(link)
    return "" if parts.scheme or parts.netloc else unquote(parts.path)


@pytest.mark.parametrize("page", [*TEXTS, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_the_texts_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if path := relative(link):
            assert (page.parent / path).exists(), link


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install one, or set CHROMIUM to it")
def test_code_can_be_copied_and_output_need_not_be(tmp_path):
    """In blocks as Sphinx makes them."""
    block = '<div class="highlight-{} notranslate"><div class="highlight"><pre><span></span>{}\n</pre></div></div>'
    blocks = block.format("python", "<span>import</span> moqd\nprint(1)") + block.format("text", "1")
    static = ROOT / "docs" / "static"
    (tmp_path / "page.html").write_text(f'{blocks}<script defer src="{(static / "copy.js").as_uri()}"></script>')
    with Browser(tmp_path / "chromium") as browser:
        browser.open((tmp_path / "page.html").as_uri())
        browser.wait("document.querySelector('.copy')")
        browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        browser.run("document.querySelectorAll('.copy').forEach((button) => button.click())")
        browser.wait("document.querySelector('.copy').textContent === 'Copied'")
        assert browser.run("document.querySelectorAll('.copy').length") == 1
        assert browser.run("window.copied") == "import moqd\nprint(1)\n"
        browser.run("delete window.copied; navigator.clipboard.writeText = async () => { throw new Error('refused'); }")
        browser.run("document.querySelector('.copy').click()")
        browser.wait("getSelection().toString().includes('print(1)')")


class Links(HTMLParser):
    """What a page of the site refers to, and the places in it that may be referred to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.add(given.get("id") or "")
        self.links += [link for name in ("href", "src") if (link := given.get(name))]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_its_links_lead_somewhere(tmp_path):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    site = tmp_path / "site"
    strictly = ["-b", "html", "-n", "-W", "--keep-going", "-q", "-d", str(tmp_path / "kept")]
    for command in (["docs/gallery.py"], ["-m", "sphinx", *strictly, "docs", str(site)]):
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    pages = {page: Links(page) for page in sorted(site.rglob("*.html")) if page.parent.name != "gallery"}
    assert len(pages) > 30
    for page, found in pages.items():
        for link in found.links:
            if path := relative(link):
                assert (page.parent / path).exists(), (page, link)
            target = page.parent / path if path else page
            fragment = urlsplit(link).fragment
            if fragment and not urlsplit(link).scheme and target.resolve() in pages:
                assert fragment in pages[target.resolve()].places, (page, link)
