"""Carries out several commands in one process: the arguments of each as JSON on stdin, and on
stdout of each its exit code and what it printed.
"""

import io
import json
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

from gpulab.cli import main


def carried_out(arguments):
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    code = None
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            code = main(arguments)
        except BaseException:
            traceback.print_exc()
        printed.flush()
    return code, printed.buffer.getvalue().decode()


if __name__ == "__main__":
    json.dump([carried_out(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
