"""The manual: `make docs` builds it into docs/_build/html; any warning stops the build."""

from __future__ import annotations

from dpaudit.environment import __version__

project = "dpaudit"
author = "The dpaudit maintainers"
copyright = "the dpaudit maintainers, Apache License 2.0"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # the stubs of the Python interface
exclude_patterns = ["_build", "examples"]
myst_enable_extensions = ["colon_fence", "deflist", "smartquotes"]
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say types, shapes and units
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
nitpicky = False  # docstrings name types of numpy and of the reader's own code

html_theme = "furo"
html_title = f"dpaudit {__version__}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
