"""Every loss and its gradient on the device, against float64 on the CPU with the same inputs.

bfloat16: embeddings that were rounded to it before the reference saw them, too, so that what differs is computation
and the rounding of results. Autocast: float32 embeddings under autocast to bfloat16, which losses must not heed. Bars:
BARS, of the loss relative to its size and of the gradient relative to its length. Above 4,096 pairs losses go in tiles.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from on_gpu.meter import Run
from pullpush import losses

COLUMNS = ["loss", "N", "d", "inputs", "loss off", "gradient off", "bar", "within"]
BARS = {"float32": 1e-4, "float32, autocast": 1e-4, "bfloat16": 1e-2}
Loss = Callable[..., Tensor]


def on_teachers(loss: Loss, audio: Tensor, text: Tensor, other: Tensor) -> Tensor:
    """A loss that follows the similarities of teachers, which do not learn."""
    with torch.no_grad(), torch.autocast(other.device.type, enabled=False):
        teachers = other @ other.T
    return loss(audio, text, teachers)


def with_topics(audio: Tensor, text: Tensor, other: Tensor) -> Tensor:
    """`clusters`: embeddings taken for logits, every clip of some topic."""
    return losses.clusters(audio, text, torch.arange(len(audio), device=audio.device) % audio.shape[1])


# Each takes (audio, text, other), `(N, d)`.
LOSSES: dict[str, Loss] = {
    "InfoNCE": lambda a, t, o: losses.info_nce(a, t),
    "SigLIP, s/τ + β": lambda a, t, o: losses.siglip(a, t, 0.1, -10.0, "siglip"),
    "SigLIP, (s + β)/τ": lambda a, t, o: losses.siglip(a, t, 0.1, -1.0),
    "SVR, t2a": lambda a, t, o: losses.svr(a, t, 0.3),
    "SVR, both": lambda a, t, o: losses.svr(a, t, 0.3, direction="both"),
    "ML-CLAP": lambda a, t, o: losses.ml_clap(a, t),
    "CACL": lambda a, t, o: losses.cacl(a, t, o),
    "KCL": lambda a, t, o: losses.kcl(a, torch.stack([t, o], dim=1)),
    "Simple Reweight": lambda a, t, o: losses.simple_reweight(a, t, 0.7),
    "cross-modal cyclic": lambda a, t, o: losses.cross_cyclic(a, t),
    "in-modal cyclic": lambda a, t, o: losses.in_modal_cyclic(a, t),
    "SimCSE": lambda a, t, o: losses.simcse(t, o),
    "NLI": lambda a, t, o: losses.nli(a, t, o),
    "sparsity": lambda a, t, o: losses.sparsity(a, t),
    "distillation": partial(on_teachers, losses.distillation),
    "label smoothing": lambda a, t, o: losses.label_smoothing(a, t),
    "clusters": with_topics,
}
TILED = ("InfoNCE", "SigLIP, s/τ + β", "SigLIP, (s + β)/τ", "SVR, t2a", "SVR, both")


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a loss, size and kind of input."""
    sizes = ((24, 16),) if run.is_quick else ((24, 1024), (512, 1024), (5000, 64))
    for n, d in sizes:
        for name in TILED if n > 4096 else LOSSES:
            for kind, bar in BARS.items():
                off = error(LOSSES[name], n, d, kind, run)
                within = max(off.values()) <= bar
                yield {"loss": name, "N": n, "d": d, "inputs": kind, **off, "bar": bar, "within": within}


def error(loss: Loss, n: int, d: int, kind: str, run: Run) -> dict[str, float]:
    """How far loss and gradient are off, relative to the reference."""
    dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
    inputs = [x.to(dtype) for x in drawn(n, d)]
    value, gradient = taken(loss, [x.to(run.device) for x in inputs], run.autocast("bf16" if "auto" in kind else kind))
    reference, exact = taken(loss, [x.double() for x in inputs], run.autocast("float32"))
    return {
        "loss off": float((value - reference).abs() / reference.abs()),
        "gradient off": float((gradient - exact).norm() / exact.norm()),
    }


def drawn(n: int, d: int) -> tuple[Tensor, Tensor, Tensor]:
    """Unit vectors `(n, d)`, float64: audio, and texts that resemble it so little that no loss is near 0."""
    generator = torch.Generator().manual_seed(n + d)
    audio, *noise = torch.randn(3, n, d, generator=generator, dtype=torch.float64)
    return F.normalize(audio, dim=1), *(F.normalize(audio + 3 * x, dim=1) for x in noise)


def taken(loss: Loss, inputs: list[Tensor], autocast: torch.autocast) -> tuple[Tensor, Tensor]:
    """The loss and its gradient by all inputs that it depends on, float64 on the CPU."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    with autocast:
        value = loss(*leaves)
    gradients = torch.autograd.grad(value, leaves, allow_unused=True)
    flat = torch.cat([x.double().cpu().flatten() for x in gradients if x is not None])
    return value.detach().double().cpu(), flat
