"""What each stage leaves, as text: for `tilewright explain` and for the walkthrough."""

from __future__ import annotations

from .analysis.axis_info import AxisInfo
from .ir.printer import print_kernel
from .ir.walk import statements
from .lower.text.header import distribution
from .pipeline import Translation


def describe_stage(translation: Translation, stage: str) -> str:
    """The text for one of `pipeline.STAGES`."""
    writers = {
        "kernel": lambda: print_kernel(translation.kernel),
        "prepared": lambda: print_kernel(translation.prepared),
        "facts": lambda: _facts(translation),
        "schedule": lambda: _schedule(translation),
        "unit": lambda: "".join(f"{node!r}\n" for node in translation.unit.body),
        "text": lambda: translation.artifact.source,
    }
    return writers[stage]()


def _facts(translation: Translation) -> str:
    facts = translation.facts
    lines = []
    for title, variables in (("index tiles", facts.index), ("absorbed", facts.absorbed), ("not used", facts.unused)):
        names = ", ".join(v.name for v in sorted(variables, key=lambda v: v.key))
        lines.append(f"{title}: {names or 'none'}")
    for statement in statements(translation.prepared.body):
        for variable, info in facts.environments.get(statement, {}).items():
            line = f"  {variable.name}: {_info(info)}"
            if line not in lines:
                lines.append(line)
    return "\n".join(lines) + "\n"


def _info(info: AxisInfo) -> str:
    return f"contiguity {info.contiguity}, divisibility {info.divisibility}, constancy {info.constancy}"


def _schedule(translation: Translation) -> str:
    schedule = translation.schedule
    lines = [f"{schedule.num_threads} threads"]
    for variable, layout in sorted(schedule.layouts.items(), key=lambda item: item[0].key):
        lines.append(f"{variable.name} {variable.type}: {distribution(layout)}")
    for variable, layouts in sorted(schedule.index_layouts.items(), key=lambda item: item[0].key):
        lines += [f"{variable.name} {variable.type}: {distribution(layout)}" for layout in layouts]
    for conversions in schedule.conversions.values():
        lines += [f"converted: {one.variable.name} to {distribution(one.layout)}" for one in conversions]
    return "\n".join(lines) + "\n"
