"""Reports as tests write them: the fields of features' parts among the others."""

from gpulab.features import features
from gpulab.report.build import run_parts
from gpulab.report.report import RunReport, VariantReport


def variant_report(**fields):
    parts = [feature.variant_part() for feature in features() if feature.variant_part]
    return _report(VariantReport, parts, fields)


def run_report(**fields):
    return _report(RunReport, run_parts(), fields)


def _report(kind, parts, fields):
    own = {name: value for name, value in fields.items() if name in kind.__struct_fields__}
    others = {name: value for name, value in fields.items() if name not in own}
    return kind(parts=tuple(parts), **own).with_parts(**others)
