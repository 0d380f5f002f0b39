"""How large is what `--export` writes of every recording that ships, and how long does it take?

`python benchmarks/pages.py [FOLDER]` keeps the pages in FOLDER.
"""

import sys
from pathlib import Path
from statistics import median
from time import process_time

from gpulab.headless.scripting import load
from gpulab.session.saved import recordings

FORMS = ("html", "md")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rows = {form: [] for form in FORMS}
    for path in recordings():
        report = load(path)
        for form in FORMS:
            start = process_time()
            text = report.render(form)
            name = path.name.partition(".")[0]
            rows[form].append((len(text.encode()), process_time() - start, name))
            if folder:
                folder.mkdir(exist_ok=True)
                (folder / f"{name}.{form}").write_text(text)
    print(f"{len(rows['html'])} recordings: kB median, most; CPU s median, most")
    for form, made in rows.items():
        sizes, seconds, _ = zip(*made, strict=True)
        print(
            f"{form:4}  {median(sizes) / 1e3:6.1f} {max(sizes) / 1e3:6.1f} ({max(made)[2]})"
            f"  {median(seconds):.2f} {max(seconds):.2f}"
        )


if __name__ == "__main__":
    main()
