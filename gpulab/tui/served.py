"""The screen in a tab of a browser, as `--serve` starts it: `python -m gpulab.tui.served`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from contextlib import suppress

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp

from gpulab.catalog.catalog import catalog
from gpulab.session.active_runs import place_of
from gpulab.tui.app import LabApp
from gpulab.tui.watching import WatchApp

_READ_ONLY = "served read-only: nothing can be run from a browser"

_SIZE = ("COLUMNS", "ROWS")
"""Variables in which the server passes on what a tab asks for at first."""
_MOST_COLUMNS, _MOST_ROWS = 500, 200


def bounded(columns: int, rows: int) -> tuple[int, int]:
    """A size that a tab asks for, as far as it is drawn: each cell takes memory."""
    return max(1, min(columns, _MOST_COLUMNS)), max(1, min(rows, _MOST_ROWS))


class ServedDriver(WebDriver):
    """Ends the app with the server, however that ends."""

    def run_input_thread(self) -> None:
        super().run_input_thread()
        with suppress(RuntimeError):  # Ctrl+C has ended the app itself
            self._app.call_from_thread(self._app.post_message, ExitApp())

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "resize":
            columns, rows = (int(str(payload[name])) for name in ("width", "height"))
            columns, rows = bounded(columns, rows)
            payload = {**payload, "width": columns, "height": rows}
        super().on_meta(packet_type, payload)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--ascii", action="store_true")
    given = parser.parse_args()
    gc.disable()
    columns, rows = (int(os.environ.get(name, 80)) for name in _SIZE)
    os.environ.update(zip(_SIZE, map(str, bounded(columns, rows)), strict=True))
    LabApp.DRIVER = ServedDriver
    app = WatchApp(
        place_of(given.folder), ascii_only=given.ascii, lessons=catalog(), read_only=_READ_ONLY
    )
    app.keeps_files = False
    return app.run_in_browser()


if __name__ == "__main__":
    sys.exit(main())
