"""Probes of what a step is made of: the objective, texts and clips in chunks, losses in parts, forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush import forces
from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen, sphere
from pullpush.golden.tiny import DIM, LANGUAGES, WORDS, TinyModel, Tones
from pullpush.losses import Offer
from pullpush.training.chunked import audio_in_chunks, chunk_size, embed_unique, in_chunks
from pullpush.training.objective import Objective, bring_columns, in_parts, parts_of
from pullpush.training.recipes import Recipe
from pullpush.training.terms import Term

N = 7


def _batch(recipe: Recipe, *, gaps: bool = False) -> Batch:
    """Clips with everything that a loss may need, or with gaps."""
    columns: dict[str, Sequence[Any]] = {
        "premise": [f"eng: some {WORDS[at % 5]}" for at in range(N)],
        "entailment": [f"eng: a sound of {WORDS[at % 5]}" for at in range(N)],
        "contradiction": [f"eng: no {WORDS[at % 6]}" for at in range(N)],
        "clusters": [at % 3 - 1 for at in range(N)],
        "teachers": list(sphere(N, 2, 2, 3, seed=9).numpy()),
    }
    clips = Tones(N, columns=columns, gaps=gaps)
    dataset = PairDataset(clips, languages=recipe.languages, sampling=recipe.sampling)
    bring_columns(dataset, recipe)
    return collate([dataset[row] for row in range(N)])


def _of_objective(name: str, recipe: Recipe, *, gaps: bool = False) -> dict[str, Any]:
    """Loss, terms, reports, what they were offered, and gradients of the encoders and the terms."""
    towers = Objective(TinyModel(noise=True), recipe).double()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for at, parameter in enumerate(towers.terms.parameters()):
            if parameter.ndim:
                parameter.copy_(numbers(*parameter.shape, seed=at) / 3)
    torch.default_generator.manual_seed(1)
    outcome = towers(_batch(recipe, gaps=gaps))
    outcome.loss.backward()
    parameters = {key: parameter.grad for key, parameter in towers.named_parameters() if parameter.grad is not None}
    encoders = {key: seen(grad) for key, grad in parameters.items() if key.startswith("model.")}
    terms = [grad.flatten() for key, grad in parameters.items() if not key.startswith("model.")]
    offered = {key: held for key, held in outcome.offer._asdict().items() if torch.is_tensor(held)}
    values = {"loss": outcome.loss, "terms": [*outcome.terms], "tau": towers.tau, "chunk": towers.chunk}
    values |= {"numbers": [*towers.numbers(outcome).values()], "of": [*towers.numbers(outcome)]}
    values |= {f"offers {key}": seen(held) for key, held in offered.items() if key != "text_ids"}
    values |= {f"offers parallel {at}": seen(held) for at, held in enumerate(outcome.offer.parallel)}
    values |= {f"gradient of {key}": grad for key, grad in encoders.items()}
    values |= {"gradient of terms": seen(torch.cat(terms))} if terms else {}
    return {f"{name}: {key}": value for key, value in values.items()}


def _recipe(*terms: Term, **options: Any) -> Recipe:
    settings: dict[str, Any] = {"dim": DIM, "batch_size": N, **options}
    return Recipe("tiny", terms, **settings)


def objective() -> Values:
    """Sums of terms, of all that a batch may offer, in one language and in several."""
    tempered = Term("infonce", options={"learnable": True})
    sentences = (Term("nli", 0.1), Term("sentence-simcse", 0.2), Term("simcse", 0.3, {"duplicates": "mask"}))
    soft = (Term("distillation"), Term("clusters", 0.05, {"topics": 3, "dim": DIM}), Term("svr", options={"tau": 0.2}))
    every, pair = {"languages": LANGUAGES, "sampling": "all"}, {"languages": LANGUAGES, "sampling": "pair"}
    values = _of_objective("sum", _recipe(tempered, *sentences, *soft))
    values |= _of_objective("pair", _recipe(Term("cacl"), **pair))
    values |= _of_objective("gaps", _recipe(Term("kcl"), Term("svr"), Term("svr", 0.5), **every), gaps=True)
    values |= _of_objective("parts", _recipe(Term("siglip"), loss_parts=3, text_chunk=2, audio_chunk=3))
    return values | _of_objective("no temperature", _recipe(Term("sparsity")))


def chunked() -> Values:
    """Texts and clips encoded some at a time: embeddings, gradients of two passes, and the size that is chosen."""
    model = TinyModel(noise=True)
    frozen = TinyModel()
    frozen.text.requires_grad_(False)
    batch = _batch(_recipe(Term("kcl"), languages=LANGUAGES, sampling="all"), gaps=True)
    texts, languages = [f"a {word} {at}" for at, word in enumerate(WORDS)], ["eng"] * len(WORDS)
    calls: dict[str, Callable[[], Tensor]] = {
        **{f"texts by {chunk}": partial(in_chunks, model, texts, languages, chunk) for chunk in (None, 1, 4)},
        **{f"clips by {chunk}": partial(audio_in_chunks, model, batch.audio, batch.lengths, chunk) for chunk in (0, 3)},
        **{f"unique by {chunk}": lambda c=chunk: torch.cat(embed_unique(model, batch, c)) for chunk in (None, 4)},
    }
    values: dict[str, Any] = {}
    for name, call in calls.items():
        torch.default_generator.manual_seed(1)
        table = call()
        values[name] = seen(table)
        for again in range(2):
            model.zero_grad()
            (table * numbers(*table.shape, seed=3)).sum().backward(retain_graph=True)
            grads = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
            values[f"{name}: gradients {again}"] = seen(torch.cat(grads))
    with torch.no_grad():
        values["without gradients"] = seen(in_chunks(frozen, texts, languages, 4))
    asked = ((None, "all"), (None, "fixed"), (0, "all"), (5, "fixed"))
    sizes = [chunk_size(each, w, sampling=s, clips=9) for each in (model, frozen) for w, s in asked]
    return values | {"sizes": [-1 if size is None else size for size in sizes]}


def parts() -> Values:
    """A batch in parts: which clips each has, and the mean over them of a loss that reports something."""
    audio, text, other = sphere(N, DIM, seed=1), sphere(N, DIM, seed=2), sphere(N, DIM, seed=3)
    present = torch.tensor([[True, at != 5] for at in range(N)])
    offer = Offer(audio, text, (other,), present, teacher_similarity=numbers(N, N, seed=4), clusters=torch.arange(N))
    values: dict[str, Any] = {}
    for count in (1, 2, 3, 9):
        found = parts_of(offer, count)
        clips, teachers = ([getattr(part, name) for part in found] for name in ("clusters", "teacher_similarity"))
        values[f"{count}: clips"] = [rows.tolist() for rows in clips]
        values[f"{count}: complete"] = [part.present is None for part in found]
        for name in ("svr", "sparsity", "distillation"):
            output = in_parts(Term(name).create(N).double(), found)
            values |= {f"{count}: {name}": [output.value, *output.report.values()]}
        values[f"{count}: teachers"] = seen(torch.cat([square.flatten() for square in teachers]))
    return values


def of_forces() -> Values:
    """`forces`: a gradient's parts, drift, changes of distance, batches against the whole, any loss by its steps."""
    anchor, positive, movement = sphere(N, DIM, seed=1), sphere(N, DIM, seed=2), numbers(N, DIM, seed=3)
    found, many = forces.decompose(anchor, positive, 0.2), torch.arange(N) % 3
    values = {f"forces: {name}": seen(each) for name, each in found._asdict().items()}
    values |= {"gradient": seen(found.gradient)}
    values |= {"of rows": seen(forces.decompose(anchor, positive[:3], 0.2, positive=many).gradient)}
    values |= {"drift": forces.drift(movement, positive - anchor), "tangent": seen(forces.tangent(movement, anchor))}
    values |= {"sideways": seen(forces.sideways(movement, anchor, positive))}
    change = forces.distance_change(anchor, positive, movement, step=0.5)
    values |= {"change": [change.ideal, change.noise_penalty, change.total]}
    local = forces.local_global(anchor, positive, 0.2, batch_size=3, epochs=5)
    values |= {f"local and global: {name}": each for name, each in local._asdict().items()}
    steps = forces.step_parts(_softmax, anchor, positive, batch_size=3)
    return values | {f"steps: {name}": each for name, each in steps._asdict().items()}


def _softmax(audio: Tensor, text: Tensor) -> Tensor:
    return F.cross_entropy(text @ audio.T / 0.2, torch.arange(len(text)))


PARTS: Mapping[str, Callable[[], Values]] = {
    "chunked": chunked,
    "forces": of_forces,
    "objective": objective,
    "parts": parts,
}
