"""Fine-tuning by the library's loop against a plain loop of Hugging Face and open_clip, on the same model, in turns.

The library: `training.train` as everyone calls it, on a `PairDataset`. Plain: a `DataLoader`, the same networks called
directly under autocast, open_clip's loss (written out below where open_clip is not installed), clipping, AdamW and a
cosine. Both read clips from the same array in memory and tokens from the same tokenizer; once more with four processes
that load, which the library's loop does not have. Both in bfloat16 on a GPU. Seconds are those of a step, from the
first batch that counts to the last one's end, data included, validation not.
"""

import gc
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from paper_models import Sizes
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from on_gpu.meter import Run, ratios
from on_gpu.models import dual_encoder, sizes_of
from pullpush.data.batches import PairDataset
from pullpush.data.clips import StoredClips
from pullpush.data.store import FULL_SCALE, Waveforms
from pullpush.encoders.dual import DualEncoder
from pullpush.training import recipe
from pullpush.training.loop import train
from pullpush.training.recipes import Recipe

COLUMNS = ["loss", "batch", "loop", "seconds", "clips per second", "ratio", "low", "high", "MiB", "plain loss"]
WARM, RATE, LR, STORED = 4, 16_000, 1e-5, 256
PLANS = (("infonce-learnable", 24, 24), ("infonce-learnable", 128, 10), ("siglip", 128, 10))  # name, batch, steps


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a loss, batch size and loop; the ratio is of seconds, over the plain loop's without processes."""
    sizes = sizes_of(run.is_quick)
    model, waves = dual_encoder(sizes, run.device), waveforms(sizes)
    for name, batch, steps in (("infonce-learnable", 3, 2), ("siglip", 3, 2)) if run.is_quick else PLANS:
        one = recipe(name, dim=sizes.dim, batch_size=batch, epochs=1, optimiser="adamw", lr=LR)
        clips = stored(sizes, waves, batch * (WARM + steps))
        loops = {
            "plain": lambda one=one, clips=clips: plain(run, model, one, clips, 0),
            "plain, 4 loading processes": lambda one=one, clips=clips: plain(run, model, one, clips, 4),
            "library": lambda one=one, clips=clips: library(run, model, one, clips),
        }
        found = [one_round(loops) for _ in run.rounds(3, 1)]
        seconds = ratios([{loop: taken[0] / steps for loop, taken in each.items()} for each in found], "plain")
        for loop, numbers in seconds.items():
            value = numbers.pop("value")
            row = {"loss": one.terms[0].name, "batch": batch, "loop": loop, "seconds": value, **numbers}
            row |= {"clips per second": batch / value, "MiB": max(each[loop][1] for each in found if loop in each)}
            yield row | {"plain loss": "open_clip" if open_clip_loss(one) else "written out"}


