"""Four ways to pretrain one network on the same clips: each a head, a loss to lower, and scores of what was learnt.

| objective | after | learns from |
|---|---|---|
| tagging | CED, BEATs | which sounds and instruments a clip holds, or that somebody speaks |
| transcription | Whisper | what is said, letter by letter |
| masked-prediction | HuBERT, WavLM | units of the spectrogram at stretches that it does not see |
| masked-reconstruction | AudioMAE, Dasheng | the three quarters of a spectrogram that it does not see |
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from corpus import Batch, Corpus
from scipy.fft import dct
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.attention import EPSILON, Block, sinusoids
from pullpush.encoders.audio_transformer import FRAMES, MELS, PATCH, Network
from pullpush.encoders.frontend import DB_SPREAD
from pullpush.encoders.windows import length_mask, masked_mean

Draws = torch.Generator  # whatever is random is drawn from the one that is given


class Objective(nn.Module):
    """The encoder's network, all that is kept in the end, with a head that learns from one corpus.

    loss(batch, draws): the mean over clips; scores(pairs of batches and draws): by the names of the measures.
    """

    about: str

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network


class Tagging(Objective):
    """Binary cross-entropy over the names of events and instruments, from the mean of a clip's tokens.

    Of speech there is one tag, "speech": a tagger is never told what is said, nor in which language. Scores: mean
    average precision over the tags that held-out clips have, and that of tags in the order of chance, the mean share of
    clips that have them.
    """

    about = "Which events and instruments a clip holds, or that somebody speaks: binary cross-entropy."

    def __init__(self, network: Network, train: Corpus, held_out: Corpus) -> None:
        super().__init__(network)
        self.head = nn.Linear(network.width, len(train.names))
        with torch.no_grad():  # begins at how frequent each tag is, so that no step is spent on learning that
            self.head.bias.copy_(torch.logit(train.tags.mean(dim=0).clamp(1e-4, 0.5)))

    def loss(self, batch: Batch, draws: Draws) -> Tensor:
        error = F.binary_cross_entropy_with_logits(self._logits(batch), batch.of.tags[batch.rows], reduction="none")
        return error.sum(dim=1).mean()

    def scores(self, batches: Iterable[tuple[Batch, Draws]]) -> dict[str, float]:
        pairs = [(self._logits(batch), batch.of.tags[batch.rows]) for batch, _ in batches]
        logits, tags = (torch.cat(values) for values in zip(*pairs, strict=True))
        there = tags.any(dim=0)
        precision = average_precision_score(tags[:, there], logits[:, there], average="macro")
        return {"mean average precision": float(precision), "by chance": float(tags[:, there].mean())}

    def _logits(self, batch: Batch) -> Tensor:
        """`(B, K)` float32."""
        return self.head(masked_mean(self.network(batch.patches, batch.mask).float().mT, batch.mask)).float()


class Transcription(Objective):
    """Connectionist temporal classification over the letters of all languages (Graves et al. 2006).

    Whisper writes with a decoder that reads what it has written so far. A decoder that small would learn its language
    from a few thousand short texts and hardly listen; with CTC each token of the encoder writes a letter or nothing, so
    that all that is learnt is the encoder's. Texts that have more letters than their clip has tokens of 40 ms (a
    recording is cut at 2.5 s, its text is not) teach nothing. Scores: letters that are wrong (edits over letters of the
    best path's text), over clips in which somebody speaks, and the letters that it writes where nobody does, a clip.
    """

    about = "What is said, letter by letter, and nothing in sound and music: connectionist temporal classification."

    def __init__(self, network: Network, train: Corpus, held_out: Corpus) -> None:
        super().__init__(network)
        self.letters = sorted(set("".join(train.texts)))
        self.number = {letter: place for place, letter in enumerate(self.letters, 1)}  # 0 is the blank
        self.head = nn.Linear(network.width, 1 + len(self.letters))

    def targets(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Letters' numbers one after the other, int64, and how many each text has, `(B,)`; new letters are left out."""
        written = [[self.number[letter] for letter in text if letter in self.number] for text in texts]
        return torch.tensor(list(chain(*written)), dtype=torch.int64), torch.tensor([len(row) for row in written])

    def loss(self, batch: Batch, draws: Draws) -> Tensor:
        targets, letters = self.targets([batch.of.texts[row] for row in batch.rows])
        tokens = batch.mask.sum(dim=1)
        steps = self._log_likelihoods(batch).transpose(0, 1)
        error = F.ctc_loss(steps, targets, tokens, letters, reduction="none", zero_infinity=True)
        return (error / tokens).mean()

    def scores(self, batches: Iterable[tuple[Batch, Draws]]) -> dict[str, float]:
        edits = letters = idle = silent = 0
        for batch, _ in batches:
            best = self._log_likelihoods(batch).argmax(dim=2).masked_fill(~batch.mask, 0)
            for row, path in zip(batch.rows, best.tolist(), strict=True):
                text, written = batch.of.texts[row], self.read(path)
                edits += distance(text, written) if text else 0
                letters += len(text)
                idle += 0 if text else len(written)
                silent += not text
        return {"letters wrong": edits / max(letters, 1), "letters where nobody speaks": idle / max(silent, 1)}

    def read(self, path: Sequence[int]) -> str:
        """The text of a path of classes: runs of one class are one letter, blanks are none."""
        return "".join(
            self.letters[here - 1] for before, here in zip([0, *path], path, strict=False) if here not in (before, 0)
        )

    def _log_likelihoods(self, batch: Batch) -> Tensor:
        """`(B, S, classes)` float32."""
        return self.head(self.network(batch.patches, batch.mask)).float().log_softmax(dim=2)


def distance(one: str, other: str) -> int:
    """How many letters must be put in, taken out or changed to make one text the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        before, row[0] = row[0], place
        for column, mine in enumerate(other, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (letter != mine))
    return row[-1]


UNITS = 100  # as in HuBERT's first round
SAMPLE = 60_000  # patches that the units are found on
COEFFICIENTS = 13  # of the cepstrum; with their first and second differences 39 numbers
SPAN, STARTS = 5, 0.16  # tokens of a masked stretch (200 ms, as HuBERT's ten frames); share that begin one: 58 % masked
MIXED, LOUDEST = 0.2, 5.0  # share of clips that another is mixed into, and how much louder than now it may be, in dB


class MaskedPrediction(Objective):
    """The k-means unit of every patch in masked stretches, from the rest of the clip (HuBERT, first round).

    Units are clusters of mel cepstra with their differences in time. Masked patches are replaced by one learnt vector.
    As in WavLM another clip of the batch is mixed into one in five, over at most half of it, and the units of the clip
    itself are asked for. Scores: share of masked units that are right, and that of always saying the most frequent one.
    """

    about = "The cluster of what stands in masked stretches, some clips with another mixed in: cross-entropy."

    def __init__(self, network: Network, train: Corpus, held_out: Corpus) -> None:
        super().__init__(network)
        cepstra = {corpus: [cepstrum(clip.float()) for clip in corpus.patches] for corpus in (train, held_out)}
        every = np.concatenate(cepstra[train])
        scale = every.std(axis=0).clip(min=1e-3)
        chosen = np.random.default_rng(0).permutation(len(every))[:SAMPLE]
        kmeans = MiniBatchKMeans(min(UNITS, len(chosen)), batch_size=4096, n_init=1, random_state=0)
        with threadpool_limits(1):  # sums in one order
            kmeans.fit(every[chosen] / scale)
            self.units = {
                corpus: [torch.from_numpy(kmeans.predict(clip / scale)).long() for clip in clips]
                for corpus, clips in cepstra.items()
            }
        self.frequent = int(torch.cat(self.units[train]).bincount().argmax())
        self.head = nn.Linear(network.width, kmeans.n_clusters)
        self.hidden = nn.Parameter(0.02 * torch.randn(network.width))

    def loss(self, batch: Batch, draws: Draws) -> Tensor:
        return F.cross_entropy(*self._predicted(batch, draws))

    def scores(self, batches: Iterable[tuple[Batch, Draws]]) -> dict[str, float]:
        pairs = [self._predicted(batch, draws) for batch, draws in batches]
        right = torch.cat([logits.argmax(dim=1) == units for logits, units in pairs])
        frequent = torch.cat([units for _, units in pairs]) == self.frequent
        return {"units right": float(right.double().mean()), "the most frequent": float(frequent.double().mean())}

    def _predicted(self, batch: Batch, draws: Draws) -> tuple[Tensor, Tensor]:
        """Of the masked patches logits `(M, UNITS)` float32 and units `(M,)`."""
        masked = stretches(batch.mask, draws)
        heard = mixed(batch, draws) if self.training else batch.patches
        x = torch.where(masked[..., None], self.hidden.to(heard.dtype), self.network.embed(heard).float())
        tokens = self.network.encode(x + self.network.positions(x), batch.mask)
        units = [self.units[batch.of][row] for row in batch.rows]
        asked = torch.cat([own[where[: len(own)]] for own, where in zip(units, masked, strict=True)])
        return self.head(tokens[masked]).float(), asked


def stretches(mask: Tensor, draws: Draws) -> Tensor:
    """`(B, S)` bool, a clip's own patches → `(B, S)` bool, those that are masked: some of each clip."""
    drawn = torch.rand(mask.shape, generator=draws).masked_fill(~mask, 1.0)
    starts = (drawn < STARTS) | (drawn == drawn.amin(dim=1, keepdim=True))  # at least one
    spread = F.max_pool1d(F.pad(starts.float(), (SPAN - 1, 0))[:, None], SPAN, stride=1)[:, 0]
    return (spread > 0) & mask


def mixed(batch: Batch, draws: Draws) -> Tensor:
    """Patches of a batch, into some of which another of its clips was mixed; what is beyond a clip's end stays.

    Mel powers are added, as they do on average where phases are independent.
    """
    clips, places, _ = batch.patches.shape
    draw = torch.rand(4, clips, generator=draws)
    sizes = batch.mask.sum(dim=1)
    count = (draw[0] * sizes / 2).long().clamp(min=1)
    start = (draw[1] * (sizes - count + 1)).long()
    place = torch.arange(places)
    where = (place >= start[:, None]) & (place < (start + count)[:, None]) & batch.mask & (draw[2] < MIXED)[:, None]
    other = torch.randperm(clips, generator=draws)
    where &= batch.mask[other]
    gain = (draw[3] * 2 - 1)[:, None, None] * LOUDEST / DB_SPREAD
    scale = DB_SPREAD * np.log(10) / 10  # a spectrogram's unit as the natural logarithm of power
    both = torch.logaddexp(batch.patches * scale, (batch.patches[other] + gain) * scale) / scale
    return torch.where(where[..., None], both, batch.patches)


def cepstrum(patches: Tensor) -> np.ndarray:
    """`(S, PATCH)` → `(S, 39)` float32: mel cepstrum of each patch's mean frame, its first and second differences."""
    parts = [dct(patches.view(-1, MELS, FRAMES).mean(dim=2).numpy(), norm="ortho", axis=1)[:, :COEFFICIENTS]]
    for _ in range(2):
        parts.append(np.gradient(parts[-1], axis=0) if len(patches) > 1 else np.zeros_like(parts[-1]))
    return np.concatenate(parts, axis=1).astype(np.float32)


HIDDEN = 0.75  # share of the patches that the encoder does not see
WIDTH, LAYERS, HEADS = 64, 2, 4  # of the decoder
FLATTEST = 1e-2  # added to a patch's variance, so that silence is not blown up


class MaskedReconstruction(Objective):
    """A light decoder draws the hidden three quarters of a clip's patches from what the encoder makes of the rest.

    The error is the mean square over hidden patches, each of which is standardised by its own mean and spread (He et
    al. 2022; Huang et al. 2022; Dinkel et al. 2024). Score: the share of the variance of hidden patches that is
    explained (R²), which is 0 for a decoder that always draws the mean patch.
    """

    about = "The hidden three quarters of the spectrogram, drawn from the rest: mean square of standardised patches."

    def __init__(self, network: Network, train: Corpus, held_out: Corpus) -> None:
        super().__init__(network)
        self.narrow = nn.Linear(network.width, WIDTH)
        self.hidden = nn.Parameter(0.02 * torch.randn(WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.head = nn.Linear(WIDTH, PATCH)

    def loss(self, batch: Batch, draws: Draws) -> Tensor:
        drawn, wanted = self.drawn(batch, draws)
        return (drawn - wanted).square().sum() / max(drawn.numel(), 1)  # a clip of one patch hides none

    def scores(self, batches: Iterable[tuple[Batch, Draws]]) -> dict[str, float]:
        error, total, squares, count = 0.0, torch.zeros(PATCH, dtype=torch.float64), 0.0, 0
        for batch, draws in batches:
            drawn, wanted = (values.double() for values in self.drawn(batch, draws))
            error += float((drawn - wanted).square().sum())
            total += wanted.sum(dim=0)
            squares += float(wanted.square().sum())
            count += len(wanted)
        return {"variance explained": 1 - error / (squares - float((total.square() / count).sum()))}

    def drawn(self, batch: Batch, draws: Draws) -> tuple[Tensor, Tensor]:
        """Hidden patches as they are drawn and as they are, both `(M, PATCH)` float32."""
        kept, own = visible(batch.mask, draws)
        rows = torch.arange(len(kept))[:, None]
        x = self.network.embed(batch.patches[rows, kept]).float()
        x = self.network.encode(x + self.network.positions(batch.patches)[kept], own)
        places = rows.expand_as(kept)[own], kept[own]
        seen = torch.zeros_like(batch.mask).index_put(places, torch.tensor(True))
        y = self.hidden.expand(*batch.mask.shape, WIDTH).clone()
        y[places] = self.narrow(x).to(y.dtype)[own]
        y = y + sinusoids(y.shape[1], WIDTH, y.device)
        for block in self.blocks:
            y = block(y, batch.mask)
        hidden = batch.mask & ~seen
        return self.head(self.norm(y[hidden])).float(), standardised(batch.patches[hidden])


def visible(mask: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
    """Which patches the encoder sees: at least one of each clip, and not all of one that has several.

    mask: `(B, S)` bool, the clips' own → their places `(B, V)` int64, in order, and `(B, V)` bool, which count.
    """
    counts = (mask.sum(dim=1) * (1 - HIDDEN)).round().long().clamp(min=1)
    order = torch.rand(mask.shape, generator=draws).masked_fill(~mask, 2.0).argsort(dim=1)
    own = length_mask(counts, int(counts.max()))
    chosen = order[:, : own.shape[1]].masked_fill(~own, mask.shape[1])  # what does not count goes last
    return chosen.sort(dim=1).values.clamp(max=mask.shape[1] - 1), own


def standardised(patches: Tensor) -> Tensor:
    """`(M, PATCH)` with the mean and spread of each taken out."""
    variance, mean = torch.var_mean(patches, dim=1, keepdim=True, unbiased=False)
    return (patches - mean) / (variance + FLATTEST).sqrt()


OBJECTIVES: dict[str, type] = {
    "tagging": Tagging,
    "transcription": Transcription,
    "masked-prediction": MaskedPrediction,
    "masked-reconstruction": MaskedReconstruction,
}
