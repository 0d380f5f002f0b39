"""The picture in the README: the app itself after a real run, as SVG.

python tests/system/screen/picture.py [LESSON] [FILE.svg]
"""

import asyncio
import re
import sys
from pathlib import Path

from gpulab.options import Options
from gpulab.tui.app import LabApp
from gpulab.tui.panels.catalog import ScenarioList

SIZE = (120, 32)
TITLE = "gpulab"


async def picture(lesson, target):
    app = LabApp((), Options(), ascii_only=False)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        scenarios = app.screen.query_one(ScenarioList)
        scenarios.highlighted = scenarios.get_option_index(lesson)
        await pilot.press("r")
        await pilot.pause(0.5)
        while app.screen.runs.running is not None:
            await pilot.pause(0.25)
        await pilot.pause(0.5)
        svg = app.export_screenshot(title=TITLE)
    # The viewer's own monospace will do: a picture asks nothing of the network, and some viewers
    # take the first family of a list or none.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    target.write_text(svg.replace("Fira Code, monospace", "monospace"))
    print(f"wrote {target}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    target = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).parent / "screen.svg"
    asyncio.run(picture(arguments[0] if arguments else "batched_matmul", target))
