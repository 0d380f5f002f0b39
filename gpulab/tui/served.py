"""The screen in a tab of a browser, as `--serve` starts it: `python -m gpulab.tui.served`."""

from __future__ import annotations

import argparse
import gc
import sys
from contextlib import suppress

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp

from gpulab.catalog.catalog import catalog
from gpulab.session.active_runs import place_of
from gpulab.tui.app import LabApp
from gpulab.tui.watching import WatchApp

_READ_ONLY = "served read-only: nothing can be run from a browser"


class ServedDriver(WebDriver):
    """Ends the app with the server, however that ends."""

    def run_input_thread(self) -> None:
        super().run_input_thread()
        with suppress(RuntimeError):  # Ctrl+C has ended the app itself
            self._app.call_from_thread(self._app.post_message, ExitApp())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--ascii", action="store_true")
    given = parser.parse_args()
    gc.disable()
    LabApp.DRIVER = ServedDriver
    app = WatchApp(
        place_of(given.folder), ascii_only=given.ascii, lessons=catalog(), read_only=_READ_ONLY
    )
    app.keeps_files = False
    return app.run_in_browser()


if __name__ == "__main__":
    sys.exit(main())
