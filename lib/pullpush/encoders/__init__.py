"""Encoders: audio and text into one space, by name."""

from pullpush.extras import need

EXTRA = need("train", "pullpush.encoders")

from pullpush.encoders.dual import DualEncoder, create, create_audio
from pullpush.encoders.interface import (
    AUDIO,
    TEXT,
    AudioEncoder,
    AudioEncoderCard,
    Model,
    SplitAudioEncoder,
    TextEncoder,
    TextEncoderCard,
)

__all__ = [
    "AUDIO",
    "TEXT",
    "AudioEncoder",
    "AudioEncoderCard",
    "DualEncoder",
    "Model",
    "SplitAudioEncoder",
    "TextEncoder",
    "TextEncoderCard",
    "create",
    "create_audio",
]
