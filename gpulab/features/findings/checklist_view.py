"""The checklist of a run, as a table for each of its variants."""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.core.estimate import value_of
from gpulab.core.statuses import Status
from gpulab.draw.blocks import Block, Group, Table, Text
from gpulab.features.findings.checklist import Answer, Question, Said, checklist
from gpulab.features.findings.step import Step
from gpulab.features.findings.view import amount
from gpulab.report.report import RunReport, VariantReport

_QUESTION, _SAID = 32, 4
_SHORT = {Said.YES: "yes", Said.NO: "no", Said.UNKNOWN: "n/a"}


def checklists(report: RunReport) -> Block:
    """The questions of the guides, answered for the baseline and the best."""
    chosen = _usual(report)
    parts: list[Block] = []
    for variant in report.variants:
        if variant.name in chosen and variant.status in (Status.OK, Status.WRONG):
            parts += [*_variant_checklist(report, variant), Text()]
    if not parts:
        return Text("No checklist: nothing was measured.")
    return Group(*parts[:-1])


def _usual(report: RunReport) -> list[str]:
    """The baseline, and the fastest of those that are compared with it."""
    timed = [entry for entry in report.comparisons if entry.speedup]
    fastest = max(timed, key=lambda entry: value_of(entry.speedup) or 0.0, default=None)
    names = [report.baseline, report.best or (fastest and fastest.variant)]
    return [name for name in names if name]


def _variant_checklist(report: RunReport, variant: VariantReport) -> Iterator[Block]:
    title = Text(f"checklist of {variant.name}", "bold")
    yield title.append("   n/a: not judged", "not bold dim")
    before = ""
    for section, answers in checklist(Step(report, variant)).items():
        table = Table(gap=1, show_header=False)
        table.add_column(width=_QUESTION)
        table.add_column(width=_SAID)
        table.add_column()
        table.add_row(Text(section, "dim"), "", "")
        for question, answer in answers:
            style = _style(question, answer)
            said = Text(_SHORT[answer.said], style)
            reason = _why(question, answer)
            same = answer.missing is not None and reason == before
            why = Text("as above" if same else reason, "dim" if style == "dim" else "")
            before = reason
            table.add_row(Text(question.text, style), said, why)
        yield table


def _style(question: Question, answer: Answer) -> str:
    if answer.said == Said.UNKNOWN:
        return "dim"
    return "bold yellow" if _is_trouble(question, answer) else ""


def _is_trouble(question: Question, answer: Answer) -> bool:
    return answer.said not in (Said.UNKNOWN, question.good)


def _why(question: Question, answer: Answer) -> str:
    """The numbers, then what follows; what is missing where it is unknown."""
    parts = [", ".join(f"{each.name} {amount(each)} ({each.source})" for each in answer.numbers)]
    if answer.missing is not None:
        flags = f": {answer.missing.flags}" if answer.missing.flags else ""
        parts.append(f"needs {answer.missing.measurement}{flags}")
    if answer.finding:
        parts.append(f"finding {answer.finding}")
    if answer.lesson and _is_trouble(question, answer):
        parts.append(f"lesson {answer.lesson}")
    return "; ".join(filter(None, parts))
