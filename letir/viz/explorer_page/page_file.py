"""``page_text``: the JSON of a page, its script and its style as one HTML file.

Nothing that comes from a program is HTML: it is in JSON, which the script shows as text. Only
this script and this style may run, by their hashes in the content security policy of the page.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from letir.viz.view_page import code_lines, escape_text, style_text

_FOLDER = Path(__file__).parent
# in this order they are one script: each uses only names of those before it
INTERPRETER = (
    *("arrays.js", "elementwise.js", "reductions.js", "shapes.js", "indexing.js", "products.js"),
    *("windows.js", "interpreter.js"),
)
SCRIPTS = (
    *("model.js", "elements.js", "row_text.js", "grid.js", "memory.js", "source_pane.js"),
    *("program_pane.js", "passes.js", "kernels.js", *INTERPRETER),
    *("value_view.js", "run_state.js", "inputs.js", "run_panel.js", "main.js"),
)
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src '{style_hash}'; script-src '{script_hash}'">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="letir">
<noscript><p>This page needs JavaScript. It loads nothing from the network.</p></noscript>
<script type="application/json" id="program">{json}</script>
<script>{script}</script>
</body>
</html>
"""


def page_text(title: str, content: dict[str, Any]) -> str:
    """The page that shows ``content``."""
    style, script = style_text() + _file_text("page.css"), script_text(SCRIPTS)
    return _PAGE.format(
        title=escape_text(title, 200),
        style=style,
        script=script,
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
        json=_json_text(content),
    )


def _json_text(content: Any) -> str:
    """JSON that can stand in a script element: without <, which alone could end it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


@cache
def script_text(names: Sequence[str], more: str = "") -> str:
    """Files of ``scripts``, and ``more``, as one script, whose names are not seen outside of it."""
    parts = "".join([_file_text(f"scripts/{name}") for name in names])
    return f'(() => {{\n"use strict";\n{parts}{more}}})();\n'


def _file_text(path: str) -> str:
    """A file of this package without its lines of comments, and without indentation."""
    return "".join([f"{line}\n" for line in code_lines(_FOLDER / path)])


def _policy_hash(text: str) -> str:
    """The hash of a script or a style, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
