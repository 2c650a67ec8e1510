"""Probes of training on tiny clips and a tiny model: the loop, what a step is made of, what watches it, what is done
with models.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.recordings.corpora import Queries
from pullpush.golden import tiny
from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, numbers, seen, sphere
from pullpush.golden.tiny import DIM, LANGUAGES, WORDS, TinyModel, Tones, tiny_recipe, trained
from pullpush.losses import Offer
from pullpush.training import evaluate
from pullpush.training.chunked import chunk_size, embed_unique, in_chunks
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import WRITE, read
from pullpush.training.loop import Result
from pullpush.training.objective import Objective, bring_columns, in_parts, parts_of
from pullpush.training.optimiser import clip_gradients, make_optimiser, rate
from pullpush.training.recipes import Recipe
from pullpush.training.terms import Term

N = 7  # clips of a batch
NAMES = ("infonce", "siglip", "kcl", "cacl", "infonce+bi-dynamic-svr", "uni-static-svr-constrained", "infonce+cyclic")


@contextmanager
def _within(name: str) -> Iterator[None]:
    """Alone, and with losses that stand in, but where options of the library's are written down."""
    with tiny.alone(), nullcontext() if name == "recipes" else tiny.standing_in():
        yield


PROBES = Probes("training", 1e-6, look=seen, within=_within)


# ---------------------------------------------------------------- a run


def _of_run(result: Result, *, steps: bool = True) -> Values:
    """Weights and epochs; steps: and what was written of each step."""
    values: dict[str, Any] = {
        "weights": torch.cat([value.double().flatten() for value in result.model.state_dict().values()]),
        "best": [*result.best.values()],
        **{f"{key} of epochs": column for key, column in _columns(result.history).items()},
        "evaluates": not result.model.training,
    }
    columns = _columns(result.steps) if steps else {}
    return values | {key: torch.tensor(column, dtype=torch.float64) for key, column in columns.items()}


def _columns(table: pd.DataFrame) -> dict[str, list[float]]:
    """A table by columns; −1 where a number does not exist."""
    return {str(name): table[name].fillna(-1.0).tolist() for name in table}


@PROBES("loop")
def loop() -> Values:
    """Runs to their end, one that is killed and goes on, one that starts from it, one that is watched."""
    plain = tiny_recipe((Term("infonce", options={"learnable": True}), Term("svr", 0.5, {"modelling": "static"})))
    languages = {"languages": LANGUAGES, "sampling": "all", "captions": "random"}
    several = tiny_recipe(
        (Term("kcl"),), optimiser="adamw", schedule="constant", weight_decay=0.3, clip=0.1, **languages
    )
    balanced = tiny_recipe((Term("siglip"),), balance={"a": 1.0, "b": 1.0}, audio="features", epochs=3)
    values: dict[str, Any] = {
        "plain": _of_run(trained(plain)),
        "balanced": _of_run(trained(balanced, seed=2)),
        "languages": _of_run(trained(several, gaps=True, seed=1, diagnostics=Diagnostics(every=2))),
    }
    with TemporaryDirectory() as folder:
        try:
            trained(plain, pairs=tiny.Mortal, out=folder, save_after=0)
        except tiny.Killed:
            values["went on"] = _of_run(trained(plain, out=folder, save_after=0), steps=False)
        values["read"] = _of_run(trained(plain, out=folder), steps=False)
        values["from a base"] = _of_run(trained(plain, base=folder, seed=1), steps=False)
    return values


