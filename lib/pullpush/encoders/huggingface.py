"""Pretrained encoders through the classes of `transformers`: CLAP, Whisper, WavLM; RoBERTa, SONAR.

Each takes `model`: a name on the Hugging Face hub or a local folder (pretrained weights, unless `pretrained=False` asks
for random ones in the same architecture), or a configuration (random weights). Only classes that ship with
`transformers` are used: no code is fetched. With `frozen=True` the weights stay as they are, in evaluation mode,
outside the optimiser and outside checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torchaudio.functional import resample

from pullpush.encoders.audio import masked_mean
from pullpush.encoders.frontend import SAMPLE_RATE, length_mask, zero_padding
from pullpush.errors import DataNotFoundError, unknown

if TYPE_CHECKING:  # transformers takes seconds to import: only a pretrained encoder pays for it
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

# ISO 639-3 → the codes that NLLB's and SONAR's tokenizer put before a text
FLORES = {
    "eng": "eng_Latn",
    "fra": "fra_Latn",
    "deu": "deu_Latn",
    "spa": "spa_Latn",
    "nld": "nld_Latn",
    "cat": "cat_Latn",
    "jpn": "jpn_Jpan",
    "zho": "zho_Hans",
}
WAVLM_SHORTEST = 400  # samples: what its convolutions need for one frame
WHISPER_STRIDE = 2 * 160  # samples in one frame of Whisper's encoder
T = TypeVar("T")


class Backbone(nn.Module):
    """Holds a pretrained model; a frozen one is kept out of the module tree, but follows it to its device."""

    def __init__(self, model: nn.Module, *, frozen: bool) -> None:
        super().__init__()
        self.frozen = frozen
        if frozen:
            # In a tuple it is no submodule: neither trained, nor saved, nor put into training mode.
            self.outside = (model.eval().requires_grad_(False),)
        else:
            self.inside = model.train()

    @property
    def model(self) -> nn.Module:
        """The pretrained model."""
        return self.outside[0] if self.frozen else self.inside

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.model.parameters()).device

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Backbone:
        """What `.to`, `.half` and their like call."""
        if self.frozen and recurse:
            self.model._apply(fn)
        return super()._apply(fn, recurse)

    def forward(self, **inputs: Any) -> Any:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            return self.model(**inputs)


def fetch(load: Callable[[], T], name: str) -> T:
    """Run `load`, which takes `name` from the local cache or the hub.

    Raises:
        DataNotFoundError: the model is in neither; the message says what to do.
    """
    try:
        return load()
    except OSError as error:
        raise DataNotFoundError(
            f"cannot load {name!r} from the local Hugging Face cache or the hub: {str(error).splitlines()[0]} "
            f"Connect to the network once, or copy the model's files to a folder and give its path as the model."
        ) from error


def build(architecture: type, model: str | PretrainedConfig, *, pretrained: bool = True, **overrides: Any) -> nn.Module:
    """Pretrained weights for a name, random ones for a configuration, or for a name whose weights are not wanted.

    `overrides` change what the configuration says; those that it does not know go to the architecture.
    """
    if isinstance(model, str) and pretrained:
        return fetch(lambda: architecture.from_pretrained(model, **overrides), model)
    if isinstance(model, str):
        model = fetch(lambda: architecture.config_class.from_pretrained(model), model)
    config = copy.deepcopy(model)
    for key in [key for key in overrides if hasattr(config, key)]:
        setattr(config, key, overrides.pop(key))
    return architecture(config, **overrides)


def split_rows(audio: Tensor, lengths: Tensor | None) -> list[Tensor]:
    """`(B, T)`, `(B,)` → B clips `(lengths[i],)`."""
    audio, lengths = zero_padding(audio, lengths)
    return [row[:length] for row, length in zip(audio, lengths.tolist(), strict=True)]


class CLAPAudio(nn.Module):
    """The audio tower of LAION's CLAP (HTSAT); clips beyond its length (10 s) are cut, shorter ones repeated."""

    def __init__(self, model: str | PretrainedConfig, *, frozen: bool, pretrained: bool = True) -> None:
        import transformers

        super().__init__()
        self.backbone = Backbone(build(transformers.ClapAudioModel, model, pretrained=pretrained), frozen=frozen)
        extractor = transformers.ClapFeatureExtractor
        if isinstance(model, str):
            self.extractor = fetch(lambda: extractor.from_pretrained(model), model)
        else:
            self.extractor = extractor(feature_size=model.num_mel_bins, truncation="rand_trunc")
        self.dim = self.backbone.model.config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        rate, longest = self.extractor.sampling_rate, self.extractor.nb_max_samples
        clips = [resample(clip, SAMPLE_RATE, rate)[:longest].cpu().numpy() for clip in split_rows(audio, lengths)]
        inputs = self.extractor(clips, sampling_rate=rate, return_tensors="pt").to(self.backbone.device)
        return self.backbone(**inputs).pooler_output


