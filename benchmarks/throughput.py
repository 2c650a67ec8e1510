"""What the parts of a training step take, one by one: what `scale.py` reckons large trainings from.

    python benchmarks/throughput.py --count --out book/measured/throughput.csv     # FLOPs and bytes, minutes long
    python benchmarks/throughput.py --out book/measured/throughput.csv             # seconds on this machine's CPU
    python benchmarks/throughput.py --device cuda --out …                          # seconds and memory on a GPU
    python benchmarks/throughput.py decoding losses                                # some parts, nothing written

Counted: the encoders of GLAP's Table 4 and its text encoder, in their published sizes with random weights, one clip of
each length; FLOPs of the forward pass and of forward and backward, and the bytes that the forward pass keeps, in
float32. Whisper fills every clip up to 30 s, so that one length stands for all.

Measured on a CPU: seconds of work (not of the clock) of one thread, the least of the rounds, so that a busy machine
counts little; two processes that exchange embeddings are timed by the clock. On a GPU: seconds of the clock between
two synchronisations, and the allocator's peak. A clip has 5 s, d is 1,024.

Rows that the file holds of other ways or machines stay. Beside it stands its origin, `throughput.json`.
"""

import argparse
import platform
import resource
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import soundfile
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.cache import atomic_path
from pullpush.data.audio import load_audio
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders.beats import BEATs
from pullpush.encoders.frontend import LogMel
from pullpush.encoders.hub_audio import WavLM, Whisper
from pullpush.encoders.minilm import MiniLM
from pullpush.encoders.spectrogram_vit import CED, Dasheng
from pullpush.encoders.yamnet import YAMNet
from pullpush.losses import plain, siglip
from pullpush.studies import measured
from pullpush.studies.counting import cost
from pullpush.studies.measured import BOTH, FORWARD, KEPT, WEIGHTS
from pullpush.training.distributed import gather

RATE, CLIP, DIM = 16_000, 5, 1024
LENGTHS, TOKENS = (1, 2, 5, 10), (8, 16, 32)  # of what is counted
COLUMNS = ["how", "machine", "what", "size", "quantity", "value"]
SECONDS, FLOPS, PEAK = "seconds", "FLOP/s", "MiB"  # quantities
SIZES = {"cpu": (1024, 2048), "cuda": (1024, 4096, 8192, 16_384, 32_768)}  # of a batch, for the loss alone
Row = tuple[str, float, str, float]  # what, size, quantity, value
Step = Callable[[], Any]


def whisper(width: int, layers: int) -> nn.Module:
    import transformers

    heads, inner = {"encoder_attention_heads": width // 64, "decoder_attention_heads": width // 64}, 4 * width
    config = transformers.WhisperConfig(
        d_model=width, encoder_layers=layers, encoder_ffn_dim=inner, decoder_layers=1, **heads
    )
    return Whisper(model=config)


def wavlm() -> nn.Module:
    import transformers

    return WavLM(model=transformers.WavLMConfig())


def sonar(vocabulary: int = 256_206) -> nn.Module:
    """SONAR's text encoder, from numbers of tokens to the mean over them."""
    import transformers
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100Encoder

    sizes = {"d_model": DIM, "encoder_layers": 24, "encoder_attention_heads": 16, "encoder_ffn_dim": 8192}
    config = transformers.M2M100Config(vocab_size=vocabulary, encoder_layerdrop=0.0, **sizes)
    return M2M100Encoder(config)


AUDIO: dict[str, Callable[[], nn.Module]] = {
    "dasheng": lambda: Dasheng(pretrained=False),
    "ced": lambda: CED(pretrained=False),
    "beats": lambda: BEATs(pretrained=False),
    "wavlm": wavlm,
    "whisper-small": lambda: whisper(768, 12),
    "whisper-base": lambda: whisper(512, 6),
}

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sigmoid, plain": plain.siglip,
    "sigmoid, in tiles": siglip,
}


# -------------------------------------------------------------------------------------------------------- counting


def counted() -> Iterator[Row]:
    """Rows of what is counted."""
    for name, make in AUDIO.items():
        encoder = make().train()
        yield name, 0, WEIGHTS, float(sum(p.numel() for p in encoder.parameters()))
        for seconds in (30,) if name.startswith("whisper") else LENGTHS:
            clip = 0.1 * torch.randn(1, RATE * seconds)
            yield from of_cost(name, seconds, cost(encoder, partial(encoder, clip)))
    with torch.device("meta"):
        yield "sonar", 0, WEIGHTS, float(sum(p.numel() for p in sonar().parameters()))
    text = sonar(vocabulary=1000).train()  # looking tokens up computes nothing
    for tokens in TOKENS:
        numbers = torch.full((1, tokens), 7)
        yield from of_cost("sonar", tokens, cost(text, lambda: text(input_ids=numbers).last_hidden_state.mean(1)))  # noqa: B023


