"""Encoders: audio and text into one space, by name."""

from pullpush.extras import need

EXTRA = need("train", "pullpush.encoders")

from pullpush.encoders.cards import AUDIO, TEXT, AudioEncoderCard, TextEncoderCard
from pullpush.encoders.dual import DualEncoder, create, create_audio
from pullpush.encoders.interface import AudioEncoder, Model, SplitAudioEncoder, TextEncoder

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
