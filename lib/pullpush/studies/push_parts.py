"""What the push on a caption is made of, in batches as training draws them."""

from collections.abc import Mapping

import pandas as pd
import torch
from torch import Tensor

from pullpush.forces import decompose, sideways
from pullpush.studies.means import by_clip

PARTS = ("pull", "push", "parallel", "perpendicular", "sideways")
SHARES = {"perpendicular": "perpendicular_share", "sideways": "sideways_share"}


def forces_by_clip(text: Tensor, audio: Tensor, tau: float) -> pd.DataFrame:
    """Norms of the forces on each text of one batch, `(N, d)` each: a row a text.

    Columns: PARTS (of the push: parallel, perpendicular, and sideways, which is outside the plane of t⁺ and a⁺); as
    shares of ‖F_push‖² perpendicular_share and sideways_share.
    """
    forces = decompose(text, audio, tau)
    split = [forces.pull, forces.push, forces.parallel, forces.perpendicular, sideways(forces.push, text, audio)]
    table = pd.DataFrame({name: part.norm(dim=1).double() for name, part in zip(PARTS, split, strict=True)})
    return table.assign(**{share: (table[part] / table["push"]) ** 2 for part, share in SHARES.items()})


def forces_in_batches(
    text: Tensor, audio: Tensor, tau: float, batch_size: int, *, passes: int = 4, seed: int = 0
) -> pd.DataFrame:
    """Each text's mean of `forces_by_clip` over random batches, drawn as in training: every text once a pass, but for
    those that fill no batch. A batch larger than the set is the set.
    """
    generator = torch.Generator().manual_seed(seed)
    size, tables = min(batch_size, len(text)), []
    for _ in range(passes):
        order = torch.randperm(len(text), generator=generator)
        for rows in order[: len(text) - len(text) % size].view(-1, size):
            tables.append(forces_by_clip(text[rows], audio[rows], tau).assign(clip=rows.numpy()))
    return pd.concat(tables).groupby("clip").mean()


def parts_table(found: Mapping[str, pd.DataFrame], dimensions: int) -> pd.DataFrame:
    """Means over clips ± half-widths of 95 % intervals, a column a model, and what the shares of a random push are.

    found: model → `forces_in_batches`; dimensions: d of the embeddings. A line takes one of them, a plane takes two.
    """
    chance = {"perpendicular_share": f"{1 - 1 / dimensions:.3f}", "sideways_share": f"{1 - 2 / dimensions:.3f}"}
    rows = []
    for name in (*PARTS, *SHARES.values()):
        means = {model: by_clip(table[name]) for model, table in found.items()}
        written = {model: f"{mean.value:.3f} ± {mean.half_width:.3f}" for model, mean in means.items()}
        rows.append({"force": name.replace("_", " "), **written, "by chance": chance.get(name, "–")})
    return pd.DataFrame(rows)
