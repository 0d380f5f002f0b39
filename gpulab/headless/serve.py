"""`--serve`: the screen in a browser. Each tab of it is a process of its own, in which nothing can
be run.
"""

from __future__ import annotations

import asyncio
import getpass
import secrets
import shlex
import socket
import sys
from importlib import util
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.catalog.source import is_folder
from gpulab.core.host import host_name
from gpulab.headless.output import Terminal, open_terminal
from gpulab.options import Options, UsageError

if TYPE_CHECKING:
    from aiohttp import web

LOOPBACK = "127.0.0.1"
_COOKIE = "gpulab"
_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; connect-src 'self'"
)
"""Not every browser counts a WebSocket of the same host as 'self'."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FORBIDDEN = "open the whole address that gpulab --serve printed: it ends in ?token=..."


def serve(folder: str, options: Options) -> int:
    """Serve until Ctrl+C; returns the exit code. UsageError where it cannot be served."""
    if util.find_spec("textual_serve") is None:
        raise UsageError("--serve needs textual-serve: pip install 'gpulab[web]'")
    if folder and not is_folder(Path(folder)):
        raise UsageError(f"--serve {folder}: there is no such folder")
    from aiohttp import web

    listening = _listening(options.listen)
    terminal = open_terminal(ascii_only=options.ascii)
    token = secrets.token_urlsafe(16)
    # -P: no module of the folder in which it is started
    command = [sys.executable, "-P", "-m", "gpulab.tui.served", folder]
    if terminal.ascii_only:
        command.append("--ascii")
    host, port = listening.getsockname()[:2]
    _say(terminal, host, port, token)
    # the shell that textual-serve starts it with becomes it; Ctrl+C, which reaches all processes of
    # the terminal, ends the server, and that ends it
    server = _server(f"trap '' INT; exec {shlex.join(command)}", token)
    # for pages that are open when it ends
    web.run_app(server._make_app(), sock=listening, print=None, shutdown_timeout=1.0)
    return 0


def _listening(listen: str | None) -> socket.socket:
    """At a port that is free where the usual one is not. UsageError."""
    host, _, port = (listen or "").rpartition(":")
    host = host.strip("[]") or LOOPBACK
    wanted = int(port) if port else 8000
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (wanted,) if listen else (wanted, 0):
        try:
            return socket.create_server((host, number), family=family)
        except OSError as error:
            problem = error.strerror or str(error)
    raise UsageError(f"--listen {host}:{wanted}: {problem}")


def _say(terminal: Terminal, host: str, port: int, token: str) -> None:
    address = ip_address(host)
    name = host_name() if address.is_unspecified else host
    shown = f"[{name}]" if ":" in name else name
    where = f"http://{shown}:{port}/?token={token}"
    terminal.say(f"serving on {where}", "(read-only; Ctrl+C ends)")
    if address.is_loopback:
        terminal.say(
            f"from another machine, first: ssh -L {port}:{shown}:{port} {_user()}@{host_name()}"
        )
    else:
        terminal.say("anyone on the network can read what is sent: it is not encrypted")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a number without a name
        return "USER"


def _server(command: str, token: str) -> Any:
    """textual-serve's, with a page of ours, and a token that keeps others out: on a machine of many
    users each can connect to a port of loopback, and so can any page in the browser.
    """
    from aiohttp import web
    from textual_serve.server import Server

    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        # cookies do not tell ports: neither a page of another server on the same host, nor the
        # cookie of another gpulab there
        origin = request.headers.get("Origin", "")
        if origin and origin not in (f"http://{request.host}", f"https://{request.host}"):
            raise web.HTTPForbidden(text=_FORBIDDEN)
        name = f"{_COOKIE}-{request.url.port}"
        given = request.query.get("token", "")
        if secrets.compare_digest(given.encode(), token.encode()):
            answer = web.HTTPFound("./")  # so that the address bar does not show it on a projector
            answer.set_cookie(name, token, httponly=True, samesite="Strict")
            raise answer
        cookie = request.cookies.get(name, "")
        if not secrets.compare_digest(cookie.encode(), token.encode()):
            raise web.HTTPForbidden(text=_FORBIDDEN)
        response = await handler(request)
        if not response.prepared:
            here = f" ws://{request.host} wss://{request.host}"
            response.headers["Content-Security-Policy"] = _POLICY + here
            response.headers.update(_HEADERS)
        return response

    tabs: set[asyncio.Task[Any]] = set()

    class Guarded(Server):  # type: ignore[misc, unused-ignore]
        async def on_startup(self, app: web.Application) -> None:
            """Everything has been said."""

        async def on_shutdown(self, app: web.Application) -> None:
            """Close all tabs, which aiohttp would wait for first."""
            for tab in tabs:
                tab.cancel()

        async def handle_websocket(self, request: web.Request) -> web.StreamResponse:
            tab = asyncio.current_task()
            assert tab is not None
            tabs.add(tab)
            try:
                return await super().handle_websocket(request)
            finally:
                tabs.remove(tab)

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(web.middleware(guard))
            return app

    return Guarded(command, title="gpulab", templates_path=str(Path(__file__).parent / "web"))
