"""The frozen encoders that chapter 5 hears through, by name."""

from __future__ import annotations

from collections.abc import Mapping

from pullpush.training.trunk import Published

SEVERAL_EARS = ("yamnet", "speech_embedding")
PRETRAINED = ("tagging", "transcription", "masked-prediction", "masked-reconstruction", "untrained")
EARS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "yamnet upper": Published("yamnet", level="lower"),
    "speech_embedding": Published("speech_embedding"),
    "sfx": Published("sfx"),
    "voice": Published("voice"),
    "pitch": Published("pitch"),
    "random": Published("yamnet", {"pretrained": False}, seed=1),
    "several": Published("several", {"members": SEVERAL_EARS}),
    **{name: Published("audio_transformer", {"weights": None if name == "untrained" else name}) for name in PRETRAINED},
}
