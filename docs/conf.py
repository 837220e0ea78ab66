"""The documentation site: `make docs` builds it into site/, strictly and offline."""

import io
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import moqd
from moqd.cli.main import COMMANDS
from moqd.core.metrics import METRICS

HERE = Path(__file__).parent
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
html_extra_path = ["_built"]  # what gallery.py makes
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "material"

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


class CommandLine(SphinxDirective):
    """What a command prints, run when the site is built: `moqd` with the words of the directive's argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        command, *words = self.arguments[0].split()
        text = io.StringIO()
        code = import_module(f"moqd.cli.{command}").main(words, Console(file=text, width=100))
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


def without_long_types(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """A NamedTuple or a dataclass says the types of its fields below, field by field."""
    if what == "class" and (hasattr(obj, "_fields") or hasattr(obj, "__dataclass_fields__")):
        names = getattr(obj, "_fields", None)
        return ("(" + ", ".join(names) + ")" if names else signature, None)
    return None


def for_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links into results/, which readers of the files can follow, lead to pages of the site."""
    text = source[0].replace("(../CONTRIBUTING.md)", "(contributing.md)")
    text = text.replace("(../results/bench/README.md)", "(benchmarks.md)")
    text = text.replace("(../results/bench/design/README.md)", "(benchmarks-design.md)")
    text = re.sub(r"\[([^\]]*)\]\(\.\./results/records\)", r"\1", text)
    source[0] = re.sub(
        r"\[([^\]]*)\]\(\.\./results/([\w-]+)/report\.md\)", r'<a href="results/\2/report.html">\1</a>', text
    )


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """The reports of the studies that the evidence is taken from."""
    if error is None and app.builder.name == "html":
        for report in sorted(RESULTS.glob("*/report.html")):
            place = Path(app.outdir) / "results" / report.parent.name / report.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(report, place)


def setup(app: Sphinx) -> None:
    sys.path.insert(0, str(HERE))
    app.add_directive("moqd", CommandLine)
    app.add_directive("moqd-overview", Overview)
    app.add_directive("metrics", Metrics)
    app.connect("autodoc-process-docstring", without_empty_words)
    app.connect("autodoc-process-signature", without_long_types)
    app.connect("source-read", for_the_site)
    app.connect("build-finished", copy_reports)