@PROBES("optimiser")
def optimiser() -> Values:
    """Groups of weights, rates over the steps, shortened gradients, and where three steps lead."""
    values: dict[str, Any] = {}
    terms = (Term("siglip"), Term("svr", options={"batch_size": 4, "hidden": 3}))
    for options in ({"optimiser": "adam"}, {"optimiser": "adamw", "clip": 0.0}, {"audio": "features"}):
        recipe = tiny_recipe(terms, network_lr=2.0, **options)
        torch.default_generator.manual_seed(0)
        towers = Objective(TinyModel(), recipe).double()
        towers.model.text.requires_grad_(False)
        optimiser, norms = make_optimiser(towers, recipe), []
        for step in range(3):
            for group in optimiser.param_groups:
                group["lr"] = recipe.lr * group["factor"]
                for at, parameter in enumerate(group["params"]):
                    parameter.grad = numbers(*parameter.shape, seed=10 * step + at)
            norms.append([*clip_gradients(towers, recipe).values()])
            optimiser.step()
        of_steps: dict[str, Any] = {f"norms {step}": each for step, each in enumerate(norms)}
        for at, group in enumerate(optimiser.param_groups):
            of_steps[f"group {at}"] = [len(group["params"]), group["weight_decay"], group["factor"]]
            of_steps[f"weights {at}"] = torch.cat([parameter.detach().flatten() for parameter in group["params"]])
        values[", ".join(map(str, options.values()))] = {"is": type(optimiser).__name__, **of_steps}
    schedules: tuple[dict[str, Any], ...] = ({}, {"schedule": "constant"}, {"floor": 0.1, "warmup_steps": 5})
    for options in (*schedules, {"warmup": 0.0}):
        values[f"rates {options}"] = [rate(step, 20, tiny_recipe(terms, **options)) for step in range(0, 20, 3)]
    return values


def diagnostics_numbers(diagnostics: Diagnostics) -> Values:
    """What a measurement reports of each of three steps, also one of a reader's own class: column → `(3,)`.

    >>> list(diagnostics_numbers(Diagnostics()))[:3]
    ['displacement', 'distance_after', 'distance_before']
    """
    watch = copy(diagnostics)
    object.__setattr__(watch, "every", 1)
    recipe = tiny_recipe((Term("infonce"), Term("svr", options={"modelling": "dynamic"})), epochs=1, batch_size=5)
    with tiny.alone():
        usual, watched = (trained(recipe, diagnostics=each).steps for each in (None, watch))
    told = (name for name in sorted(watched) if name not in usual or not watched[name].equals(usual[name]))
    return {str(name): watched[name].to_numpy() for name in told}


@PROBES("diagnostics")
def diagnostics() -> Values:
    """What is measured of a step, with the objective's temperature or another, and of the texts that are there."""
    values: dict[str, Any] = {
        "own": diagnostics_numbers(Diagnostics()),
        "another": diagnostics_numbers(Diagnostics(tau=0.5)),
    }
    languages = {"languages": LANGUAGES, "sampling": "all"}
    for name, term in {"missing": Term("kcl", options={"tau": 0.3}), "no temperature": Term("sparsity")}.items():
        result = trained(tiny_recipe((term,), epochs=1, **languages), gaps=True, diagnostics=Diagnostics(every=2))
        values[name] = _columns(result.steps)
    return values


# ---------------------------------------------------------------- a step


def _batch(recipe: Recipe, *, gaps: bool = False) -> Batch:
    """Clips with everything that a loss may need, or with gaps."""
    columns: dict[str, Sequence[Any]] = {
        "premise": [f"eng: some {WORDS[at % 5]}" for at in range(N)],
        "entailment": [f"eng: a sound of {WORDS[at % 5]}" for at in range(N)],
        "contradiction": [f"eng: no {WORDS[at % 6]}" for at in range(N)],
        "clusters": [at % 3 - 1 for at in range(N)],
        "teachers": list(sphere(N, 2, 2, 3, seed=9).numpy()),
    }
    dataset = PairDataset(Tones(N, columns=columns, gaps=gaps), languages=recipe.languages, sampling=recipe.sampling)
    bring_columns(dataset, recipe)
    return collate([dataset[row] for row in range(N)])


