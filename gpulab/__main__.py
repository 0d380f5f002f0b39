"""The program: `gpulab`, and `python -m gpulab`."""

# signal itself takes its time, in which Ctrl+C would be a traceback
import _signal  # type: ignore[import-not-found]
import sys


def main() -> int:
    """Run the command line. Where nothing guards a run or a screen, a signal just ends the
    process.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from gpulab.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
