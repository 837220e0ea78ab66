"""A headless Chromium, driven through its DevTools protocol over a pipe: no driver, no port, no library."""

import fcntl
import itertools
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from base64 import b64decode
from pathlib import Path

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))),
    os.environ.get("CHROMIUM"),
)
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe"),
    "--enable-unsafe-swiftshader",
]
PATIENCE = 120


class Browser:
    """One page; use it in a `with` statement. What it asked for, and what it complained of, is kept."""

    def __init__(self, folder: Path, width: int = 1440, height: int = 900) -> None:
        self._folder, self._size = folder, (width, height)
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue] = {}
        self.requests, self.complaints = [], []
        self._session = None

    def __enter__(self) -> "Browser":
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        # Chromium reads from 3 and writes to 4; a shell arranges that, because Python should not fork beside threads.
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_read, theirs_write))
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self._folder}"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "bash", *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_read, theirs_write, read, write):
            os.close(end)
        self._to, self._from = os.fdopen(ours_write, "wb", 0), os.fdopen(ours_read, "rb", 0)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self.resize(*self._size)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        self._to.close()
        self._from.close()

    def open(self, address: str) -> None:
        self._call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def dark(self, dark: bool = True) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def run(self, script: str):
        """The value of an expression in the page; promises are waited for."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"{condition} never came true"
            time.sleep(0.02)

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key by its name, such as Tab, Enter, ArrowRight or a."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        codes |= {"Home": 36, "End": 35, "Escape": 27}
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        known = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key.upper()[0])), "modifiers": 8 * shift}
        known["code"] = {" ": "Space"}.get(key, key)
        self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **known)
        self._call("Input.dispatchKeyEvent", type="keyUp", **known)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(b64decode(answer["data"]))

    def _call(self, method: str, **params):
        number = next(self._numbers)
        answers = self._answers[number] = queue.SimpleQueue()
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        answer = answers.get(timeout=PATIENCE)
        assert "error" not in answer, f"{method}: {answer.get('error')}"
        return answer["result"]

    def _listen(self) -> None:
        rest = b""
        while piece := self._from.read(2**16):
            *messages, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                else:
                    self._note(message["method"], message["params"])

    def _note(self, method: str, params) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.complaints.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