def _of_objective(*terms: Term, gaps: bool = False, **options: Any) -> Values:
    """Loss, terms, reports, what they were offered, and gradients of the encoders and the terms."""
    recipe = tiny_recipe(terms, batch_size=N, **options)
    towers = Objective(TinyModel(noise=True), recipe).double()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for at, parameter in enumerate(towers.terms.parameters()):
            if parameter.ndim:
                parameter.copy_(numbers(*parameter.shape, seed=at) / 3)
    torch.default_generator.manual_seed(1)
    outcome = towers(_batch(recipe, gaps=gaps))
    outcome.loss.backward()
    slopes = {key: parameter.grad for key, parameter in towers.named_parameters() if parameter.grad is not None}
    of_terms = [slope.flatten() for key, slope in slopes.items() if not key.startswith("model.")]
    offered = {key: x for key, x in outcome.offer._asdict().items() if torch.is_tensor(x) and key != "text_ids"}
    return {
        "loss": outcome.loss,
        "terms": [*outcome.terms],
        "tau": towers.tau,
        "chunk": towers.chunk,
        "numbers": [*towers.numbers(outcome).values()],
        "of": [*towers.numbers(outcome)],
        **{f"offers {key}": seen(x) for key, x in offered.items()},
        **{f"offers parallel {at}": x for at, x in enumerate(outcome.offer.parallel)},
        **{f"gradient of {key}": slope for key, slope in slopes.items() if key.startswith("model.")},
        **({"gradient of terms": torch.cat(of_terms)} if of_terms else {}),
    }


@PROBES("objective")
def objective() -> Values:
    """Sums of terms, of all that a batch may offer, in one language and in several."""
    tempered = Term("infonce", options={"learnable": True})
    sentences = (Term("nli", 0.1), Term("sentence-simcse", 0.2), Term("simcse", 0.3, {"duplicates": "mask"}))
    soft = (Term("distillation"), Term("clusters", 0.05, {"topics": 3, "dim": DIM}), Term("svr", options={"tau": 0.2}))
    several = (Term("kcl"), Term("svr"), Term("svr", 0.5))
    return {
        "sum": _of_objective(tempered, *sentences, *soft),
        "pair": _of_objective(Term("cacl"), languages=LANGUAGES, sampling="pair"),
        "gaps": _of_objective(*several, languages=LANGUAGES, sampling="all", gaps=True),
        "parts": _of_objective(Term("siglip"), loss_parts=3, text_chunk=2, audio_chunk=3),
        "no temperature": _of_objective(Term("sparsity")),
    }


@PROBES("chunked")
def chunked() -> Values:
    """Texts and clips encoded some at a time: embeddings, gradients of two passes, and the size that is chosen."""
    model, frozen = TinyModel(noise=True), TinyModel()
    frozen.text.requires_grad_(False)
    batch = _batch(tiny_recipe((Term("kcl"),), languages=LANGUAGES, sampling="all"), gaps=True)
    texts, languages = [f"a {word} {at}" for at, word in enumerate(WORDS)], ["eng"] * len(WORDS)
    of_texts, of_clips = (model.encode_text, texts, languages), (model.encode_audio, batch.audio, batch.lengths)
    calls: dict[str, Callable[[], Tensor]] = {
        **{f"texts by {chunk}": partial(in_chunks, *of_texts, chunk) for chunk in (None, 1, 4)},
        **{f"clips by {chunk}": partial(in_chunks, *of_clips, chunk) for chunk in (0, 3)},
        **{f"unique by {chunk}": lambda c=chunk: torch.cat(embed_unique(model, batch, c)) for chunk in (None, 4)},
    }
    values: dict[str, Any] = {}
    for name, call in calls.items():
        torch.default_generator.manual_seed(1)
        table = call()
        values[name] = table
        for again in range(2):
            model.zero_grad()
            (table * numbers(*table.shape, seed=3)).sum().backward(retain_graph=True)
            grads = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
            values[f"{name}: gradients {again}"] = torch.cat(grads)
    with torch.no_grad():
        values["without gradients"] = in_chunks(frozen.encode_text, texts, languages, 4)
    choices = ((None, "all"), (None, "fixed"), (0, "all"), (5, "fixed"))
    sizes = [chunk_size(each, chunk, sampling=way, clips=9) for each in (model, frozen) for chunk, way in choices]
    return values | {"sizes": [-1 if size is None else size for size in sizes]}


