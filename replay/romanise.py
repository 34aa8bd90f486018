"""Words in scripts that a voice cannot read, written in Latin letters so that they are said and not left out.

A fallback, not a pronunciation: Cyrillic, Greek, Hebrew, Arabic, Thai, kana, Hangul and the scripts of India become syllables that an
English voice can say; letters of other scripts are called by their Unicode names. Short vowels that Hebrew and Arabic do not write are
guessed as *a*. Pure: text in, text out.
"""

from __future__ import annotations

import re
import unicodedata

_READ = ("LATIN ", "CJK ", "FULLWIDTH LATIN")
_WORD = re.compile(
    r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0900-\u0dff\u0e30-\u0e4e\u0eb0-\u0ecd\u1000-\u109f\u17b4-\u17d3])*"
)


def _table(rows: str) -> dict[str, str]:
    return {letter: sound for letters, _, sound in (row.partition("=") for row in rows.split()) for letter in letters}


_CYRILLIC = _table(
    "а=a б=b в=v г=g д=d её=ye ж=zh з=z иі=i йыј=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch ъь= э=e ю=yu "
    "я=ya ї=yi є=ye ґ=g ў=w љ=ly њ=ny ђ=dj ћ=ch џѕ=dz ѓ=gy ќ=ky"
)
_GREEK = _table("α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o")
_GREEK_PAIRS = (
    ("ου", "u"),
    ("μπ", "b"),
    ("ντ", "d"),
    ("γγ", "ng"),
    ("γκ", "g"),
    ("ει", "i"),
    ("οι", "i"),
    ("ευ", "ev"),
    ("αυ", "av"),
    ("αι", "e"),
)
_HEBREW = _table("אע=a ב=b ג=g ד=d ה=h ו=v ז=z חכך=kh טת=t י=y ל=l מם=m נן=n ס=s פ=p ף=f צץ=ts ק=k ר=r ש=sh")
_ARABIC = _table(
    "اأآىةع=a إ=i ب=b تط=t ث=th ج=j حه=h خ=kh دض=d ذ=dh ر=r زظ=z سص=s ش=sh غ=gh ف=f ق=q كک=k ل=l م=m ن=n وؤ=w يئی=y ء= پ=p چ=ch ژ=zh گ=g"
)  # fmt: skip
_THAI = _table(
    "ก=k ขฃคฅฆ=kh ง=ng จฉชฌ=ch ซศษส=s ญย=y ฎด=d ฏต=t ฐฑฒถทธ=th ณน=n บ=b ป=p ผพภ=ph ฝฟ=f ม=m ร=r ลฬ=l ว=w หฮ=h อ=o ะัา=a ำ=am ิี=i "
    "ึื=ue ุู=u เ=e แ=ae โ=o ใไ=ai"
)
_KANA = {"si": "shi", "ti": "chi", "tu": "tsu", "hu": "fu", "zi": "ji", "di": "ji", "du": "zu"}
_LATIN = _table("łŁ=l øØ=o đĐ=d ß=ss þÞðÐ=th æÆ=ae œŒ=oe ı=i ŋŊ=ng")
"""Latin letters that do not fall apart into a letter and an accent."""


def is_foreign(char: str) -> bool:
    """A letter of a script that English and Mandarin voices cannot read; Greek letters too, which are signs of mathematics as well."""
    return unicodedata.category(char)[0] == "L" and char >= "\u0250" and not unicodedata.name(char, "").startswith(_READ)


def foreign_words(text: str) -> tuple[str, ...]:
    """Words that :func:`romanise` says in other letters, in order."""
    return tuple(m.group() for m in _WORD.finditer(text) if any(is_foreign(c) for c in m.group()) and _word(m.group()) != m.group())


def romanise(text: str) -> str:
    """The text with every such word in Latin letters, digits of other scripts as 0 to 9. Single Greek letters stay: they have names."""
    text = "".join(str(unicodedata.decimal(c)) if unicodedata.category(c) == "Nd" else _LATIN.get(c, c) for c in text)
    return _WORD.sub(lambda m: _word(m.group()), text)


def _word(word: str) -> str:
    parts: list[str] = []
    at = 0
    for end in range(1, len(word) + 1):
        if end == len(word) or _kind(word[end]) != _kind(word[end - 1]):
            parts.append(_stretch(word[at:end], _kind(word[at])))
            at = end
    return "".join(parts)


