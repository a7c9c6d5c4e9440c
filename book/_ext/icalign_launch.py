"""Without the repository's address in ``_config.yml`` no page links to it; with one, chapters open elsewhere.

The theme makes the links. Left to itself it fails when it has services to open notebooks in, but no repository.
"""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.config import Config


def follow(app: Sphinx, config: Config) -> None:
    """Gives the theme the buttons that the address allows: all of them, or none."""
    options = config.html_theme_options
    known = bool(options.get("repository_url"))
    options |= {"use_repository_button": known, "use_issues_button": known}
    if not known:
        options["launch_buttons"] = {}


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the handler."""
    app.connect("config-inited", follow)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
