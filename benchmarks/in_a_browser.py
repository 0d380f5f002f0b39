"""What --serve shows in a real browser, as pictures, and what its pages ask other hosts for: nothing.

python benchmarks/in_a_browser.py FOLDER     # needs Chromium, and the extra web
"""

import asyncio
import base64
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from commands import GPULAB

STEPS = (
    # key, seconds until the picture, its name
    ("", 6.0, "list"),
    ("v", 6.0, "replay"),
    ("r", 1.0, "replay-refuses"),
    ("Escape", 2.0, "list-again"),
    ("r", 1.0, "list-refuses"),
    ("h", 3.0, "history"),
)
SIZE = "1280,800"


class Page:
    """A page of a browser, told what to do over Chromium's DevTools protocol."""

    def __init__(self, socket):
        self._socket, self._calls = socket, 0
        self.requests = []

    async def call(self, method, **parameters):
        self._calls += 1
        await self._socket.send_json({"id": self._calls, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._calls:
                return message.get("result", {})
            self._note(message)

    async def wait(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self._note(await self._socket.receive_json(timeout=left))
            except TimeoutError:
                return

    async def press(self, key):
        text = key if len(key) == 1 else ""
        code = 27 if key == "Escape" else ord(key.upper())
        about = {"key": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def picture(self, path):
        taken = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(taken["data"]))

    def _note(self, message):
        about = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        if message.get("method") == "Network.webSocketCreated":
            self.requests.append(about["url"])


async def look(address, browser, folder):
    line = next(line for line in browser.stderr if "DevTools listening" in line)
    port = re.search(r":(\d+)/", line)[1]
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json") as answer:
            target = next(page for page in await answer.json() if page["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            for domain in ("Network", "Page"):
                await page.call(f"{domain}.enable")
            await page.call("Page.navigate", url=address)
            for key, seconds, name in STEPS:
                if key:
                    await page.press(key)
                await page.wait(seconds)
                await page.picture(folder / f"serve-{name}.png")
                print(folder / f"serve-{name}.png")
    return page.requests


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or sys.exit("no chromium: apt-get install chromium")
    serve = subprocess.Popen(
        [*GPULAB, "--serve", "--listen", "0"], stdout=subprocess.PIPE, text=True
    )
    address = re.search(r"http://\S+", serve.stdout.readline())[0]
    own = address.partition("?")[0].partition("//")[2]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [chromium, "--headless", "--no-sandbox", f"--user-data-dir={profile}"]
        command += ["--remote-debugging-port=0", f"--window-size={SIZE}", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            requests = asyncio.run(look(address, browser, folder))
        finally:
            for process in (browser, serve):
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=30)
    others = [url for url in requests if url.partition("//")[2].partition("/")[0] + "/" != own]
    print(f"{len(requests)} requests, to other hosts: {others or 'none'}")
    return bool(others) or serve.returncode


if __name__ == "__main__":
    sys.exit(main())
