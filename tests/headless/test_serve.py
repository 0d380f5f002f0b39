"""`--serve` shows the screen in a browser to who has its address, runs nothing, and leaves nothing."""

import asyncio
import json
import os
import re
import signal
import subprocess
from contextlib import contextmanager

import pytest

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

from aiohttp.test_utils import TestClient, TestServer  # noqa: E402

from gpulab.headless.serve import _server  # noqa: E402


def test_only_the_address_with_its_token_shows_anything_and_no_other_host_is_asked():
    async def look():
        app = await _server("false", "secret")._make_app()
        async with TestClient(TestServer(app)) as browser:
            for place in ("/", "/?token=wrong", "/static/js/textual.js", "/ws", "/download/x"):
                assert (await browser.get(place)).status == 403
            page = await browser.get("/?token=secret")
            text = await page.text()
            assert (page.status, str(page.url.relative())) == (200, "/")
            assert not re.search(r"(src|href|url)[=(]\W*(https?:)?//", text)
            assert f"ws://{page.url.authority}" in page.headers["Content-Security-Policy"]
            assert (await browser.get("/static/js/textual.js")).status == 200
            cookie = page.history[0].headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            other = {"Origin": f"http://{page.url.host}:1"}
            assert (await browser.get("/static/js/textual.js", headers=other)).status == 403
            odd = {"Origin": f"http://evil.example//{page.url.authority}"}
            assert (await browser.get("/static/js/textual.js", headers=odd)).status == 403
            assert page.headers["X-Content-Type-Options"] == "nosniff"
            own = {"Origin": str(page.url.origin())}
            assert (await browser.get("/static/js/textual.js", headers=own)).status == 200

    asyncio.run(look())


@contextmanager
def served(lab, *arguments):
    """The process, and the address that it printed."""
    output = {"stderr": subprocess.STDOUT, "process_group": 0}
    process = lab.start("--serve", *arguments, "--listen", "0", **output)
    try:
        line = process.stdout.readline().decode()
        yield process, re.search(r"http://\S+", line)[0]
    finally:
        process.kill()
        process.communicate()


async def screen(socket, words):
    """Read until the words are on the way to the screen."""
    data = b""
    while words not in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", data):
        message = await socket.receive(timeout=60)
        assert message.type == aiohttp.WSMsgType.BINARY, message
        data += message.data


@pytest.mark.slow
def test_the_screen_is_there_runs_nothing_and_ends_with_the_server(lab):
    async def look(address):
        page = address.partition("?")[0]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await session.ws_connect(f"{page}ws")
            async with session.get(address):
                pass
            async with session.ws_connect(f"{page}ws?width=100&height=30") as socket:
                large = {"width": 10**9, "height": 10**9}
                await socket.send_str(json.dumps(["resize", large]))
                await screen(socket, b"batched_matmul")
                await socket.send_str(json.dumps(["stdin", "r"]))
                await screen(socket, b"served read-only")
                await socket.send_str(json.dumps(["stdin", "T"]))
                await screen(socket, b"theme: ")
                os.killpg(process.pid, signal.SIGINT)  # as Ctrl+C does
                while (await socket.receive(timeout=60)).type == aiohttp.WSMsgType.BINARY:
                    pass

    with served(lab) as (process, address):
        asyncio.run(look(address))
        assert process.wait(60) == 0
        assert b"Traceback" not in process.stdout.read()
        assert lab.none_left()
        assert not (lab.folder / "state" / "gpulab" / "theme").exists()


@pytest.mark.slow
def test_ctrl_c_while_a_tab_is_opened_ends_at_once_and_prints_no_traceback(lab):
    async def look(address):
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get(address):
                pass
            async with session.ws_connect(f"{address.partition('?')[0]}ws"):
                await asyncio.sleep(0.3)
                os.killpg(process.pid, signal.SIGINT)

    with served(lab) as (process, address):
        asyncio.run(look(address))
        assert process.wait(2) == 0
        assert b"Traceback" not in process.stdout.read()
        assert lab.none_left()
