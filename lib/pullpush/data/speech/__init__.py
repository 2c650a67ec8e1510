"""People who speak: the stamps' captions, and words, letters and prompts.

from pullpush.data import speech
voices = speech.load_speech()       # spoken captions of Tux Paint's stamps, see stamps.py
"""

from pullpush.data.speech.stamps import SPOKEN, SpeechConfig, load_speech, stamps_of

__all__ = ["SPOKEN", "SpeechConfig", "load_speech", "stamps_of"]