@PROBES("parts")
def parts() -> Values:
    """A batch in parts: which clips each has, and the mean over them of a loss that reports something."""
    audio, text, other = sphere(N, DIM, seed=1), sphere(N, DIM, seed=2), sphere(N, DIM, seed=3)
    present = torch.tensor([[True, at != 5] for at in range(N)])
    offer = Offer(audio, text, (other,), present, teacher_similarity=numbers(N, N, seed=4), clusters=torch.arange(N))
    values: dict[str, Any] = {}
    for count in (1, 2, 3, 9):
        found = parts_of(offer, count)
        values[f"{count}"] = {
            "clips": [part.clusters.tolist() for part in found],  # pyrefly: ignore[missing-attribute]
            "complete": [part.present is None for part in found],
            "teachers": torch.cat([part.teacher_similarity.flatten() for part in found]),  # pyrefly: ignore
        }
        for name in ("svr", "sparsity", "distillation"):
            output = in_parts(Term(name).create(N).double(), found)
            values[f"{count}"][name] = [output.value, *output.report.values()]
    return values


# ---------------------------------------------------------------- what is done with models


@PROBES("evaluate")
def evaluated() -> Values:
    """Embeddings, retrieval, queries of their own, zero-shot accuracy, and what an epoch is chosen by."""
    model, clips, gaps = TinyModel(norm=True, noise=True), Tones(), Tones(gaps=True)
    audio, text = evaluate.embed(model, clips, caption="all", batch_size=4)
    right = torch.arange(2)[:, None] == torch.arange(len(clips)) % 3
    names = [f"a {word}" for word in WORDS]
    values: dict[str, Any] = {
        "audio": audio,
        "text": text,
        "in its mode": model.training,
        "second captions": evaluate.embed(model, clips, language="deu", caption=1)[1],
        "recall": [score for each in (clips, gaps) for score in evaluate.recall_at_1(model, each).values()],
    }
    tables = {
        "even": evaluate.retrieval_table(model, clips, ("eng", "fra")),
        "gaps": evaluate.retrieval_table(model, gaps, ("deu",)),
        "uneven": evaluate.retrieval_table(model, tiny.Uneven()),
        "queries": evaluate.query_table(model, clips, Queries(["a bark", "a hum and a tick"], right)),
        "classes": evaluate.zero_shot(model, Tones(12), names),
        "classes of several sizes": evaluate.zero_shot(model, clips, names),
    }
    return values | {name: {str(key): table[key].tolist() for key in table} for name, table in tables.items()}


@PROBES("features")
def features() -> Values:
    """What is stored of clips and read again: features, and activations of the lower part of an encoder."""
    clips, encoder = tiny.Coarse(70), tiny.Halves().eval()
    values: dict[str, Any] = {}
    for level, name in {"features": "features", "lower": "activations"}.items():
        with TemporaryDirectory() as folder:
            WRITE[level](Path(folder), encoder, clips, jobs=1, progress=False)
            each = read(clips, Path(folder), "")
            values |= {"size": each.dim} if level == "features" else {}
            some = each.select([3, 66, 5])
            rows = {"all": each.audio(slice(None)), "one": each.audio(-1), "of some": some.head(2).audio([1, 0])}
            about = (each.name, each.graded, [*each.columns], each.captions("eng")[0], each.prompts()[1], each.key)
            values |= {f"{name}, {key}": {"": row, "lengths": lengths} for key, (row, lengths) in rows.items()}
            values[name] = {
                "of the clips": [*map(str, (*about, len(each)))],
                "labels": seen(each.labels),
                "relevance": each.relevance(),
                "lengths": seen(each.lengths),
                "dtype": str(rows["all"][0].dtype),
            }
    return values
