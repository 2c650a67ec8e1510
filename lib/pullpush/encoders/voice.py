"""Who speaks: the GE2E speaker encoder of Resemblyzer."""

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.functional import melscale_fbanks

from pullpush.encoders.frontend import mel_power
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled
from pullpush.encoders.windows import zero_padding

WHEEL = Wheel(
    package="Resemblyzer",
    version="0.1.4",
    sha256="8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
    members=("resemblyzer/pretrained.pt",),
    tensors="d2c4b42082a50db8",
    licence="Apache-2.0",
    megabytes=15.7,
)
MELS, WINDOW, HOP = 40, 400, 160  # bands between 0 and 8 kHz; samples at 16 kHz
FRAMES = 160  # frames of a partial utterance, 1.6 s
STEP = round(SAMPLE_RATE / 1.3 / HOP)  # frames between two partial utterances: 1.3 of them a second
COVERAGE = 0.75  # of the last partial utterance must be the clip's, unless it is the only one
LEVEL = 10 ** (-30 / 20)  # quieter clips are raised to this root mean square, -30 dB of full scale
HIDDEN, LAYERS, SIZE = 256, 3, 256


class SpeakerNet(nn.Module):
    """Three LSTM layers on a mel spectrogram, the last state of the last one through a rectified linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(MELS, HIDDEN, LAYERS, batch_first=True)
        self.linear = nn.Linear(HIDDEN, SIZE)
        for name, bias in self.lstm.named_parameters():
            if name.startswith("bias_ih"):  # random ones remember a short clip through the silence that completes it
                nn.init.constant_(bias[HIDDEN : 2 * HIDDEN], 5.0)

    def forward(self, mel: Tensor) -> Tensor:
        """`(P, FRAMES, MELS)` → `(P, SIZE)`, rows of unit length."""
        with torch.autocast("cpu", enabled=False):  # many processors have no LSTM in half precision
            _, (hidden, _) = self.lstm(mel.to(self.linear.weight.dtype))
        return F.normalize(F.relu(self.linear(hidden[-1])), dim=1)


class Voice(AudioEncoder):
    """The speaker encoder of Resemblyzer: mean of its embeddings of partial utterances of 1.6 s, of unit length.

    It was trained with the GE2E loss (Wan et al. 2018, Eq. 6): utterances of a speaker lie near each other, whatever is
    said. Features are those of Resemblyzer's `embed_utterance`, see tests/encoders/test_references.py. Its
    `preprocess_wav` raises quiet clips to -30 dB, as here, and cuts long silences out with a voice detector, which is
    not done here: silences stay, as they do in the clips of every other encoder.
    """

    dim = SIZE

    def __init__(self, *, pretrained: bool = True, frozen: bool = False) -> None:
        super().__init__()
        bank = melscale_fbanks(WINDOW // 2 + 1, 0.0, SAMPLE_RATE / 2, MELS, SAMPLE_RATE, "slaney", "slaney")
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", bank, persistent=False)
        self.network = Pretrained(filled(SpeakerNet(), WHEEL, read, pretrained=pretrained), frozen=frozen)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        audio, lengths = zero_padding(audio, lengths)
        counts = [partials(length) for length in lengths.tolist()]
        audio = audio.float()
        rms = (audio.square().sum(dim=1) / lengths).sqrt()
        audio = audio * (LEVEL / rms.clamp(min=1e-9)).clamp(min=1.0)[:, None]  # raised to LEVEL; silence stays silence
        # librosa's default filters and window, of power, not its logarithm; frame j is centred on sample 160 j
        frames = FRAMES + STEP * (max(counts) - 1)
        mel = mel_power(audio, self.window, self.bank, WINDOW, HOP, frames, before=WINDOW // 2)
        parts = torch.cat([clip.unfold(0, FRAMES, STEP)[:count] for clip, count in zip(mel, counts, strict=True)])
        embedded = self.network(parts.mT).split(counts)
        return F.normalize(torch.stack([clip.mean(dim=0) for clip in embedded]), dim=1)


def partials(samples: int) -> int:
    """How many partial utterances a clip has: one each `STEP` frames, the last with enough of the clip in it.

    >>> partials(8_000), partials(64_000)
    (1, 4)
    """
    frames = math.ceil((samples + 1) / HOP)
    count = max(0, frames - FRAMES + STEP) // STEP + 1
    covered = samples - (count - 1) * STEP * HOP
    return count - 1 if count > 1 and covered < COVERAGE * FRAMES * HOP else count


def read(folder: Path) -> dict[str, Tensor]:
    """The network's tensors out of the wheel, without the two of its loss."""
    state = torch.load(folder / WHEEL.members[0], map_location="cpu", weights_only=True)["model_state"]
    return {name: tensor for name, tensor in state.items() if not name.startswith("similarity_")}


CARD = AudioEncoderCard(
    name="voice",
    make=Voice,
    title="voice",
    about="The speaker encoder of Resemblyzer: who speaks, whatever is said.",
    citation="ge2e",
    source="Wan et al. 2018, Generalized end-to-end loss for speaker verification",
    authors="Corentin Jemine, Resemble AI",
    **WHEEL.card,
)
