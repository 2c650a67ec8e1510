"""Sentences for zero-shot classification that name a class in "{label}", as their authors printed them."""

from collections.abc import Mapping

# On the Language Encoder of Contrastive Cross-modal Models, Table 10, in its order. It prints 22 lines, of which
# "A small sound of label." stands there twice.
SOUNDS = (
    "A sound of {label}.",
    "a sound of {label}.",
    "The sound of {label}.",
    "the sound of {label}.",
    "A constant sound of {label}.",
    "a constant sound of {label}.",
    "A big sound of {label}.",
    "a big sound of {label}.",
    "A small sound of {label}.",
    "A {label} is making a sound.",
    "a {label} is making a sound.",
    "An {label} is making a sound.",
    "an {label} is making a sound.",
    "A sound of {label} followed by a sound of {label}.",
    "A sound of {label} followed by {label}.",
    "A {label}.",
    "An {label}.",
    "{label}.",
    "{label} and {label}.",
    "A {label} is running.",
    "A {label} is happening.",
)

# Of OpenAI's 80 for ImageNet (openai/CLIP, notebooks/Prompt_Engineering_for_ImageNet.ipynb) those that end in "of a
# {}." and could be said of a stamp; the first two are quoted in §5.1 of the paper. A label brings its own article:
# "a bird", "food".
PICTURES = (
    "a photo of {label}.",
    "a blurry photo of {label}.",
    "a bad photo of {label}.",
    "a good photo of {label}.",
    "a close-up photo of {label}.",
    "a low resolution photo of {label}.",
    "a drawing of {label}.",
    "a painting of {label}.",
    "a sketch of {label}.",
    "a doodle of {label}.",
    "a rendering of {label}.",
    "art of {label}.",
    "itap of {label}.",
)

# GLAP, Table 3, by what is heard; the paper adjusts them to other languages (§4.5) and prints none of those, so that
# these are translations of this book's, unchecked by natives. The label stands in the nominative, behind a colon where
# the language would change it.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "sound": {
        "eng": "The sound of {label} can be heard.",
        "fra": "On entend le son suivant : {label}.",
        "deu": "Dieses Geräusch ist zu hören: {label}.",
        "spa": "Se puede oír este sonido: {label}.",
        "nld": "Dit geluid is te horen: {label}.",
        "cat": "Se sent aquest so: {label}.",
        "jpn": "{label}の音が聞こえます。",
        "zho": "可以听到{label}的声音。",
        "ara": "يُسمع هذا الصوت: {label}.",
        "ita": "Si sente questo suono: {label}.",
        "kor": "{label} 소리가 들립니다.",
        "pol": "Słychać ten dźwięk: {label}.",
        "por": "Ouve-se este som: {label}.",
        "rus": "Слышен такой звук: {label}.",
        "tha": "ได้ยินเสียง{label}",
        "tur": "Şu ses duyuluyor: {label}.",
    },
    "music": {
        "eng": "The music in the style of {label}.",
        "fra": "La musique dans le style suivant : {label}.",
        "deu": "Die Musik in diesem Stil: {label}.",
        "spa": "La música en este estilo: {label}.",
        "nld": "De muziek in deze stijl: {label}.",
        "cat": "La música en aquest estil: {label}.",
        "jpn": "{label}のスタイルの音楽。",
        "zho": "{label}风格的音乐。",
        "ara": "الموسيقى بهذا الأسلوب: {label}.",
        "ita": "La musica in questo stile: {label}.",
        "kor": "{label} 스타일의 음악.",
        "pol": "Muzyka w tym stylu: {label}.",
        "por": "A música neste estilo: {label}.",
        "rus": "Музыка в таком стиле: {label}.",
        "tha": "ดนตรีสไตล์{label}",
        "tur": "Şu tarzda müzik: {label}.",
    },
}
# Further languages that spoken words are in: of `keywords` and `letters`, and of Multilingual Spoken Words.
_SPOKEN = (
    "asm bel bre bul ces chv cnh cym dan div ell epo est eus fas fin fry gle glg grn hau heb hun hye ina ind kat kin "
    "kir lav lit mal mlt mon nds nno nob ori roh ron sah slk slv srp swe tam tat tsn ukr vie wln"
)
_LANGUAGES = (*_TEMPLATES["sound"], *_SPOKEN.split())
GLAP: Mapping[str, Mapping[str, str]] = {**_TEMPLATES, "speech": dict.fromkeys(_LANGUAGES, "{label}")}
"""Kind of what is heard ("sound", "music", "speech") → language → template."""
