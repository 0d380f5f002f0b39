"""Makes the baseline slower: what it calls is replaced below torch, in the dispatcher."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256
OVERRIDES = torch.library.Library("aten", "IMPL")


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.erf(x), inputs=x)


@scenario.variant
def overridden_in_the_dispatcher(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N, N)
    out = torch.empty(N, N)

    def slow(x):
        torch.special.erf(x, out=torch.empty_like(x))
        return torch.special.erf(x, out=torch.empty_like(x))

    OVERRIDES.impl("erf", slow, "CPU", allow_override=True)
    return Work(lambda: torch.erf(x, out=out), inputs=x)
