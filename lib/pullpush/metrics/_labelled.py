"""Clips with one label each, asked for by the names of their classes and the other way round, clip by clip."""

from functools import partial

import torch

from pullpush.metrics._retrieval import recall_by_chance, retrieval_per_query
from pullpush.metrics._zero_shot import zero_shot_predictions
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values


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


CARD = MetricCard(
    name="named-clips",
    make=named_clips,
    title="Classes by sound, sounds by class",
    about="Zero-shot classification and retrieval by the names of classes, by clip, and what each clip is taken for.",
    source="GLAP §4; Piczak 2015",
    needs=("singles", "labels", "prompts"),
    scores=(
        Score("class R@1", better="higher", chance=partial(recall_by_chance, 1)),
        Score("class R@5", better="higher", chance=partial(recall_by_chance, 5)),
        Score("class mAP@10", better="higher"),
        Score("sound mAP@10", better="higher"),
        Score("predicted"),
        Score("class"),
    ),
)