def of_cost(name: str, size: float, found: Any) -> Iterator[Row]:
    quantities = (FORWARD, BOTH, KEPT)
    yield from ((name, size, quantity, float(value)) for quantity, value in zip(quantities, found, strict=True))


# ------------------------------------------------------------------------------------------------------- measuring


class Clock:
    """Least seconds of a step over some rounds, after one that warms up."""

    def __init__(self, device: str, rounds: int) -> None:
        self.device, self.rounds = device, rounds

    def __call__(self, step: Step) -> float:
        step()
        return min(self._once(step) for _ in range(self.rounds))

    def _once(self, step: Step) -> float:
        clock, wait = (time.perf_counter, torch.cuda.synchronize) if self.device == "cuda" else (time.process_time, int)
        wait()
        start = clock()
        step()
        wait()
        return clock() - start

    def peak(self, step: Step) -> float:
        """MiB that a step takes at its highest beyond what was held: of the allocator; on a CPU of the process."""
        if self.device == "cuda":
            step()
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            step()
            return (torch.cuda.max_memory_allocated() - held) / 2**20
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        step()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10


def arithmetic(clock: Clock) -> Iterator[Row]:
    """Products of square matrices: what the machine can do at best, in FLOP/s."""
    types = {"float32": torch.float32} | ({"bfloat16": torch.bfloat16} if clock.device == "cuda" else {})
    side = 8192 if clock.device == "cuda" else 1024
    for name, dtype in types.items():
        a, b = (torch.randn(side, side, device=clock.device, dtype=dtype) for _ in range(2))
        yield f"products in {name}", side, FLOPS, 2 * side**3 / clock(lambda: a @ b)  # noqa: B023


def decoding(clock: Clock) -> Iterator[Row]:
    """Seconds of work to read a file of 5 s as one channel at 16 kHz, by format."""
    world = load_world(WorldConfig("synthetic", n_train=8, n_valid=1, n_test=1))
    audio, lengths = world.train.audio(slice(None))
    wave = torch.cat([row[:length] for row, length in zip(audio, lengths.tolist(), strict=True)])[: CLIP * RATE]
    formats = {"FLAC, 16 kHz": ("flac", 1), "FLAC, 48 kHz, stereo": ("flac", 3), "OGG, 16 kHz": ("ogg", 1)}
    formats |= {"OGG, 48 kHz, stereo": ("ogg", 3), "WAV, 16 kHz": ("wav", 1)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, factor) in formats.items():
            path = Path(folder) / f"clip.{kind}"
            samples = wave if factor == 1 else F.interpolate(wave[None, None], scale_factor=factor, mode="linear")[0, 0]
            channels = samples.numpy() if factor == 1 else np.stack([samples, 0.5 * samples], axis=1)
            soundfile.write(path, channels, RATE * factor)
            yield f"decoding {name}", CLIP, SECONDS, clock(lambda: load_audio(path))  # noqa: B023


def encoders(clock: Clock) -> Iterator[Row]:
    """Seconds a clip of 5 s: log-mel, YAMNet heard and trained, and Dasheng-base trained, which was counted, too."""
    batch = 32 if clock.device == "cuda" else 2
    audio = 0.1 * torch.randn(batch, CLIP * RATE, device=clock.device)
    mel, yamnet = LogMel().to(clock.device), YAMNet(pretrained=False).to(clock.device)

    def heard(encoder: nn.Module) -> Step:
        return torch.no_grad()(lambda: encoder(audio))

    def trained(encoder: nn.Module) -> Step:
        def step() -> None:
            encoder.zero_grad()
            with torch.autocast(clock.device, torch.bfloat16, enabled=clock.device == "cuda"):
                features = encoder(audio)
            features.float().square().mean().backward()

        return step

    yield "log-mel", CLIP, SECONDS, clock(heard(mel)) / batch
    yield "yamnet, heard", CLIP, SECONDS, clock(heard(yamnet.eval())) / batch
    yield "yamnet, trained", CLIP, SECONDS, clock(trained(yamnet.train())) / batch
    names = AUDIO if clock.device == "cuda" else ("dasheng",)
    for name in names:
        step = trained(AUDIO[name]().train().to(clock.device))
        yield f"{name}, trained", CLIP, SECONDS, clock(step) / batch
        if clock.device == "cuda":
            yield f"{name}, trained", CLIP, PEAK, clock.peak(step) / batch