class WhisperAudio(nn.Module):
    """Whisper's encoder on its 30 s window, averaged over the clip's own frames; what lies beyond is cut."""

    def __init__(self, model: str | PretrainedConfig, *, frozen: bool, pretrained: bool = True) -> None:
        import transformers

        super().__init__()
        extractor = transformers.WhisperFeatureExtractor
        whole = build(transformers.WhisperModel, model, pretrained=pretrained)
        if isinstance(model, str):
            self.extractor = fetch(lambda: extractor.from_pretrained(model), model)
        else:
            seconds = model.max_source_positions * WHISPER_STRIDE // SAMPLE_RATE
            self.extractor = extractor(feature_size=model.num_mel_bins, chunk_length=seconds)
        self.backbone = Backbone(whole.encoder, frozen=frozen)
        self.dim = whole.config.d_model

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        clips = [clip[: self.extractor.n_samples] for clip in split_rows(audio, lengths)]
        frames = torch.tensor([-(-len(clip) // WHISPER_STRIDE) for clip in clips], device=self.backbone.device)
        arrays = [clip.cpu().numpy() for clip in clips]
        inputs = self.extractor(arrays, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        states = self.backbone(input_features=inputs.input_features.to(self.backbone.device)).last_hidden_state
        return masked_mean(states.mT, length_mask(frames, states.shape[1]))


class WavLMAudio(nn.Module):
    """WavLM on the waveform, averaged over the clip's own frames.

    The base models normalise over the whole row, padding included; so clips of different lengths go through them one
    length at a time. The large one masks its padding and takes the batch at once.
    """

    def __init__(self, model: str | PretrainedConfig, *, frozen: bool, pretrained: bool = True) -> None:
        import transformers

        super().__init__()
        # Its own augmentation and layer drop draw from other random states than the training loop restores.
        overrides = {"apply_spec_augment": False, "layerdrop": 0.0, "pretrained": pretrained}
        self.backbone = Backbone(build(transformers.WavLMModel, model, **overrides), frozen=frozen)
        self.backbone.model.masked_spec_embed.requires_grad_(False)  # for its augmentation only
        config = self.backbone.model.config
        extractor = transformers.Wav2Vec2FeatureExtractor
        self.standardise = (
            fetch(lambda: extractor.from_pretrained(model), model).do_normalize if isinstance(model, str) else True
        )
        self.by_length = config.feat_extract_norm == "group"
        self.dim = config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        clips = [self._prepare(clip) for clip in split_rows(audio.to(self.backbone.device), lengths)]
        if not self.by_length:
            return self._encode(clips)
        sizes = [len(clip) for clip in clips]
        places = [[i for i, size in enumerate(sizes) if size == wanted] for wanted in dict.fromkeys(sizes)]
        features = torch.cat([self._encode([clips[i] for i in group]) for group in places])
        order = torch.tensor([i for group in places for i in group], device=features.device)
        return features[order.argsort()]

    def _prepare(self, clip: Tensor) -> Tensor:
        if self.standardise:  # zero mean, unit variance, as its feature extractor does; silence stays zero
            clip = (clip - clip.mean()) / torch.sqrt(clip.var(correction=0) + 1e-7)
        return F.pad(clip, (0, max(0, WAVLM_SHORTEST - len(clip))))

    def _encode(self, clips: list[Tensor]) -> Tensor:
        sizes = torch.tensor([len(clip) for clip in clips], device=self.backbone.device)
        audio = pad_sequence(clips, batch_first=True)
        mask = length_mask(sizes, audio.shape[1]).long()
        states = self.backbone(input_values=audio, attention_mask=mask).last_hidden_state
        frames = self.backbone.model._get_feat_extract_output_lengths(sizes)
        return masked_mean(states.mT, length_mask(frames, states.shape[1]))


class PretrainedText(nn.Module):
    """A pretrained text encoder, averaged over the text's own tokens.

    Args:
        architecture: class of the model.
        model: name, folder or configuration.
        tokenizer: needed with a configuration; otherwise the model's own.
        codes: ISO 639-3 → the tokenizer's language codes; None for a tokenizer that marks no language.
        language: what texts are written in when nobody says.
        frozen: keep the weights.
        max_tokens: longer texts are cut.
    """

    def __init__(
        self,
        architecture: type,
        model: str | PretrainedConfig,
        tokenizer: PreTrainedTokenizerBase | None,
        *,
        codes: dict[str, str] | None = None,
        language: str = "eng",
        frozen: bool = False,
        max_tokens: int = 128,
        **overrides: Any,
    ) -> None:
        import transformers

        super().__init__()
        if tokenizer is None and not isinstance(model, str):
            raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
        self.backbone = Backbone(build(architecture, model, **overrides), frozen=frozen)
        if tokenizer is None:
            tokenizer = fetch(lambda: transformers.AutoTokenizer.from_pretrained(model), model)
        self.tokenizer, self.codes, self.language, self.max_tokens = tokenizer, codes, language, max_tokens
        self.dim = self.backbone.model.config.hidden_size
        self._code(language)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts, their ISO 639-3 codes → `(B, dim)`."""
        languages = [self.language] * len(texts) if languages is None else list(languages)
        if len(languages) != len(texts):
            raise ValueError(f"{len(texts)} texts need as many languages, got {len(languages)}")
        tokens = [self._tokens(text, language) for text, language in zip(texts, languages, strict=True)]
        batch = self.tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self.backbone.device)
        states = self.backbone(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        return masked_mean(states.mT, batch.attention_mask.bool())

    def _tokens(self, text: str, language: str) -> list[int]:
        if self.codes is not None:
            self.tokenizer.src_lang = self._code(language)
        return self.tokenizer(text, truncation=True, max_length=self.max_tokens).input_ids

    def _code(self, language: str) -> str | None:
        if self.codes is None:
            return None
        if language not in self.codes:
            raise unknown("language", language, self.codes)
        return self.codes[language]


def clap(
    *, model: str | PretrainedConfig = "laion/clap-htsat-unfused", frozen: bool = False, pretrained: bool = True
) -> CLAPAudio:
    """LAION's CLAP audio encoder (HTSAT), 48 kHz inside."""
    return CLAPAudio(model, frozen=frozen, pretrained=pretrained)


def whisper(
    *, model: str | PretrainedConfig = "openai/whisper-small", frozen: bool = False, pretrained: bool = True
) -> WhisperAudio:
    """The encoder of OpenAI's Whisper."""
    return WhisperAudio(model, frozen=frozen, pretrained=pretrained)


def wavlm(
    *, model: str | PretrainedConfig = "microsoft/wavlm-base-plus", frozen: bool = False, pretrained: bool = True
) -> WavLMAudio:
    """Microsoft's WavLM."""
    return WavLMAudio(model, frozen=frozen, pretrained=pretrained)


def roberta(
    *,
    model: str | PretrainedConfig = "FacebookAI/roberta-base",
    tokenizer: PreTrainedTokenizerBase | None = None,
    frozen: bool = False,
    pretrained: bool = True,
    max_tokens: int = 128,
) -> PretrainedText:
    """RoBERTa, English, or a model of the same architecture."""
    from transformers import RobertaModel

    return PretrainedText(
        RobertaModel,
        model,
        tokenizer,
        frozen=frozen,
        max_tokens=max_tokens,
        add_pooling_layer=False,
        pretrained=pretrained,
    )


def sonar(
    *,
    model: str | PretrainedConfig = "cointegrated/SONAR_200_text_encoder",
    tokenizer: PreTrainedTokenizerBase | None = None,
    language: str = "eng",
    frozen: bool = False,
    pretrained: bool = True,
    max_tokens: int = 128,
) -> PretrainedText:
    """SONAR's text encoder, 200 languages: the encoder of an NLLB model, mean pooled."""
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100Encoder

    return PretrainedText(
        M2M100Encoder,
        model,
        tokenizer,
        codes=FLORES,
        language=language,
        frozen=frozen,
        max_tokens=max_tokens,
        pretrained=pretrained,
    )
