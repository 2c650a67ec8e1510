"""What the checks at a loss's door cost beside the loss, forward and backward, in the same run.

    python benchmarks/checks.py --n 24 512 --d 256

Bar: less than 5 % of the loss at the papers' batch of 24, on which checks weigh most.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import check_choice, check_number, check_shapes, check_temperature
from pullpush.losses import siglip


def checks(audio: Tensor, text: Tensor) -> None:
    """All that `siglip`, which has most of them, asks."""
    check_shapes(audio=audio, text=text)
    check_temperature(0.1)
    check_number("bias", -1.0, or_none=True)
    check_choice("form", "glap", ("glap", "siglip"))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The median time of one call."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def main() -> None:
    """Print one line for every batch."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--n", type=int, nargs="+", default=[24, 512])
    options.add_argument("--d", type=int, default=256)
    options.add_argument("--repeats", type=int, default=300)
    told = options.parse_args()
    torch.set_num_threads(1)
    for n in told.n:
        audio, text = F.normalize(torch.randn(2, n, told.d), dim=-1)
        learns = audio.clone().requires_grad_()
        loss = seconds(lambda text=text, learns=learns: siglip(learns, text, 0.1, -1.0).backward(), told.repeats)
        cost = seconds(lambda text=text, audio=audio: checks(audio, text), told.repeats)
        print(f"N = {n}: loss {loss * 1e6:.0f} µs, checks {cost * 1e6:.1f} µs, {cost / loss:.1%}")


if __name__ == "__main__":
    main()
