"""Streaming metrics for click prediction."""
import torch


def binary_auc(scores, labels):
    """Rank-based area under the ROC curve."""
    order = torch.argsort(scores)
    positives = labels[order]
    ranks = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    n_pos = positives.sum().double()
    n_neg = len(scores) - n_pos
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    rank_sum = (ranks * positives).sum()
    return float((rank_sum - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


class ClickMeter:
    def __init__(self):
        self.scores, self.labels = [], []
        self.loss_sum = 0.0

    def update(self, scores, labels, loss):
        self.scores.append(scores.detach())
        self.labels.append(labels)
        self.loss_sum += loss * len(labels)

    def report(self):
        scores = torch.cat(self.scores)
        labels = torch.cat(self.labels)
        return {"loss": self.loss_sum / len(labels), "auc": binary_auc(scores, labels), "rate": float(labels.mean())}
