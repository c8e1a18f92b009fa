"""What a script finds in a page in Chromium: it acts at the end of the page."""

import json
import tempfile
from pathlib import Path

import pytest

from tests.viz.devtools import CHROMIUM, Page, kept_browser

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: install Debian's package chromium"
)
BEFORE = """<script>
window.faults = [];
window.alert = function (text) { faults.push(text); };
window.addEventListener("error", function (e) { faults.push(String(e.message)); });
window.addEventListener("securitypolicyviolation", function (e) { faults.push(e.blockedURI); });
console.error = console.warn = function (text) { faults.push(String(text)); };
</script>"""
AFTER = """<script>
function all(selector) { return [].slice.call(document.querySelectorAll(selector)); }
function texts(selector) { return all(selector).map(function (e) { return e.textContent; }); }
function press(key) {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: key, bubbles: true}));
}
window.addEventListener("load", function () {
  var found;
  try { found = (function () { SCRIPT })(); } catch (e) { faults.push(String(e)); }
  var out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify([found === undefined ? null : found, faults]);
  document.body.append(out);
});
</script>"""


def found_in(page: str, script: str, *, size=(800, 600), scheme="light"):
    """What ``script`` returns in a page. Raises AssertionError for an error in its console."""
    page = page.replace("<head>", "<head>" + BEFORE, 1)
    page = page.replace("</body>", AFTER.replace("SCRIPT", script) + "</body>", 1)
    with tempfile.TemporaryDirectory() as folder:
        shown = Page(kept_browser(), page, Path(folder), size=size, scheme=scheme)
        (text,) = shown.texts("#found")
        faults = shown.faults
        shown.close()
    found, more = json.loads(text)
    assert faults + more == []
    return found
