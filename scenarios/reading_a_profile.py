"""Reading a profile: self time says where time goes, total time who asked for it.

**In short:** sort by self time for the large pieces, and by total or calls for the many small ones.

```text
one step of planted on a CPU, each character 2 %

mm           █████████████████
contiguous                    ░░░░░░░░░░░░
 copy_                        ████████████
chunk                                     ░░░░░░░░░░░░
 split                                    ███░░░░░░░░░
relu_                                                 █████░░░░
 clamp_min_                                                ████
             █ self   ░ total: in the calls below it
```

| variant | what changes | expected (CPU, by its table) | why |
|---|---|---|---|
| `planted` | `weight.t().contiguous()`, and `relu_` piece by piece | baseline | 25 % of the step are the copy, 41 % the pieces |
| `without_copy` | `mm` reads the transposed view | about 1.3x | the copy is one row of `copy_`, which self time shows |
| `one_call` | one `relu_` a layer | about 1.7x | no row of the pieces has 10 % of self time |
| `all_together` | both | about 2.9x | a third is left, of which `mm` is nearly all |

## The table

This is `key_averages().table(sort_by="cpu_time_total")` after ten steps (AMD EPYC, one thread,
torch 2.13, times left out):

    Name              Self CPU %  CPU total %  # of Calls
    aten::mm              33.08%       33.17%          40
    aten::contiguous       0.18%       24.63%          40
    aten::clone            0.54%       24.46%          40
    aten::chunk            0.27%       23.74%          40
    aten::split            6.31%       23.47%          40
    aten::copy_           22.99%       23.26%          40
    aten::relu_            9.43%       17.44%        2560
    aten::narrow           6.99%       17.16%        2560
    aten::slice            6.61%       10.17%        2560
    aten::clamp_min_       8.01%        8.01%        2560
    aten::as_strided       3.76%        3.76%        2600

## What each sort shows

An operation calls others. Its *total* holds them, its *self* does not: only self times add up to
100 %. Sorted by self, `copy_` is second, but `contiguous`, which the program wrote, is far below.
The pieces are six rows of 4 to 9 %, and look harmless. By total, `chunk` and `relu_` come up, 41 %
together. By calls, their rows stand first.

What a remedy can gain follows from the total that goes. For two add the shares, not the gains:

    gain = 1 / (1 - share)

`gpulab --run reading_a_profile --top 12` has calls, self, total and the line, sorted by self.

## Where it misleads

The profiler takes time with every call, so many short ones look larger. On a GPU the host only
starts kernels: self CPU is the cost of launches, and a wait looks like work. There sort by
`self_device_time_total` too, as gpulab does. Host and device overlap, so a share of one of them is
no share of the step.

## In a training loop

A profile of all steps is too large, and the first ones compile and allocate. A schedule skips them:

    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler("traces"),
    ) as profiler:
        for batch in loader:
            train(batch)
            profiler.step()  # without it nothing is recorded

The TensorBoard plugin that the sources open it with was removed in 2026. `gpulab --why traces` reads
the same files, and so does Perfetto.

## What the sources say

They print the table and give no factor. Sorted by a total, its first rows are often a parent and
its children: one cost, counted several times.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    params={"rows": 64, "width": 4096, "layers": 4, "pieces": 16},
    cpu={"width": 256, "pieces": 64},
    smoke={"width": 32, "layers": 2, "pieces": 8},
    item="row",
    no_effect_reason=(
        "on a GPU, host and device work at the same time: less of the shorter one changes nothing"
    ),
    claim=(
        "bottleneck guide and profiling tutorial: the table of key_averages shows what to change; "
        "no factor"
    ),
    terms=(
        "key_averages",
        "torch.profiler",
        "profiler table",
        "self cpu",
        "sort_by",
        "schedule",
        "tensorboard",
    ),
)


@scenario.variant
def planted(lab, rows, width, layers, pieces):
    """A copy of each weight before its product, and the activation in `pieces` calls a layer."""
    return _network(lab, rows, width, layers, pieces, copies=True)


@scenario.variant
def without_copy(lab, rows, width, layers, pieces):
    """The product reads the transposed view of the weight, which `planted` copies first."""
    return _network(lab, rows, width, layers, pieces, copies=False)


@scenario.variant
def one_call(lab, rows, width, layers):
    """One call of the activation a layer, where `planted` has one for each piece."""
    return _network(lab, rows, width, layers, 1, copies=True)


@scenario.variant
def all_together(lab, rows, width, layers):
    """Both remedies: no copy, and one call of the activation a layer."""
    return _network(lab, rows, width, layers, 1, copies=False)


@torch.no_grad()
def _network(lab, rows, width, layers, pieces, copies):
    given = torch.randn(rows, width, device=lab.device)
    scale = (2 / width) ** 0.5
    weights = [torch.randn(width, width, device=lab.device) * scale for _ in range(layers)]

    @torch.no_grad()
    def step():
        hidden = given
        for weight in weights:
            turned = weight.t()  # a view: nothing moves
            if copies:
                turned = turned.contiguous()
            hidden = torch.mm(hidden, turned)
            _activate(hidden, pieces)
        return hidden

    return Work(
        step,
        flops=2 * rows * layers * width**2,
        bytes=sum(weight.nbytes for weight in weights) + 2 * given.nbytes,
        dtype="fp32",
        items=rows,
        inputs=(given, *weights),
    )


def _activate(hidden, pieces):
    if pieces == 1:
        hidden.relu_()
        return
    for part in hidden.chunk(pieces):
        part.relu_()
