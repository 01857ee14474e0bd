"""The book: the settings of Sphinx. ``make docs`` builds it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import gpulab  # noqa: E402 # found by the line above
from docs.extensions import executed  # noqa: E402 # found by the line above

project = "gpulab"
author = "The gpulab developers"
version = release = gpulab.__version__

extensions = [
    "docs.extensions.book",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
]
templates_path = ["_templates"]
# Answers and flaws are only for instructors.
exclude_patterns = ["_templates", "extensions", "instructor/answers.md", "instructor/flaws.md"]
nitpicky = False
default_role = "code"

# Lessons come with their outputs. Guides are run during the build, and an error in one fails it.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / f"guides-{executed.package_digest().hex()[:16]}")
nb_execution_excludepatterns = ["lessons/*", "lessons/cases/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = -1
nb_execution_in_temp = True  # the guides save files, and the clone stays as it is
nb_output_stderr = "remove"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # the outputs need no script from the network
nb_render_markdown_format = "myst"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # the signatures would fill half of a page
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "gpulab"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "gpulab"},
    "navbar_end": ["theme-switcher"],
    "article_header_end": ["open-in"],
    "footer_start": ["made-with"],
    "footer_end": [],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
