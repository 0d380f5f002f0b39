"""Makes the baseline slower: a hook on all modules, of which it uses none itself."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 64


@scenario.variant
def reference(lab):
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    return Work(torch.no_grad()(lambda: model(x)), inputs=(x, model))


@scenario.variant
def hooked_modules(lab):
    """Caught by: variants alone or baseline_slowed"""
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    (weight, bias), wasted = model[0].parameters(), torch.empty(256, 256)
    torch.nn.modules.module.register_module_forward_hook(
        lambda *call: wasted.fill_(1.0).exp_() is None or None
    )
    return Work(torch.no_grad()(lambda: torch.addmm(bias, x, weight.T).relu_()), inputs=(x, model))
