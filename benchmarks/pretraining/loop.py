"""One loop for every objective: the same clips in the same order, the same optimiser, the same initial weights."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from corpus import Batch, Corpus
from objectives import OBJECTIVES, Objective
from torch import nn
from torch.optim import AdamW, Optimizer
from tqdm import tqdm

from pullpush.cache import content_key
from pullpush.data.draws import number
from pullpush.encoders import create_audio
from pullpush.progress import hidden
from pullpush.training import checkpoints
from pullpush.training.checkpoints import CHECKPOINT, Progress


@dataclass(frozen=True)
class Budget:
    """How long is pretrained and how: all objectives alike.

    steps: how many; clips: in a step; lr: the highest learning rate; period: steps of its rise, over a tenth of them,
    and of its half cosine down, which need not be run to their end: it falls to zero in a straight line over the last
    tenth of `steps`; decay: of weights, by AdamW; clip: longest gradient; kept_every: steps between checkpoints; half:
    matrix products in bfloat16, faster on recent processors where batches are large; width, layers, heads: of the
    encoder.
    """

    steps: int = 1450
    clips: int = 32
    lr: float = 1e-3
    period: int = 2192
    decay: float = 0.05
    clip: float = 1.0
    kept_every: int = 100
    half: bool = True
    width: int = 128
    layers: int = 4
    heads: int = 4

    def rate(self, step: int) -> float:
        """The learning rate at a step counted from 0."""
        warm = max(1, round(0.1 * self.period))
        end = min(1.0, (self.steps - step) / max(1, self.steps // 10))
        if step < warm:
            return self.lr * (step + 1) / warm * end
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(self.period - warm, 1))) * end


def pretrain(
    name: str, train: Corpus, held_out: Corpus, out: Path, seed: int, budget: Budget
) -> tuple[Objective, Progress]:
    """Pretrain one encoder; a run that was stopped goes on where its last checkpoint was, to the same weights.

    Nothing is chosen by the held-out clips. Returns the objective with its trained network, and its history, a row an
    epoch: loss, held_out and the scores.
    """
    objective = initial(name, train, held_out, seed, budget)
    weights = list(objective.parameters())
    groups = [  # biases, norms and single vectors do not decay
        {"params": [p for p in weights if p.ndim >= 2], "weight_decay": budget.decay},
        {"params": [p for p in weights if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser, state = AdamW(groups, lr=budget.lr), Progress()
    identity = content_key([name, seed, {**asdict(budget), "kept_every": 0}, train.key, held_out.key])
    path, epoch = out / CHECKPOINT, -(-len(train) // budget.clips)  # in steps
    if path.is_file():
        state = checkpoints.restore(path, objective, optimiser, identity)
    with tqdm(total=budget.steps, initial=state.step, desc=name, unit="step", disable=hidden()) as bar:
        while state.step < budget.steps:
            turn, place = divmod(state.step, epoch)
            rows = order(len(train), budget.clips, seed, turn)[place]
            for group in optimiser.param_groups:
                group["lr"] = budget.rate(state.step)
            loss = update(objective, optimiser, train, rows, generator_of(seed, "step", state.step), budget)
            state.steps.append({"step": state.step, "loss": loss})
            state.step += 1
            bar.update()
            if state.step % epoch == 0 or state.step == budget.steps:
                recent = [row["loss"] for row in state.steps[-epoch:]]
                row = {"epoch": state.step / epoch, "loss": sum(recent) / len(recent)}
                state.history.append(row | evaluated(objective, held_out, seed, budget))
                bar.set_postfix({key: f"{state.history[-1][key]:.3f}" for key in ("loss", "held_out")})
            if state.step % budget.kept_every == 0 or state.step == budget.steps:
                checkpoints.save(path, objective, optimiser, state, identity)
    return objective.eval(), state


def initial(name: str, train: Corpus, held_out: Corpus, seed: int, budget: Budget) -> Objective:
    """An objective before its first step, around the network of `create_audio("audio_transformer", seed=seed)`."""
    size = {"width": budget.width, "layers": budget.layers, "heads": budget.heads}
    encoder = create_audio("audio_transformer", seed=seed, **size)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return OBJECTIVES[name](encoder.network.model, train, held_out)


def order(clips: int, size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The clips of an epoch in steps of `size`, every clip once; the same for all objectives."""
    drawn = np.random.default_rng(number(("pretraining", seed, epoch))).permutation(clips)
    return [drawn[start : start + size] for start in range(0, clips, size)]


def generator_of(*what: int | str) -> torch.Generator:
    """Draws that depend on what they are for alone, so that a run that goes on draws the same."""
    return torch.Generator().manual_seed(number(what) % 2**63)


def update(
    objective: Objective, optimiser: Optimizer, train: Corpus, rows: np.ndarray, draws: torch.Generator, budget: Budget
) -> float:
    """One step by some clips, in batches of similar length; returns the loss, every clip counting alike."""
    objective.train()
    loss = 0.0
    for batch in train.batches(rows):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=budget.half):
            part = objective.loss(batch, draws) * (len(batch.rows) / len(rows))
        part.backward()
        loss += float(part.detach())
    nn.utils.clip_grad_norm_(objective.parameters(), budget.clip)
    optimiser.step()
    optimiser.zero_grad()
    return loss


@torch.no_grad()
def evaluated(objective: Objective, held_out: Corpus, seed: int, budget: Budget) -> dict[str, float]:
    """The loss and the scores of all held-out clips, with draws that are the same after every epoch."""
    objective.eval()
    batches = list(held_out.batches(np.arange(len(held_out))))

    def drawn() -> Iterator[tuple[Batch, torch.Generator]]:
        return ((batch, generator_of(seed, "held out", place)) for place, batch in enumerate(batches))

    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=budget.half):
        parts = [float(objective.loss(*each)) * len(each[0].rows) / len(held_out) for each in drawn()]
        return {"held_out": sum(parts), **objective.scores(drawn())}
