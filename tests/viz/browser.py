"""Pages in Chromium, without a driver: a script at the end of the page acts, and writes what it
finds into the page, which the browser prints.
"""

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: install Debian's package chromium"
)
FLAGS = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=2000"
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


def found_in(page: str, script: str, *flags: str):
    """What ``script`` returns in a page. Raises AssertionError for an error in its console."""
    page = page.replace("<head>", "<head>" + BEFORE, 1)
    page = page.replace("</body>", AFTER.replace("SCRIPT", script) + "</body>", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        command = [CHROMIUM, *FLAGS.split(), *flags, f"--user-data-dir={folder}", "--dump-dom"]
        done = subprocess.run(
            [*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
    shown = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    found, faults = json.loads(unescape(shown[1]))
    assert faults == []
    return found
