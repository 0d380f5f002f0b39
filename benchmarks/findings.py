"""How often each rule is right: `python benchmarks/findings.py` applies the rules to the planted
cases and their twins, and keeps what comes out for `gpulab --guide findings`.

Right: the planted bottleneck is the first finding. Wrong: the twin, which looks alike, has it too.
Gained over promised: the share of the step that the same work without the bottleneck saves, over
the most that the finding promised; the median over the cases in which that was measured.
"""

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from gpulab.features.findings.record import KEPT, Record
from gpulab.features.findings.report import RULES

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "findings")]


def records(folder):
    """One of each rule."""
    from cases import PAIRS
    from recorded import report_of

    reports = {}

    def variant(case):
        if case.run not in reports:
            reports[case.run] = report_of(case.run, folder)
        return reports[case.run].variant(case.variant)

    for rule in sorted(RULES, key=lambda rule: rule.number):
        pairs = [pair for pair in PAIRS if pair.code == rule.name]
        first = [_codes(variant(pair.planted))[:1] for pair in pairs]
        accused = [rule.name in _codes(variant(pair.twin)) for pair in pairs]
        ratios, inside = [], 0
        for pair in pairs:
            if pair.fix is None:
                continue
            advice = _advice(variant(pair.planted), rule.name)
            saved = 1 - _seconds(variant(pair.fix)) / _seconds(variant(pair.planted))
            if advice is not None and advice.gain_high:
                ratios.append(saved / advice.gain_high)
                inside += advice.gain_low <= saved <= advice.gain_high
        yield Record(
            number=rule.number,
            code=rule.name,
            planted=len(pairs),
            right=sum(codes == [rule.name] for codes in first),
            wrong=sum(accused),
            measured=len(ratios),
            inside=inside,
            gained=round(median(ratios), 2) if ratios else None,
            on=sorted({part for pair in pairs for part in pair.on.split(", ")}),
        )


def _codes(variant):
    return [each.finding.code for each in variant.advice]


def _advice(variant, code):
    return next((each for each in variant.advice if each.finding.code == code), None)


def _seconds(variant):
    return variant.time_s.median


def main():
    with TemporaryDirectory() as folder:
        made = list(records(folder))
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    for record in made:
        print(record)


if __name__ == "__main__":
    main()
