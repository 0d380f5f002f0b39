"""Nucleus sampling for word-level generation."""
import torch


class NucleusSampler:
    def __init__(self, top_p=0.9, temperature=0.8, repetition_penalty=1.2, window=32, seed=0):
        self.top_p, self.temperature = top_p, temperature
        self.penalty, self.window = repetition_penalty, window
        self.generator = torch.Generator().manual_seed(seed)

    def penalise(self, logits, history):
        recent = torch.tensor(sorted(set(history[-self.window :])))
        values = logits[recent]
        logits[recent] = torch.where(values > 0, values / self.penalty, values * self.penalty)
        return logits

    def nucleus(self, probs):
        ranked = sorted(range(len(probs)), key=lambda i: probs[i].item(), reverse=True)
        ranked = torch.tensor(ranked)
        mass = torch.cumsum(probs[ranked], dim=0)
        keep = int((mass < self.top_p).sum()) + 1
        return ranked[:keep]

    def pick(self, logits, history):
        logits = self.penalise(logits.clone(), history)
        probs = torch.softmax(logits / self.temperature, dim=0)
        allowed = self.nucleus(probs)
        choice = torch.multinomial(probs[allowed], 1, generator=self.generator)
        return int(allowed[choice])
