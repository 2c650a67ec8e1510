"""Probes of audio encoders, of what they share, and of the model that has both towers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pullpush.encoders import (
    AUDIO,
    TEXT,
    AudioEncoder,
    AudioEncoderCard,
    DualEncoder,
    SplitAudioEncoder,
    create,
    create_audio,
)
from pullpush.encoders.bridge import Bridge
from pullpush.encoders.frontend import LogMel
from pullpush.encoders.projection import Projection, normalise
from pullpush.encoders.published import MODELS, ModelCard
from pullpush.encoders.windows import over_windows
from pullpush.encoders.yamnet import CLASSES
from pullpush.golden import GoldenError, Values
from pullpush.golden.networks import clips, noise, probed, thinned, trained, usual

TOLERANCE = 1e-3  # float32 on other processors
SECONDS = (2.5, 0.7)  # longer than the windows of most, and shorter
ROW = 6912  # numbers in a row of what is no waveform: 3 · 48², a picture's
TEXTS = ["A frog croaks, then a bell rings.", "Une grenouille coasse.", ""]


def names() -> frozenset[str]:
    """Every audio encoder, the reader's own included, and the parts."""
    return frozenset({*AUDIO, *_parts()})


def probe(name: str) -> Values:
    """What an audio encoder gives, or a part.

    Raises:
        GoldenError: an encoder cannot be probed; the message says what to do.
    """
    parts = _parts()
    if name in parts and name in AUDIO:
        raise GoldenError(f"an audio encoder is called {name!r}, as a part of the library is: give it another name")
    return parts[name]() if name in parts else _encoder(name)


def _encoder(name: str) -> Values:
    card = AUDIO[name]
    if card.sample_rate is None:
        return _of_rows(card)
    heard = clips(card.sample_rate, *SECONDS)
    found = probed(card, create_audio, lambda encoder: encoder(*heard))
    encoder = create_audio(name, **card.small).eval()
    found["takes"] = [encoder.sample_rate, encoder.max_seconds or 0]
    if isinstance(encoder, SplitAudioEncoder):
        with torch.no_grad():
            activations, sizes = encoder.lower(*heard)
            found |= {"activations": thinned(activations), "sizes": sizes}
            found["upper"] = thinned(encoder.upper(activations, sizes))
    return found


def _of_rows(card: AudioEncoderCard) -> Values:
    """Of an encoder that hears no waveforms; in float64 where it can, for batch statistics make much of rounding."""
    rows, sizes = _rows(), torch.tensor([ROW, ROW // 2])
    try:
        return probed(card, _double, lambda encoder: encoder(rows, sizes))
    except GoldenError:
        return probed(card, create_audio, lambda encoder: encoder(rows.float(), sizes))


def _double(name: str, **options: Any) -> AudioEncoder:
    return create_audio(name, **options).double()


def _rows() -> Tensor:
    """Two rows of what is no waveform, in [-1, 1], float64."""
    return 2 * torch.rand(2, ROW, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1


def _frontend() -> Values:
    audio, lengths = clips(16_000, 0.8, 0.2, 0.8)
    audio[2] = 0.0
    mel, mask = LogMel().eval()(audio, lengths)
    coarse, _ = LogMel(mels=20, window=0.032, hop=0.016).eval()(audio, lengths)
    blanked, _ = LogMel(spec_augment=True)(audio, lengths)
    return {
        "mel": thinned(mel),
        "frames": mask.sum(dim=1),
        "coarse": thinned(coarse),
        "blanked": thinned(blanked),
        "blank": (blanked == 0).sum(dim=(1, 2)),
    }


def _dual() -> Values:
    options = {"audio_channels": (4, 4, 8), "text_width": 8, "text_layers": 1, "text_heads": 2}
    model = create("cnn", "transformer", dim=8, seed=2, **options)
    audio, lengths = clips(16_000, 0.6, 0.2, 0.4)
    found = {f"audio.{key}": value for key, value in trained(model, lambda: model.encode_audio(audio, lengths)).items()}
    found |= {f"text.{key}": value for key, value in trained(model, lambda: model.encode_text(TEXTS)).items()}
    with torch.no_grad():
        found |= {"audio": thinned(model.encode_audio(audio, lengths)), "text": thinned(model.encode_text(TEXTS))}
    wide = DualEncoder(AUDIO["features"].make(dim=2), TEXT["hashed"].make(features=2))  # its usual sizes
    return found | {"usual": [[*part.shape] for part in wide.state_dict().values()]}


def _projection() -> Values:
    torch.manual_seed(3)
    layers, features = Projection(6, 4), noise(3, 6)
    zero = torch.zeros(1, 4, requires_grad=True)
    normalise(zero).sum().backward()
    small = normalise(torch.tensor([[3e-7, 4e-7], [3.0, 4.0]]))
    found = trained(layers, lambda: layers(features))
    return {**found, "zero": normalise(zero), "zero.gradient": zero.grad, "small": small}


def _windows() -> Values:
    audio, lengths = clips(100, 2.5, 0.4, 1.01)
    return {"features": over_windows(lambda x, n: torch.stack([x.sum(1), x[:, 3] * n], 1), audio, lengths, 100)}


def _bridge() -> Values:
    torch.manual_seed(4)
    ears = create_audio("yamnet", pretrained=False)
    words = [f"{letter}{n}" for n, letter in zip(range(CLASSES), "abcdefgh" * CLASSES, strict=False)]
    model = Bridge(ears, words, TEXT["hashed"].make()).eval()
    with torch.no_grad():
        return {
            "audio": thinned(model.encode_audio(*clips(16_000, 1.5, 0.3))),
            "text": thinned(model.encode_text(TEXTS[:2])),
            "weights": thinned(model.weights(TEXTS[:2])),
        }


def _resampled() -> Values:
    both = create_audio("several", members=("cnn", "sfx"), pretrained=False, seed=5).eval()
    return {"features": thinned(both(*clips(both.sample_rate or 0, 0.5, 0.2))), "rate": both.sample_rate}


def _classes() -> Values:
    seen = create_audio("efficientnet-lite", pretrained=False, size=32).eval()
    return {"classes": thinned(seen.classify(_rows().float()))}


def _whole(card: ModelCard) -> Values:
    torch.manual_seed(6)
    options = (card.probe or dict)()
    model = card.make(**options)
    return {
        "audio": thinned(model.encode_audio(*clips(model.sample_rate, 0.5, 0.2))),
        "text": thinned(model.encode_text(TEXTS)),
        "scale": [model.tau, model.bias],
        "usual": usual(card.make, options),
    }


def _parts() -> dict[str, Callable[[], Values]]:
    """What is no encoder of clips alone."""
    whole = {f"whole-{card.name}": partial(_whole, card) for card in MODELS.values() if card.probe}
    return PARTS | whole


PARTS: dict[str, Callable[[], Values]] = {
    "bridge": _bridge,
    "dual-encoder": _dual,
    "front-end": _frontend,
    "picture-classes": _classes,
    "projection": _projection,
    "resampled": _resampled,
    "windows": _windows,
}
