"""Chromium driven by its DevTools protocol over two pipes: real keys, real sizes, real clocks.

``kept_browser`` starts it once for all tests; ``Page`` is one tab. Nothing needs to be installed
beside the browser itself.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --mute-audio "
    "--disable-extensions --disable-background-networking --hide-scrollbars --remote-debugging-pipe"
)
# the browser reads file descriptor 3 and writes 4
START = """
import fcntl, os, sys
read, write = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]]
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_PATIENCE = 300  # seconds, after which the browser is taken to hang
KEYS = {  # name -> (code of the key, text that it types)
    "ArrowDown": (40, ""),
    "ArrowUp": (38, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "PageDown": (34, ""),
    "Home": (36, ""),
    "End": (35, ""),
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
}


class Browser:
    """A browser and its two pipes."""

    def __init__(self, folder: str):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        for end in (to_child, from_child):
            os.set_inheritable(end, True)
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={folder}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_child), str(from_child), *command],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._count, self._bytes = 0, b""
        self.events: list[dict] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict:
        """The result of a command; events that come before it are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._count:
            self.events.append(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _receive(self) -> dict:
        while b"\0" not in self._bytes:
            assert select.select([self._read], [], [], _PATIENCE)[0], "the browser does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has closed its pipe"
            self._bytes += more
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        """End the browser."""
        self.send("Browser.close")
        self.process.wait(timeout=30)
        os.close(self._write)
        os.close(self._read)


_kept: list[Browser] = []
_resources = ExitStack()


def kept_browser() -> Browser:
    """The browser of all tests in this process, until ``end_browser``."""
    if not _kept:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        _kept.append(Browser(_resources.enter_context(folder)))
        _resources.callback(_close_kept)
    return _kept[0]


def _close_kept() -> None:
    _kept.pop().close()


def end_browser() -> None:
    """End the browser, if there is one."""
    _resources.close()


class Page:
    """A tab that shows one page."""

    def __init__(
        self, owner: Browser, html: str, folder: Path, *, size=(1280, 800), scheme="light"
    ):
        self.owner = owner
        target = owner.send("Target.createTarget", url="about:blank")["targetId"]
        found = owner.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        self.target = target
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.resize(*size)
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        path = folder / f"page{len(list(folder.iterdir()))}.html"
        path.write_text(html, encoding="utf-8")
        self.url = path.as_uri()
        self.send("Page.navigate", url=self.url)
        # asked again and again: a listener may come after the event that it waits for
        end = time.monotonic() + _PATIENCE
        while self.run("[document.URL, document.readyState].join()") != f"{self.url},complete":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.01)

    def send(self, method: str, **params: Any) -> dict:
        """The result of a command to this tab."""
        return self.owner.send(method, self.session, **params)

    def resize(self, width: int, height: int) -> None:
        """Give the page this size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page, or of the promise that it gives."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements that a selector finds."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.run(f"{found}.map(e => e.textContent)")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code, text = KEYS.get(key, (ord(key[0].upper()), key))
            event = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self.send("Input.dispatchKeyEvent", type="keyDown", **event)
            self.send("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)
        self.settle()

    def point(self, selector: str, index: int = 0, *, click: bool = False) -> None:
        """Move the pointer to an element, and click it if asked to."""
        box = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'nearest'}}); const r = e.getBoundingClientRect();"
            " return [r.x + Math.min(r.width / 2, 12), r.y + r.height / 2]; })"
            f"(document.querySelectorAll({json.dumps(selector)})[{index}])"
        )
        at = {"x": box[0], "y": box[1]}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **at)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                event = {"type": kind, "button": "left", "clickCount": 1, **at}
                self.send("Input.dispatchMouseEvent", **event)
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def picture(self) -> bytes:
        """What the page looks like, as a PNG file."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    @property
    def faults(self) -> list[str]:
        """Errors and warnings of the page so far."""
        self.run("1")  # events before it have arrived then
        found = []
        for event in self.owner.events:
            if event.get("sessionId") != self.session:
                continue
            name, params = event["method"], event["params"]
            if name == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"].get("exception", params)))
            elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def close(self) -> None:
        """Close the tab."""
        self.owner.send("Target.closeTarget", targetId=self.target)
