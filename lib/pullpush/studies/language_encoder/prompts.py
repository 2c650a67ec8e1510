"""Zero-shot accuracy of trained models with each prompt of a list, and with their ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from pullpush.lab.scoring import Embedded
from pullpush.metrics._zero_shot import prompt_accuracies
from pullpush.metrics.inference import difference

ENSEMBLE = "mean of all"


def by_prompt(models: Mapping[tuple[str, int], nn.Module], data: Any, templates: Sequence[str]) -> pd.DataFrame:
    """Accuracy of every system with every prompt, in their order, and with the mean of a class's prompts.

    Args:
        models: (system, seed) → trained.
        data: has the clips `singles` with one event each, of two classes at least.
        templates: sentences with "{label}", such as `metrics.prompt_templates.SOUNDS`.

    Returns:
        Columns template (ENSEMBLE comes last), system, value, low, high (95 % over seeds and classes; fractions),
        seeds, clips (classes).
    """
    found: dict[str, list[np.ndarray]] = {}
    for (system, _), model in models.items():
        embedded = Embedded(lambda model=model: model, data, ("eng",))
        prompts = torch.stack([embedded.prompts("eng", template) for template in templates], dim=1)
        ensemble, each = prompt_accuracies(embedded.singles, prompts, embedded.labels)
        found.setdefault(system, []).append(np.column_stack([each, ensemble]))
    rows = []
    for number, template in enumerate((*templates, ENSEMBLE)):
        for system, seeds in found.items():
            one = difference(np.stack(seeds)[:, :, number])
            rows.append((template, system, one.value, one.low, one.high, one.seeds, one.clips))
    return pd.DataFrame(rows, columns=["template", "system", "value", "low", "high", "seeds", "clips"])
