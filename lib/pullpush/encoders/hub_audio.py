"""Audio encoders of the hub that ship with `transformers`: AST, Whisper, WavLM."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import SIZES, Pretrained, WindowedEncoder, build, front_end
from pullpush.encoders.windows import by_length, length_mask, masked_mean, split_rows

if TYPE_CHECKING:
    from transformers import PretrainedConfig

AST_MODEL = "MIT/ast-finetuned-audioset-10-10-0.4593@f826b80d28226b62986cc218e5cec390b1096902"
WHISPER_MODEL = "openai/whisper-small@973afd24965f72e36ca33b3055d56a652f456b4d"
WAVLM_MODEL = "microsoft/wavlm-base-plus@4c66d4806a428f2e922ccfa1a962776e232d487b"
AST_FRAME, AST_HOP = 400, 160  # samples
WHISPER_STRIDE = 2 * 160  # samples in one frame of Whisper's encoder
WAVLM_SHORTEST = 400  # samples: what its convolutions need for one frame


class AST(WindowedEncoder):
    """AST on its window of 1,024 frames (10.24 s), filled up as in its training; of longer clips windows are averaged.

    Features are the mean of its two class tokens, before the classifier. The encoder `ast` is a small one that is
    trained from nothing.
    """

    def __init__(
        self, *, model: "str | PretrainedConfig" = AST_MODEL, frozen: bool = False, pretrained: bool = True
    ) -> None:
        import transformers

        super().__init__()
        self.network = Pretrained(build(transformers.ASTModel, model, pretrained=pretrained), frozen=frozen)
        config = self.network.model.config
        sizes = {"num_mel_bins": config.num_mel_bins, "max_length": config.max_length}
        self.extractor = front_end(transformers.ASTFeatureExtractor, model, **sizes)
        self.window, self.dim = AST_FRAME + (config.max_length - 1) * AST_HOP, config.hidden_size

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = [F.pad(clip, (0, max(0, AST_FRAME - len(clip)))).cpu().numpy() for clip in split_rows(audio, lengths)]
        with torch.autocast("cpu", enabled=False):  # its front end is torch's, on the CPU
            inputs = self.extractor(clips, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        return self.network(input_values=inputs.input_values.to(audio.device)).pooler_output


class Whisper(WindowedEncoder):
    """Whisper's encoder on its window of 30 s, averaged over the clip's own frames; of longer clips windows are
    averaged."""

    def __init__(
        self, *, model: "str | PretrainedConfig" = WHISPER_MODEL, frozen: bool = False, pretrained: bool = True
    ) -> None:
        import transformers

        super().__init__()
        whole = build(transformers.WhisperModel, model, pretrained=pretrained)
        seconds = whole.config.max_source_positions * WHISPER_STRIDE // SAMPLE_RATE
        sizes = {"feature_size": whole.config.num_mel_bins, "chunk_length": seconds}
        self.extractor = front_end(transformers.WhisperFeatureExtractor, model, **sizes)
        self.network = Pretrained(whole.encoder, frozen=frozen)
        self.window, self.dim = self.extractor.n_samples, whole.config.d_model

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        arrays = [clip.cpu().numpy() for clip in split_rows(audio, lengths)]
        with torch.autocast("cpu", enabled=False):  # its front end is torch's, too, and goes through NumPy
            inputs = self.extractor(arrays, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        states = self.network(input_features=inputs.input_features.to(audio.device)).last_hidden_state
        return masked_mean(states.mT, length_mask(-(-lengths // WHISPER_STRIDE), states.shape[1]))


class WavLM(AudioEncoder):
    """WavLM on the waveform, averaged over the clip's own frames.

    The base models normalise over the whole row, padding included; so clips of different lengths go through them one
    length at a time. The large one masks its padding and takes the batch at once.
    """

    def __init__(
        self, *, model: "str | PretrainedConfig" = WAVLM_MODEL, frozen: bool = False, pretrained: bool = True
    ) -> None:
        import transformers

        super().__init__()
        # Its own augmentation and layer drop draw from other random states than the training loop restores.
        overrides = {"apply_spec_augment": False, "layerdrop": 0.0, "pretrained": pretrained}
        self.network = Pretrained(build(transformers.WavLMModel, model, **overrides), frozen=frozen)
        self.network.model.masked_spec_embed.requires_grad_(False)  # for its augmentation only
        config = self.network.model.config
        self.standardise = front_end(transformers.Wav2Vec2FeatureExtractor, model, do_normalize=True).do_normalize
        self.by_length, self.dim = config.feat_extract_norm == "group", config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        clips = [self._prepare(clip) for clip in split_rows(audio.to(self.network.device), lengths)]
        return by_length(self._encode, clips) if self.by_length else self._encode(clips)

    def _prepare(self, clip: Tensor) -> Tensor:
        if self.standardise:  # zero mean, unit variance, as its feature extractor does; silence stays zero
            clip = (clip - clip.mean()) / torch.sqrt(clip.var(correction=0) + 1e-7)
        return F.pad(clip, (0, max(0, WAVLM_SHORTEST - len(clip))))

    def _encode(self, clips: list[Tensor]) -> Tensor:
        sizes = torch.tensor([len(clip) for clip in clips], device=self.network.device)
        audio = pad_sequence(clips, batch_first=True)
        mask = length_mask(sizes, audio.shape[1]).long()
        states = self.network(input_values=audio, attention_mask=mask).last_hidden_state
        frames = self.network.model._get_feat_extract_output_lengths(sizes)
        return masked_mean(states.mT, length_mask(frames, states.shape[1]))


def tiny_ast() -> dict[str, Any]:
    """Options of one that is made in a moment, on windows of 1.3 s."""
    import transformers

    return {"model": transformers.ASTConfig(**SIZES, max_length=128)}


def tiny_whisper() -> dict[str, Any]:
    """The same, on windows of 2 s."""
    import transformers

    sizes = {"d_model": 16, "vocab_size": 20, "max_source_positions": 100}
    towers = {
        f"{tower}_{part}": size
        for tower in ("encoder", "decoder")
        for part, size in {"layers": 1, "attention_heads": 2, "ffn_dim": 32}.items()
    }
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    return {"model": transformers.WhisperConfig(**sizes, **towers, **ends)}


def tiny_wavlm(norm: str = "group") -> dict[str, Any]:
    """The same; "group" norm as in the base models, "layer" as in the large one."""
    import transformers

    waves = {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
    norms = {"feat_extract_norm": norm, "do_stable_layer_norm": norm == "layer"}
    return {"model": transformers.WavLMConfig(**SIZES, **waves, **norms)}


CARDS = (
    AudioEncoderCard(
        name="ast_audioset",
        make=AST,
        title="AST (AudioSet)",
        about="Self-attention over patches of a spectrogram, trained on ImageNet and AudioSet, on windows of 10 s.",
        source="Gong, Chung & Glass 2021, AST: audio spectrogram transformer",
        citation="ast",
        licence="BSD-3-Clause",
        weights=f"hub {AST_MODEL}",
        pretrained=True,
        probe=tiny_ast,
    ),
    AudioEncoderCard(
        name="whisper",
        make=Whisper,
        title="Whisper",
        about="The encoder of Whisper, averaged over the clip's own frames.",
        source="Radford et al. 2023, Robust speech recognition via large-scale weak supervision",
        citation="whisper",
        licence="Apache-2.0",
        weights=f"hub {WHISPER_MODEL}",
        pretrained=True,
        probe=tiny_whisper,
    ),
    AudioEncoderCard(
        name="wavlm",
        make=WavLM,
        title="WavLM",
        about="WavLM on the waveform, averaged over the clip's own frames.",
        source="Chen et al. 2022, WavLM: large-scale self-supervised pre-training for full stack speech processing",
        citation="wavlm",
        licence="CC BY-SA 3.0",
        weights=f"hub {WAVLM_MODEL}",
        pretrained=True,
        probe=tiny_wavlm,
    ),
)
