"""Nets under the diets: what gpulab says now, against what it said when they were stored.

    python tests/nets/nets.py                  what changed, as diffs; exit code 1 where anything did
    python tests/nets/nets.py printed          of one net; or of a name, or of what begins so
    python tests/nets/nets.py --store [...]    from now on it is to be as it is now
    python tests/nets/nets.py -j 1             in one process

printed   what recorded runs print in every form
screens   pictures of the app, as text
blocks    exit code and output of the code blocks of README and guide

Reports of recorded runs are held by `tests/report/test_corpus.py`.
Stored texts are in `data/`, by net and name. What is meant to differ is stored again, with a line in
`intended.md`. The nets are no tests, and go when the diets are done.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir

DATA = Path(__file__).parent / "data"
sys.path.insert(0, str(Path(__file__).parents[1]))

import same_everywhere  # noqa: E402

NETS = ("printed", "screens", "blocks")
_OF_TODAY = ("screens", "blocks")


def names_of(net):
    return list(_module(net).NAMES)


def text_of(place):
    """What a net catches now of a name: in a folder of its own, from which nothing is left."""
    net, name = place
    here = Path.cwd()
    # of one width, and nothing in it that Markdown escapes
    folder = Path(gettempdir()) / f"nets-{os.getpid():08}"
    folder.mkdir(mode=0o700)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(same_everywhere.environment(folder / "home"))
    try:
        text = _module(net).text_of(name, folder)
    except Exception as error:  # one that breaks is a difference, and the others go on
        text = f"{type(error).__name__}: {error}\n"
    finally:
        os.chdir(here)
        rmtree(folder)
    of_today = net in _OF_TODAY or name == "history"
    return same_everywhere.masked(text, folder, of_today=of_today)


def stored_file(net, name):
    return DATA / net / f"{name.replace('/', '-')}.txt"


def stored_text(net, name):
    path = stored_file(net, name)
    return path.read_text() if path.exists() else ""


def _module(net):
    return __import__(f"net_of_{net}")


def _chosen(words):
    """(net, name) of all that the words choose."""
    for net in NETS:
        for name in names_of(net):
            if not words or net in words or any(name.startswith(word) for word in words):
                yield net, name


def _left_over(places):
    """Stored texts of names that are gone."""
    for net in {net for net, _ in places}:
        known = {stored_file(net, name) for name in names_of(net)}
        yield from sorted(set((DATA / net).glob("*.txt")) - known)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="NET|NAME")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="processes (default: 2)")
    arguments = parser.parse_args()
    places = [*_chosen(arguments.words)]
    if not places:
        parser.error(f"no net and no name begins with {' '.join(arguments.words)}")
    changed = 0
    with ProcessPoolExecutor(arguments.j, initializer=same_everywhere.one_machine) as pool:
        for (net, name), now in zip(places, pool.map(text_of, places), strict=True):
            before = stored_text(net, name)
            if now == before:
                continue
            changed += 1
            if arguments.store:
                path = stored_file(net, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(now)
                print(f"stored {net} {name}")
                continue
            lines = (text.splitlines() for text in (before, now))
            title = f"{net} {name}"
            print(*unified_diff(*lines, f"{title}, stored", title, n=2, lineterm=""), sep="\n")
    for path in _left_over(places):
        changed += 1
        if arguments.store:
            path.unlink()
        print(f"{'removed' if arguments.store else 'no longer made:'} {path.relative_to(DATA)}")
    print(f"{changed} of {len(places)} differ", file=sys.stderr)
    return int(changed > 0 and not arguments.store)


if __name__ == "__main__":
    sys.exit(main())
