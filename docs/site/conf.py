"""Sphinx's settings. script/docs copies docs/ to build-docs/source, adds what is generated, and builds from there."""
import os
import re
import sys

ROOT = os.environ["DCRF_ROOT"]
sys.path.insert(0, os.path.join(ROOT, "build", "python"))

project = "dcrf"
author = "the authors of dcrf"
copyright = "the authors of dcrf"  # pylint: disable=redefined-builtin
with open(os.path.join(ROOT, "include", "dcrf", "dcrf.h"), encoding="utf-8") as header:
    release = re.search(r'DCRF_VERSION "([^"]+)"', header.read())[1]

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["site"]
suppress_warnings = ["myst.header"]
smartquotes = False  # -- is an option, not a dash

html_theme = "furo"
html_title = f"dcrf {release}"
html_static_path = ["site/static"]
html_css_files = ["dcrf.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # browsers do not fetch other pages from file://
pygments_style = "friendly"
pygments_dark_style = "monokai"

breathe_projects = {"dcrf": os.path.join(ROOT, "build-docs", "doxygen", "xml")}
breathe_default_project = "dcrf"
breathe_domain_by_extension = {"h": "c"}
c_id_attributes = ["DCRF_API"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["torch"]
