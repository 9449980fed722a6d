"""Character classes of the writing systems that need their own treatment, as bodies of regex sets."""

from __future__ import annotations

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
# Thai, Lao, Myanmar and Khmer: written without spaces between words.
UNSPACED = "\u0e01-\u0e3e\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"
# Their vowel signs are marks, which `\w` leaves out; the dandas are punctuation.
INDIC = "\u0900-\u0963\u0966-\u096f\u0971-\u0dff\u0f00-\u0f0a\u0f10-\u0fbc"
EMOJI = (
    "\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
SKIN_TONES = "\U0001f3fb-\U0001f3ff"
FLAGS = "\U0001f1e6-\U0001f1ff"
EMOJI_TAGS = "\U000e0020-\U000e007f"
JOINER = "\u200d"
VARIATION = "\ufe0e\ufe0f"