def one_round(loops: dict[str, Callable[[], tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Seconds of the steps that count, and MiB, of every loop; one whose processes cannot share memory drops out."""
    found = {}
    for loop, work in list(loops.items()):
        gc.collect()  # accelerate holds the last optimiser's moments in cycles
        try:
            found[loop] = work()
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            print(f"{loop}: left out: {error}", flush=True)
            del loops[loop]
    return found


def waveforms(sizes: Sizes) -> Waveforms:
    """Noise, int16 in memory."""
    samples = round(RATE * sizes.seconds)
    noise = np.random.default_rng(0).integers(-3000, 3000, STORED * samples, dtype=np.int16)
    return Waveforms(noise, samples * np.arange(1, STORED + 1))


def stored(sizes: Sizes, waves: Waveforms, count: int) -> StoredClips:
    """Clips with a caption of random words each; the waveforms serve more than once."""
    rng = np.random.default_rng(1)
    counts = rng.choice(sizes.tokens, count)
    texts = [[" ".join(f"w{number}" for number in rng.integers(10**9, size=tokens))] for tokens in counts]
    columns = {"file": list(range(count)), "texts": texts}
    rows = np.arange(count) % len(waves)
    return StoredClips("noise", "noise", waves, rows, columns, in_language)


def in_language(columns: Mapping[str, Any], language: str) -> list[list[str]]:
    """Captions of as many words, each another one than in any other language."""
    return [[text.replace("w", language) for text in texts] for texts in columns["texts"]]


# ------------------------------------------------------------------------------------------------------- the library


class Timed:
    """Looks at the clock before the first step that counts encodes its texts, and when validation begins.

    A hook of the text encoder: batches are asked for long before their step comes.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.steps, self.seconds, self.most = run, 0, math.nan, math.nan

    def __call__(self, text: nn.Module, given: Any) -> None:
        self.steps += text.training
        if text.training and self.steps == WARM + 1:
            self.start = self.run.start()
        elif not text.training and math.isnan(self.seconds):
            self.seconds, self.most = self.run.since(self.start), self.run.peak()


def library(run: Run, model: DualEncoder, one: Recipe, clips: StoredClips) -> tuple[float, float]:
    """Seconds of the steps that count, and the peak in MiB."""
    timed = Timed(run)
    hook = model.text.register_forward_pre_hook(timed)
    train(model, one, PairDataset(clips), clips.head(2), progress=False)
    hook.remove()
    return timed.seconds, timed.most


# ---------------------------------------------------------------------------------------------------- the plain loop


class Pairs(Dataset[tuple[Tensor, list[int]]]):
    """A waveform and its caption's tokens."""

    def __init__(self, clips: StoredClips, tokenizer: Callable[[str], Any]) -> None:
        self.clips, self.tokenizer, self.texts = clips, tokenizer, [texts[0] for texts in clips.captions("eng")]

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> tuple[Tensor, list[int]]:
        wave = self.clips.waveforms[int(self.clips.rows[index])].astype(np.float32) / FULL_SCALE
        return torch.from_numpy(wave), self.tokenizer(self.texts[index]).input_ids


def together(items: list[tuple[Tensor, list[int]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Waveforms `(B, T)`, tokens and mask `(B, S)`."""
    longest = max(len(ids) for _, ids in items)
    ids = torch.tensor([row + [1] * (longest - len(row)) for _, row in items])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for _, row in items])
    return torch.stack([wave for wave, _ in items]), ids, mask


def plain(run: Run, model: DualEncoder, one: Recipe, clips: StoredClips, workers: int) -> tuple[float, float]:
    """A loop as one writes it: seconds of the steps that count, and the peak in MiB."""
    audio, text = model.audio.network.model, model.text.network.model
    scale, bias = (nn.Parameter(torch.tensor(value, device=run.device)) for value in (math.log(1 / 0.07), -10.0))
    loss_of = open_clip_loss(one) or {"infonce": clip_loss, "siglip": sigmoid_loss}[one.terms[0].name]
    trained = [*model.parameters(), scale, bias]
    optimiser = torch.optim.AdamW(trained, lr=one.lr, weight_decay=one.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, len(clips) // one.batch_size)
    loader = DataLoader(
        Pairs(clips, model.text.tokenizer), one.batch_size, shuffle=True, drop_last=True, collate_fn=together,
        num_workers=workers, pin_memory=run.on_gpu and workers > 0,
    )  # fmt: skip
    model.train()
    start = math.nan
    for number, tensors in enumerate(loader):
        wave, ids, mask = (tensor.to(run.device, non_blocking=True) for tensor in tensors)
        with run.autocast("bf16" if run.on_gpu else "float32"):
            heard = F.normalize(model.audio_projection.layers(audio(wave, None)), dim=-1)
            states = text(input_ids=ids, attention_mask=mask).last_hidden_state
            mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            said = F.normalize(model.text_projection.layers(mean), dim=-1)
            loss = loss_of(heard, said, scale.exp(), bias)
        loss.backward()
        nn.utils.clip_grad_norm_(trained, one.clip)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if number == WARM - 1:
            start = run.start()
    return run.since(start), run.peak()


def clip_loss(audio: Tensor, text: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """open_clip's `ClipLoss` of one process."""
    logits = scale * audio @ text.T
    target = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def sigmoid_loss(audio: Tensor, text: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """open_clip's `SigLipLoss` of one process."""
    logits = scale * audio @ text.T + bias
    sign = 2 * torch.eye(len(logits), device=logits.device, dtype=logits.dtype) - 1
    return -F.logsigmoid(sign * logits).sum() / len(logits)


def open_clip_loss(one: Recipe) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None:
    """open_clip's own loss, where it is installed."""
    try:
        losses = importlib.import_module("open_clip.loss")
    except ImportError:
        return None
    if one.terms[0].name == "siglip":
        return losses.SigLipLoss()
    loss = losses.ClipLoss()
    return lambda audio, text, scale, bias: loss(audio, text, scale)
