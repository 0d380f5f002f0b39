"""`--serve` shows the screen in a browser to who has its address, runs nothing, and leaves nothing."""

import asyncio
import json
import re
import signal
import subprocess
from contextlib import contextmanager

import psutil
import pytest

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")


@contextmanager
def served(lab, *arguments):
    """The process, and the address that it printed."""
    process = lab.start("--serve", *arguments, "--listen", "0", stderr=subprocess.STDOUT)
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


def test_only_the_address_with_its_token_shows_anything_and_nothing_runs(lab):
    async def look(address):
        page = address.partition("?")[0]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            for place in (page, f"{page}?token=wrong", f"{page}static/js/textual.js"):
                async with session.get(place) as answer:
                    assert answer.status == 403
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await session.ws_connect(f"{page}ws")
            async with session.get(address) as answer:
                text = await answer.text()
                assert (answer.status, str(answer.url)) == (200, page)
            assert not re.search(r"(src|href|url)[=(]\W*(https?:)?//", text)
            async with session.ws_connect(f"{page}ws?width=100&height=30") as socket:
                await screen(socket, b"batched_matmul")
                await socket.send_str(json.dumps(["stdin", "r"]))
                await screen(socket, b"served read-only")
                await socket.send_str(json.dumps(["stdin", "T"]))
                await screen(socket, b"theme: ")
                process.send_signal(signal.SIGINT)
                while (await socket.receive(timeout=60)).type == aiohttp.WSMsgType.BINARY:
                    pass

    with served(lab) as (process, address):
        asyncio.run(look(address))
        assert process.wait(60) == 0
        assert psutil.Process().children(recursive=True) == []
        assert not (lab.folder / "state" / "gpulab" / "theme").exists()
