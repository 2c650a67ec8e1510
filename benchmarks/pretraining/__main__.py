"""Make the weights of `audio_transformer`: `python benchmarks/pretraining --objective tagging --out run`.

A run that was stopped goes on. What is written, tagging.safetensors and tagging.json with how it was made and what was
learnt, is what lies in `lib/pullpush/encoders/weights`.
"""

import argparse
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from corpus import CORPORA, Corpus, load_corpus
from loop import Budget, pretrain
from objectives import OBJECTIVES
from safetensors.torch import save_file

from pullpush.cache import atomic_path
from pullpush.errors import PullPushError

SIZES = ("steps", "clips", "width", "layers", "heads")  # of the budget, that have an option


def main(arguments: list[str] | None = None) -> int:
    """Pretrain, and write the weights, float16, and what is to be known of them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python benchmarks/pretraining", description=__doc__.splitlines()[0])
    parser.add_argument("--objective", choices=sorted(OBJECTIVES), required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run; an unfinished run there goes on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", choices=sorted(CORPORA), default="mixed")
    for size in SIZES:
        parser.add_argument(f"--{size}", type=int, default=getattr(Budget, size), help="default %(default)s")
    parser.add_argument("--single", action="store_true", help="single precision throughout, on older processors faster")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # sums in one order: the same weights on machines of one kind
    budget = Budget(**{size: getattr(options, size) for size in SIZES}, half=not options.single)
    name, corpora = options.objective, load_corpus(options.corpus)
    try:
        objective, state = pretrain(name, *corpora, options.out, options.seed, budget)
    except PullPushError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    path = options.out / f"{name}.safetensors"
    tensors = {key: value.detach().half().contiguous() for key, value in objective.network.state_dict().items()}
    with atomic_path(path) as partial:
        save_file(tensors, partial)
    sizes = [f"--{size} {getattr(budget, size)}" for size in SIZES] + ["--single"] * options.single
    command = f"python benchmarks/pretraining --objective {name} --corpus {options.corpus} --seed {options.seed}"
    card = {
        "objective": name,
        "about": OBJECTIVES[name].about,
        "command": " ".join([command, *sizes]),
        "licence": "MIT",
        "data": {split: described(each) for split, each in zip(("train", "held out"), corpora, strict=True)},
        "budget": {key: value for key, value in asdict(budget).items() if key != "kept_every"},
        "epochs": [round(row["epoch"], 2) for row in state.history],
        "weights": sum(value.numel() for value in tensors.values()),
        "loss": [round(row["loss"], 4) for row in state.history],
        "held-out loss": [round(row["held_out"], 4) for row in state.history],
        "held-out scores": {key: round(value, 4) for key, value in list(state.history[-1].items())[3:]},
        "torch": torch.__version__.partition("+")[0],
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    with atomic_path(path.with_suffix(".json")) as partial:
        partial.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path)
    return 0


def described(corpus: Corpus) -> dict[str, object]:
    """How much is heard: a digest, clips by domain, and minutes."""
    clips = {domain: corpus.domains.count(domain) for domain in dict.fromkeys(corpus.domains)}
    return {"digest": corpus.key, "clips": clips, "minutes": round(float(corpus.sizes.sum()) * 0.04 / 60, 1)}


if __name__ == "__main__":
    sys.exit(main())
