"""Zero-shot classification: the class whose prompt is nearest, by one prompt a class or several, and how much it
matters which one is taken.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pullpush.checks import check_embeddings
from pullpush.errors import UnknownNameError
from pullpush.metrics._retrieval import recall_by_chance, retrieval_per_query
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language
from pullpush.metrics.prompt_templates import GLAP, PICTURES, SOUNDS
from pullpush.precision import in_single

LANGUAGE = "eng"  # of the templates


@in_single
def zero_shot_predictions(audio: Tensor, prompts: Tensor) -> Tensor:
    """Class with the most similar prompt: audio `(N, d)`, prompts `(C, d)` or `(C, P, d)` → `(N,)` int64.

    Prompts are brought to unit length, and where there are several the means of each class, as in CLIP's ensembling.

    >>> zero_shot_predictions(torch.tensor([[0.6, 0.8]]), torch.eye(2))
    tensor([1])

    Raises:
        ValueError: shapes that do not match, or values that are not finite.
        TypeError: what is no floating-point tensor.
    """
    check_embeddings(audio=audio, prompts=prompts)
    if prompts.ndim == 3 and prompts.shape[1]:
        prompts = torch.nn.functional.normalize(prompts, dim=-1).mean(dim=1)
    if audio.ndim != 2 or prompts.ndim != 2 or audio.shape[1] != prompts.shape[1] or not len(prompts):
        raise ValueError(
            f"audio (N, d) and prompts (C, d) must share d, got {tuple(audio.shape)} and {tuple(prompts.shape)}"
        )
    return (audio @ torch.nn.functional.normalize(prompts, dim=-1).T).argmax(dim=1)


def _right(clips: Tensor, prompts: Tensor, labels: Tensor) -> Tensor:
    """Share of each class's clips that are classified rightly, `(C,)` float64."""
    right = (zero_shot_predictions(clips, prompts) == labels).double()
    return torch.stack([right[labels == label].mean() for label in labels.unique()])


def accuracy_by_class(embedded: Embeddings) -> Values:
    """Zero-shot "accuracy" of each class, `(C,)` or `(C, K)`: single events, the prompt of SupCLAP in each language."""
    prompts = (embedded.prompts(language) for language in embedded.languages)
    return by_language([{"accuracy": _right(embedded.singles, each, embedded.labels)} for each in prompts])


# ---------------------------------------------------------------- several prompts a class


