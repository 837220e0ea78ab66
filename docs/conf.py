"""The documentation site: `make docs` builds it into site/, strictly and offline."""

import inspect
import io
import re
import shutil
import sys
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any

import sphinx.util.typing
from docutils import nodes
from numpy.typing import ArrayLike
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import moqd
from moqd.cli.main import COMMANDS
from moqd.core.metrics import METRICS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import notebooks  # noqa: E402

RESULTS = HERE.parent / "results"

project = "moqd"
author = "The moqd authors"
release = moqd.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_built"]
html_theme = "furo"
html_title = f"moqd {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_extra_path = ["_built"]  # what gallery.py makes
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "material"

smartquotes = False  # or flags lose a hyphen
default_role = "code"  # docstrings write `names` as Markdown does
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
nitpick_ignore_regex = [
    (r"py:.*", r"(?!moqd\.).*"),  # other people's names, which are documented elsewhere
    (r"py:.*", r"moqd\.\w+\..*"),  # what is not public
]


def write_notebooks() -> None:
    """Beside their sources: each as a page, and as a file for Jupyter."""
    for path in sorted(notebooks.FOLDER.glob("*.py")):
        cells = notebooks.cells_of(path.read_text(encoding="utf-8"))
        path.with_suffix(".md").write_text(notebooks.page(path.stem, cells), encoding="utf-8")
        path.with_suffix(".ipynb").write_text(notebooks.notebook(cells), encoding="utf-8")


class CommandLine(SphinxDirective):
    """What a command prints, run when the site is built: `moqd` with the words of the directive's argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        command, *words = self.arguments[0].split()
        text = io.StringIO()
        try:
            code = import_module(f"moqd.cli.{command}").main(words, Console(file=text, width=100))
        except SystemExit as end:  # which is how --help ends
            code = end.code
        if code:
            raise self.error(f"moqd {self.arguments[0]} ended with code {code}")
        block = nodes.literal_block(text.getvalue(), text.getvalue().strip("\n"))
        block["language"] = "text"
        return [block]


class Overview(SphinxDirective):
    """The commands, each with what it does."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(f"{f'moqd {name} {example}':<38}{summary}" for name, (example, summary) in COMMANDS.items())
        block = nodes.literal_block(text, text)
        block["language"] = "text"
        return [block]


class Metrics(SphinxDirective):
    """The table of metrics."""

    def run(self) -> list[nodes.Node]:
        lines = ["| column of `metrics.csv` | what it is | better |", "| --- | --- | --- |"]
        for name, metric in METRICS.items():
            lines.append(f"| `{name}` | {metric.meaning} | {'lower' if metric.less_is_better else 'higher'} |")
        return self.parse_text_to_nodes("\n".join(lines))


def without_empty_words(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Python's own words for a field that has no docstring say nothing."""
    if lines and re.match(r"Alias for field number \d+", lines[0]):
        lines.clear()
    if what == "class" and lines and re.match(r"\w+\(.*\)$", " ".join(lines).strip()):
        lines.clear()  # what a dataclass without a docstring says


def fields_without_types(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Of a NamedTuple or a dataclass: the types of its fields are said below, field by field.

    Elsewhere, a constant that is a default is shown by its value.
    """
    if what != "class" or not (hasattr(obj, "_fields") or is_dataclass(obj)):
        known = getattr(obj.__init__ if what == "class" else obj, "__globals__", {})
        value = lambda found: repr(known.get(found[1], found[1]))  # noqa: E731
        return (signature and re.sub(r"(?<== )([A-Z_]{2,})(?=[,)])", value, signature), returns)
    parameters = [one for one in inspect.signature(obj).parameters.values() if not one.name.startswith("_")]
    shown = [
        one.replace(annotation=one.empty, default=one.default if isinstance(one.default, PLAIN) else DOTS)
        if one.default is not one.empty
        else one.replace(annotation=one.empty)
        for one in parameters
    ]
    return str(inspect.Signature(shown)), None


PLAIN = (str, int, float, tuple, NoneType)


class Dots:
    """A default that is too long to be shown."""

    def __repr__(self) -> str:
        return "..."


DOTS = Dots()


ARRAY = "jaxlib._jax.Array"


def name_types() -> None:
    """Types that stand for many have their own names, and arrays are JAX's `Array`, wherever that is defined."""
    modes = ("fully-qualified-except-typing", "fully-qualified", "smart")
    original = sphinx.util.typing.stringify_annotation
    long = {
        original(alias, mode).replace(ARRAY, "Array"): name
        for mode in modes
        for alias, name in ((ArrayLike, "~numpy.typing.ArrayLike"), (moqd.Key, "~moqd.Key"))
    }

    def named(annotation: Any, /, mode: str = modes[0], *, short_literals: bool = False) -> str:
        text = original(annotation, mode, short_literals=short_literals).replace(ARRAY, "Array")
        for many, name in long.items():
            text = text.replace(many, name if mode == "smart" else name.rpartition(".")[2])
        return text

    for module in list(sys.modules.values()):
        if getattr(module, "stringify_annotation", None) is original:
            module.stringify_annotation = named  # type: ignore[attr-defined]


TITLES = {
    name: title for title, name in re.findall(r"^(.+) <([\w-]+)>$", (HERE / "index.md").read_text(), re.MULTILINE)
}
"""What the navigation calls a page, where that is not its own title."""


def for_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links into results/, which readers of the files can follow, lead to pages of the site; pages have titles here."""
    text = re.sub(
        r"\[([\w-]+)\.md\]\(((?:\.\./|reference/)?\1\.md(?:#[\w-]+)?)\)",
        lambda found: f"[{TITLES.get(found[1], '')}]({found[2]})",
        source[0],
    )
    text = text.replace("(../CONTRIBUTING.md)", "(contributing.md)")
    text = text.replace("(../results/bench/README.md)", "(benchmarks.md)")
    text = text.replace("(../results/bench/design/README.md)", "(benchmarks-design.md)")
    text = re.sub(r"\[([^\]]*)\]\(\.\./results/records\)", r"\1", text)
    source[0] = re.sub(
        r"\[([^\]]*)\]\(\.\./results/([\w-]+)/report\.md\)", r'<a href="results/\2/report.html">\1</a>', text
    )


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """The reports of the studies that the evidence is taken from, with the tables and figures that they link to."""
    if error is None and app.builder.name == "html":
        for report in sorted(RESULTS.glob("*/report.html")):
            place = Path(app.outdir) / "results" / report.parent.name
            shutil.copytree(report.parent, place, ignore=shutil.ignore_patterns("*.md"), dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    write_notebooks()
    app.add_directive("moqd", CommandLine)
    app.add_directive("moqd-overview", Overview)
    app.add_directive("metrics", Metrics)
    app.connect("autodoc-process-docstring", without_empty_words)
    app.connect("autodoc-process-signature", fields_without_types)
    app.connect("builder-inited", lambda app: name_types())
    app.connect("source-read", for_the_site)
    app.connect("build-finished", copy_reports)
