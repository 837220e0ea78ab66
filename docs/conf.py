"""The documentation site: `make docs` builds it into site/, strictly and offline."""

import moqd

project = "moqd"
author = "The moqd authors"
release = moqd.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["skeleton.py"]
html_theme = "furo"
html_title = f"moqd {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]

default_role = "code"  # docstrings write `names` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