def _kind(char: str) -> str:
    """Script of a character by the first word of its name; kana are one."""
    first = unicodedata.name(char, "?").split()[0]
    return "KANA" if first in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else first


def _stretch(text: str, script: str) -> str:
    if not any(is_foreign(c) for c in text):
        return text
    bare = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c) or script in _INDIAN)
    match script:
        case "CYRILLIC":
            composed = unicodedata.normalize("NFC", text.lower())
            return _said(re.sub(r"(?<=[бвгджзклмнпрстфхцчшщ])е", "e", composed), _CYRILLIC)
        case "GREEK":
            return _greek(text, bare)
        case "HEBREW":
            return _voweled(_said(re.sub(r"(?<=.)ו(?=.)", "o", re.sub(r"(?<=.)י(?=.)", "i", bare)), _HEBREW))
        case "ARABIC":
            composed = "".join(c for c in unicodedata.normalize("NFC", text) if not unicodedata.combining(c))
            return _voweled(_said(re.sub(r"(?<=.)و(?=.)", "u", re.sub(r"(?<=.)[يی](?=.)", "i", composed)), _ARABIC))
        case "THAI":
            return _said(re.sub(r"([เแโใไ])([ก-ฮ])", r"\2\1", unicodedata.normalize("NFC", text)), _THAI)
        case "KANA":
            return _kana(text)
        case "HANGUL":
            return "".join(_name(c) for c in unicodedata.normalize("NFC", text))
        case _ if script in _INDIAN:
            return _indian(unicodedata.normalize("NFC", text))
        case "ETHIOPIC":
            return "".join(_name(c) for c in text)
    return " " + " ".join(filter(None, (_name(c) for c in text))) + " "


def _said(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(c, c if c.isascii() else _name(c)) for c in text)


def _voweled(text: str) -> str:
    """An *a* between consonants that have no vowel: two letters such as *sh* are one consonant."""
    units = re.findall(r"sh|kh|gh|th|dh|zh|ch|ts|.", text)
    return "".join(
        u + ("a" if k + 1 < len(units) and u[0] not in "aeiou" and units[k + 1][0] not in "aeiou" else "") for k, u in enumerate(units)
    )


def _greek(text: str, bare: str) -> str:
    """Words; up to three letters without an accent are signs and stay for the voice's own names of them."""
    if len(text) <= 3 and unicodedata.normalize("NFD", text) == unicodedata.normalize("NFC", text):
        return text
    for pair, sound in _GREEK_PAIRS:
        bare = bare.replace(pair, sound)
    return _said(bare, _GREEK)


def _kana(text: str) -> str:
    out, double = "", False
    for char in text:
        name = unicodedata.name(char, "")
        sound = _name(char)
        if " SMALL TU" in name:
            double = True
            continue
        if " SMALL " in name and out.endswith("i") and sound[:1] == "y":
            out = out[:-1] + (sound[1:] if out[-3:-1] in ("sh", "ch") or out[-2:-1] == "j" else sound)
            continue
        sound = "" if "PROLONGED" in name else _KANA.get(sound, sound)
        out, double = out + (sound[:1] if double else "") + sound, False
    return out


def _indian(text: str) -> str:
    """Consonants carry an *a* until a vowel sign or a virama takes it; at the end of a word it is not said."""
    out = ""
    for char in text:
        name = unicodedata.name(char, "")
        if "VIRAMA" in name or " VOWEL SIGN " in name:
            out = out.removesuffix("a") + ("" if "VIRAMA" in name else _name(char))
        elif "ANUSVARA" in name or "CANDRABINDU" in name:
            out += "n"
        elif " LETTER " in name:
            out += _name(char)
    return out[:-1] if len(out) > 3 and out.endswith("a") and out[-2] not in "aeiou" else out


_INDIAN = frozenset(("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA"))


def _name(char: str) -> str:
    """What a letter is called in Unicode, without script and form."""
    name = unicodedata.name(char, "")
    found = re.search(r"(?:LETTER|SYLLABLE|SIGN|CHARACTER) (?:CAPITAL |SMALL |FINAL |VOCALIC )*(.+)", name)
    return found.group(1).lower().replace("-", " ") if found else ""
