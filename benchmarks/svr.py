"""Time and peak memory of SVR alone, forward and backward, against InfoNCE of both directions in the same run.

    python benchmarks/svr.py --n 2048 4096 --d 1024 --device cpu
    python benchmarks/svr.py --n 24 --d 128 --groups 8 --repeats 50

Bar: uni at most 2 ×, bi at most 3 × the time of InfoNCE alone, counted with and without InfoNCE itself in the sum.

With `--groups`, the losses are the mean over so many batches, as of one batch in so many languages. InfoNCE loops over
them; SVR takes them in one pass, which counts where the batch is small. "bi dynamic, looped" is what that saves.
"""

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses import SVR, Direction, info_nce as info_nce_of_one, svr


def two_matrices(audio: Tensor, text: Tensor, radius: Tensor, tau: float = 0.07) -> Tensor:
    """The closed form without optimisation: (1 − c) T·Aᵀ + c A·Aᵀ by autograd, text-to-audio, cosine."""
    distance = (audio - text).norm(dim=-1)
    c = (radius / distance).unsqueeze(-1)
    cosine = (audio * text).sum(dim=-1, keepdim=True)
    length = ((1 - c) ** 2 + 2 * c * (1 - c) * cosine + c**2).sqrt()
    scores = ((1 - c) * (text @ audio.mT) + c * (audio @ audio.mT)) / length / tau
    target = torch.arange(text.shape[1], device=text.device).repeat(len(text))
    return F.cross_entropy(scores.flatten(0, 1), target)


def looped(loss: Callable[[Tensor, Tensor], Tensor], audio: Tensor, text: Tensor) -> Tensor:
    """The mean over the groups of a loss that takes one at a time."""
    return sum(loss(a, t) for a, t in zip(audio, text, strict=True)) / len(audio)


def info_nce(audio: Tensor, text: Tensor, direction: Direction = "both") -> Tensor:
    """InfoNCE, the mean over the groups."""
    return looped(partial(info_nce_of_one, direction=direction), audio, text)


def losses(n: int, device: str) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """Name → loss of (audio, text, radius); embeddings come as `(G, N, d)`."""
    dynamic = SVR("dynamic", batch_size=n).to(device)
    return {
        "InfoNCE": lambda a, t, r: info_nce(a, t),
        "InfoNCE, t2a alone": lambda a, t, r: info_nce(a, t, direction="t2a"),
        "uni": lambda a, t, r: svr(a, t, r),
        "bi": lambda a, t, r: svr(a, t, r, direction="both"),
        "bi dynamic": lambda a, t, r: dynamic(a, t).value,
        "bi dynamic, looped": lambda a, t, r: looped(lambda a, t: dynamic(a, t).value, a, t),
        "InfoNCE + uni": lambda a, t, r: info_nce(a, t) + svr(a, t, r),
        "InfoNCE + bi": lambda a, t, r: info_nce(a, t) + svr(a, t, r, direction="both"),
        "uni by two matrices": two_matrices,
    }


def inputs(n: int, d: int, groups: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Unit audio and text embeddings `(groups, n, d)` and a scalar radius, all of which gradients reach."""
    generator = torch.Generator().manual_seed(0)
    drawn = F.normalize(torch.randn(2, groups, n, d, generator=generator), dim=-1).to(device)
    return *(x.clone().requires_grad_() for x in drawn), torch.tensor(0.3, device=device, requires_grad=True)


def step(loss: Callable[[Tensor, Tensor, Tensor], Tensor], tensors: tuple[Tensor, ...]) -> float:
    """Seconds of one forward and backward pass: of the clock on a GPU, of work on one CPU thread."""
    for tensor in tensors:
        tensor.grad = None
    wait = torch.cuda.synchronize if tensors[0].is_cuda else lambda: None
    wait()
    clock = time.perf_counter if tensors[0].is_cuda else time.process_time
    start = clock()
    loss(*tensors).backward()
    wait()
    return clock() - start


def seconds(n: int, d: int, groups: int, device: str, repeats: int, only: list[str] | None = None) -> dict[str, float]:
    """Least seconds of each loss; they take turns, so that a busy machine slows all of them alike."""
    tensors, table = inputs(n, d, groups, device), losses(n, device)
    if groups == 1:
        del table["bi dynamic, looped"]
    table = {name: table[name] for name in dict.fromkeys(["InfoNCE", *(only or table)])}
    for loss in table.values():
        step(loss, tensors)
    rounds = [{name: step(loss, tensors) for name, loss in table.items()} for _ in range(repeats)]
    return {name: min(times[name] for times in rounds) for name in table}


def peak_mebibytes(name: str, n: int, d: int, groups: int, device: str) -> float:
    """What one step takes beyond its inputs; call it in a process of its own, whose peak only ever rises."""
    loss = losses(n, device)[name]
    step(losses(64, device)[name], inputs(64, 8, groups, device))  # the libraries' own buffers come first
    tensors = inputs(n, d, groups, device)
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step(loss, tensors)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    before = high_water()
    step(loss, tensors)
    return high_water() - before


def high_water() -> float:
    """Largest resident size of this process so far in MiB (Linux; elsewhere NaN)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Print one table for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[1024, 2048], help="batch sizes")
    parser.add_argument("--d", type=int, default=1024, help="dimensions")
    parser.add_argument("--groups", type=int, default=1, help="batches in a step, each contrasted on its own")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int, default=5, help="timed steps of each loss")
    parser.add_argument("--only", nargs="+", help="names of losses; InfoNCE, with which they are compared, comes first")
    options = parser.parse_args()
    torch.set_num_threads(1)  # then the time that the process worked does not depend on who else works
    spawn = multiprocessing.get_context("spawn")
    for n in options.n:
        times = seconds(n, options.d, options.groups, options.device, options.repeats, options.only)
        with spawn.Pool(1, maxtasksperchild=1) as pool:
            jobs = [(name, n, options.d, options.groups, options.device) for name in times]
            memory = dict(zip(times, pool.starmap(peak_mebibytes, jobs, chunksize=1), strict=True))
        print(f"\nN = {n}, d = {options.d}, groups = {options.groups}, {options.device}")
        print(f"{'loss':22}{'ms':>10}{'× InfoNCE':>12}{'peak MiB':>12}")
        for name, value in times.items():
            print(f"{name:22}{1e3 * value:10.2f}{value / times['InfoNCE']:12.2f}{memory[name]:12.0f}")


if __name__ == "__main__":
    main()