def prompt_accuracies(clips: Tensor, prompts: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Share of each class's clips `(M, d)` that are classified rightly, of P prompts a class `(classes, P, d)`: by the
    mean of a class's prompts, normalised again (CLIP's ensemble), `(C,)` float64; by each prompt alone, `(C, P)`.
    Classes without clips are left out."""
    single = [_right(clips, each, labels) for each in prompts.unbind(dim=1)]
    return _right(clips, prompts, labels).numpy(), torch.stack(single, dim=1).numpy()


def spread(accuracies: ArrayLike) -> dict[str, np.ndarray]:
    """What the choice of one of P prompts decides, by class `(C,)`, from the accuracies `(C, P)` of each.

    The mean over classes of "mean prompt", "best prompt" and "worst prompt" is the accuracy of the mean, the best and
    the worst prompt; best and worst are those of these very clips, so that their distance says how far apart prompts
    can seem, not what choosing one beforehand gains. That of "spread of prompts" is the standard deviation s of the P
    accuracies Aₚ (divisor P); a class enters by the first order, Σ (Aₚ − Ā) accuracyₚ / (P s), so that its spread over
    classes is that of the delta method.

    >>> {name: values.tolist() for name, values in spread([[1.0, 0.0], [1.0, 0.5]]).items() if name[-1] == "s"}
    {'spread of prompts': [0.5, 0.25]}
    """
    accuracies = np.asarray(accuracies, np.float64)
    overall = accuracies.mean(axis=0)
    away = overall - overall.mean()
    deviation = overall.std()
    return {
        "mean prompt": accuracies.mean(axis=1),
        "best prompt": accuracies[:, overall.argmax()],
        "worst prompt": accuracies[:, overall.argmin()],
        "spread of prompts": accuracies @ away / (len(overall) * (deviation or 1.0)),
    }


def accuracy_by_prompts(templates: Sequence[str], embedded: Embeddings) -> Values:
    """ "ensemble accuracy" of each class `(C,)`, and `spread`, of clips with one event each."""
    prompts = torch.stack([embedded.prompts(LANGUAGE, template) for template in templates], dim=1)
    ensemble, each = prompt_accuracies(embedded.singles, prompts, embedded.labels)
    return {"ensemble accuracy": ensemble, **spread(each)}


def accuracy_by_language(kind: str, embedded: Embeddings) -> Values:
    """ "accuracy eng", "accuracy deu" … of each class `(C,)`: by a prompt of GLAP in each, of a kind of `GLAP`.

    Languages in which nothing says what the classes are called are left out, where there are others: spoken words have
    one language, and the array of that one.
    """
    values, lacking = {}, None
    for language, template in GLAP[kind].items():
        try:
            prompts = embedded.prompts(language, template)
        except UnknownNameError as error:
            lacking = error
            continue
        accuracy, _ = prompt_accuracies(embedded.singles, prompts[:, None], embedded.labels)
        values[f"accuracy {language}"] = accuracy
    if lacking and not values:
        raise lacking
    return values


def named_clips(embedded: Embeddings) -> Values:
    """Of N clips in C classes, by one English prompt a class: "class R@1" (zero-shot, the class of a clip comes first),
    "class R@5" and "class mAP@10" of each clip `(N,)`; "sound mAP@10", clips found by the name of a class, of each
    class that has clips `(C,)`; the "predicted" class and the true "class" of each clip `(N,)`.
    """
    prompts, labels = embedded.prompts("eng"), embedded.labels
    similarity = embedded.singles @ prompts.T
    truth = torch.nn.functional.one_hot(labels, len(prompts)).bool()
    by_sound = retrieval_per_query(similarity, truth, ks=(1, 5), map_at=(10,))
    there = truth.any(dim=0)
    by_name = retrieval_per_query(similarity.T[there], truth.T[there], ks=(), map_at=(10,))
    found = {f"class {name}": values for name, values in by_sound.items()}
    found |= {f"sound {name}": values for name, values in by_name.items()}
    found |= {"predicted": zero_shot_predictions(embedded.singles, prompts), "class": labels}
    return {name: values.double().numpy() for name, values in found.items()}


CHANCE = partial(recall_by_chance, 1)
NEEDS = ("singles", "labels", "prompts")
ABOUT = "Accuracy by class in 16 languages, prompts and labels translated; of spoken words in the one that they are in."
BY_LANGUAGE = tuple(Score(f"accuracy {language}", better="higher", chance=CHANCE) for language in GLAP["sound"])
PROMPTS = MetricCard(
    name="prompts",
    make=partial(accuracy_by_prompts, SOUNDS),
    title="Zero-shot classification by several prompts",
    about="Accuracy by class of the mean of 21 prompts, and of single ones, on clips with one event each.",
    source="On the Language Encoder of Contrastive Cross-modal Models, §A.3, Table 10",
    citation="language_encoder",
    needs=NEEDS,
    scores=(
        Score("ensemble accuracy", better="higher", chance=CHANCE),
        Score("mean prompt", better="higher", chance=CHANCE),
        Score("best prompt", better="higher"),
        Score("worst prompt", better="higher"),
        Score("spread of prompts", better="lower"),
    ),
)
CARDS = (
    MetricCard(
        name="zero-shot",
        make=accuracy_by_class,
        title="Zero-shot classification",
        about="Accuracy of the nearest prompt on clips with one event each, by class.",
        source="SupCLAP §4.1.1, GLAP §3",
        needs=NEEDS,
        scores=(Score("accuracy", better="higher", chance=CHANCE),),
    ),
    PROMPTS,
    replace(
        PROMPTS,
        name="picture-prompts",
        make=partial(accuracy_by_prompts, PICTURES),
        title="Zero-shot classification of pictures by several prompts",
        about="Accuracy by class of the mean of 13 prompts, and of single ones, on pictures of one thing each.",
        source="On the Language Encoder of Contrastive Cross-modal Models, §5.1; Radford et al. 2021",
    ),
    *(
        MetricCard(
            name=name,
            make=partial(accuracy_by_language, kind),
            title=f"Zero-shot classification by GLAP's prompt for {kind}",
            about=ABOUT,
            source="GLAP §3.3, Tables 3 and 7",
            citation="glap",
            needs=NEEDS,
            scores=BY_LANGUAGE,
        )
        for name, kind in (("sound-prompts", "sound"), ("music-prompts", "music"), ("speech-prompts", "speech"))
    ),
    MetricCard(
        name="named-clips",
        make=named_clips,
        title="Classes by sound, sounds by class",
        about="Zero-shot classification and retrieval by the names of classes, by clip, and what each is taken for.",
        source="GLAP §4; Piczak 2015",
        needs=NEEDS,
        scores=(
            Score("class R@1", better="higher", chance=CHANCE),
            Score("class R@5", better="higher", chance=partial(recall_by_chance, 5)),
            Score("class mAP@10", better="higher"),
            Score("sound mAP@10", better="higher"),
            Score("predicted"),
            Score("class"),
        ),
    ),
)