def texts(clock: Clock) -> Iterator[Row]:
    """Seconds a caption of encoders that look features up, for captions that were never seen; size: of words."""
    from pullpush.encoders.use import UseEncoder

    world = load_world(WorldConfig("synthetic", n_train=16, n_valid=1, n_test=1))
    captions = [text for language in LANGUAGES for several in world.train.captions(language) for text in several]
    english = [text for several in world.train.captions("eng") for text in several]
    words = round(float(np.mean([len(text.split()) for text in english])))
    use, minilm = UseEncoder(), MiniLM(pretrained=False).eval()
    yield "use", words, SECONDS, clock(lambda: use(captions)) / len(captions)
    reads = torch.no_grad()(lambda: minilm(english))
    yield "minilm", words, SECONDS, clock(reads) / len(english)


def losses(clock: Clock) -> Iterator[Row]:
    """Seconds and MiB of the loss alone, forward and backward, by batch size; plain and in tiles."""
    for n in SIZES[clock.device]:
        leaves = [F.normalize(torch.randn(n, DIM, device=clock.device), dim=1).requires_grad_() for _ in range(2)]
        for name, loss in LOSSES.items():

            def step() -> None:
                for leaf in leaves:  # noqa: B023
                    leaf.grad = None
                with torch.device(clock.device):
                    loss(*leaves).backward()  # noqa: B023

            try:
                peak, seconds = clock.peak(step), clock(step)
            except torch.OutOfMemoryError:
                continue
            yield name, n, SECONDS, seconds
            if clock.device == "cuda":
                yield name, n, PEAK, peak


def gathering(clock: Clock) -> Iterator[Row]:
    """Seconds of the clock in which two processes on this machine exchange their embeddings, forward and backward."""
    if clock.device == "cuda":
        return  # one GPU has nobody to exchange with
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES["cpu"]:
            out = Path(folder) / f"{n}.txt"
            torch.multiprocessing.spawn(_exchange, (folder, n, clock.rounds, str(out)), nprocs=2)
            yield "gathering, 2 processes, gloo", n, SECONDS, float(out.read_text())


def _exchange(rank: int, folder: str, n: int, rounds: int, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet{n}", rank=rank, world_size=2)
    local, least = torch.randn(n // 2, DIM, requires_grad=True), float("inf")
    for _ in range(rounds + 1):
        dist.barrier()
        start = time.perf_counter()
        (gather(local).sum() + gather(local).sum()).backward()  # audio and texts
        least = min(least, time.perf_counter() - start)
    if rank == 0:
        Path(out).write_text(str(least))
    dist.destroy_process_group()


PARTS = {part.__name__: part for part in (arithmetic, decoding, encoders, texts, losses, gathering)}


def machine(device: str) -> str:
    """What it is measured on, in words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, one thread"


def write(rows: Sequence[tuple[Any, ...]], how: str, path: Path) -> None:
    """Add rows to a file, in place of those of the same way, machine and thing."""
    new = pd.DataFrame(rows, columns=COLUMNS)
    if path.is_file():
        old = pd.read_csv(path)
        same = (old["how"] == how) & old["machine"].isin(new["machine"]) & old["what"].isin(new["what"])
        new = pd.concat([old[~same], new]).sort_values("how", kind="stable")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        new.to_csv(partial, index=False, float_format="%.15g")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="to measure; default: all")
    parser.add_argument("--count", action="store_true", help="count FLOPs and bytes instead")
    parser.add_argument("--device", choices=tuple(SIZES), default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="CSV file; rows of other ways and machines stay")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start, where = time.monotonic(), "any" if options.count else machine(options.device)
    how = measured.COUNTED if options.count else f"measured, {options.device}"
    clock, rows = Clock(options.device, options.rounds), []
    sources = [counted()] if options.count else [PARTS[name](clock) for name in options.parts or PARTS]
    for source in sources:
        for row in source:
            rows.append((how, where, *row))
            print(*row, sep=", ", flush=True)
    if options.out:
        command = shlex.join(["python", "benchmarks/throughput.py", *(arguments or sys.argv[1:])])
        write(rows, how, options.out)
        measured.note("throughput", how, time.monotonic() - start, command, path=options.out)


if __name__ == "__main__":
    main()
