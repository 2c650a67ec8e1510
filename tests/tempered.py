"""Losses of (audio, text, tau) that the tests of refusals and the fuzz try alike."""

from pullpush import losses

TEMPERED = {
    "info_nce": losses.info_nce,
    "siglip": losses.siglip,
    "ml_clap": losses.ml_clap,
    "simcse": losses.simcse,
    "svr": lambda audio, text, tau: losses.svr(audio, text, 0.1, tau),
    "simple_reweight": lambda audio, text, tau: losses.simple_reweight(audio, text, 1.0, tau),
}
