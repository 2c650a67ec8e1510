"""Encoders: audio and text into one space, by name."""

from pullpush.encoders.dual import AUDIO, TEXT, DualEncoder, create, create_audio, takes

__all__ = ["AUDIO", "TEXT", "DualEncoder", "create", "create_audio", "takes"]
