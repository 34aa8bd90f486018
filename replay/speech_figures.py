"""Figures that are written alike in every language, brought into one plain form before a language's own rules read them.

Owns dates, clock times, telephone numbers, groups of digits, fractions and currencies as they are written; not the words for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
NUMBER = r"(?<![\d.,])\d[\d,]{0,30}(?:\.\d{1,30})?"

_DASHES = dict.fromkeys(map(ord, "‐‑−﹣"), "-")
_FULLWIDTH = {c: c - 0xFEE0 for c in range(0xFF01, 0xFF5F) if chr(c) not in "，。！？；：（）"}
_UNSEEN = dict.fromkeys((*range(0xFE00, 0xFE10), 0x20E3), None)
"""Marks that choose how the character before them is drawn."""
_SIGNS = {0x2116: "No.", 0x2103: "°C", 0x2109: "°F"}
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SPACED = re.compile(r"(?<![\d.,/:+-])(?<!\d )([1-9]\d{0,2})((?: 000)+|(?: \d{3}){2,})(?! ?\d)")
_DOTTED = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d{1,2}(?![\d,])")
_LAKH = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
_COMMA = re.compile(
    r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?=\s?(?:[%°€$£¥₹₽₩₺₪₴฿]|[kmcµμn]?[gmlWV]\b|km\b|kg\b|EUR\b|USD\b|GHz\b|MHz\b|GB\b|MB\b))"
)
_COMMA_AFTER_SIGN = re.compile(r"(?<=[€$£₹₽₺₪₴])(\s?\d+),(\d{2})(?![\d,])")


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))


def plain_figures(text: str) -> str:
    """The text with every figure in ASCII digits and Anglo-American points and commas, fractions as ``1/2``, powers as ``^3``."""
    text = text.translate(_UNSEEN).translate(_FULLWIDTH).translate(_DASHES).translate(_SIGNS)
    text = _RAISED.sub(
        lambda m: m.group() if m.group() in ("²", "³") else "^" + unicodedata.normalize("NFKC", m.group()).replace("−", "-"), text
    )
    text = "".join(_unfolded(c) for c in text).replace("\u2044", "/")
    text = _SPACED.sub(lambda m: m.group().replace(" ", ","), text)
    text = _DOTTED.sub(lambda m: m.group().replace(".", "").replace(",", "."), text)
    text = _LAKH.sub(lambda m: m.group().replace(",", ""), text)
    return _COMMA_AFTER_SIGN.sub(r"\1.\2", _COMMA.sub(r"\1.\2", text))


def _unfolded(char: str) -> str:
    """A character that stands for others (a circled or small figure, a unit in one square, a Roman numeral, ornate letters) as those."""
    if char < "\u00a1":
        return char
    form = unicodedata.decomposition(char).partition(" ")[0]
    if form in ("<fraction>", "<circle>"):
        return f" {unicodedata.normalize('NFKC', char)} "
    if "\u2160" <= char <= "\u217f":
        return f"{unicodedata.numeric(char):g}"
    if form in ("<sub>", "<square>", "<font>"):
        return unicodedata.normalize("NFKC", char)
    return char


def roman(letters: str) -> int | None:
    """Number of a Roman numeral of the letters I, V, X, L; None where it is none."""
    if not letters or not re.fullmatch(r"(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})", letters):
        return None
    values = [{"I": 1, "V": 5, "X": 10, "L": 50}[c] for c in letters]
    return sum(-v if n + 1 < len(values) and values[n + 1] > v else v for n, v in enumerate(values))


# -- dates and times -----------------------------------------------------------------------------------------------------------


class Date(NamedTuple):
    """A day of the calendar as it was written."""

    year: str
    month: int
    day: int


CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d)(?:\.\d+)?)?(?![\d:])(?:\s*([ap])\.?\s?m\b\.?)?", re.IGNORECASE)
_STAMP = re.compile(r"(?<=\d)T(?=\d\d:\d\d)((?:\d\d)(?::\d\d){1,2}(?:\.\d+)?)(?:Z\b|[+-]00:?00\b)?")
_ISO = re.compile(r"(?<![\d-])(\d{4})-(0?[1-9]|1[0-2])-(0?[1-9]|[12]\d|3[01])(?![\d-])")
_YEAR_FIRST = re.compile(r"(?<![\d./])(\d{4})([./])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?![\d/]|\.\d)")
_SLASHED = re.compile(r"(?<![\d./])(0?[1-9]|[12]\d|3[01])/(0?[1-9]|[12]\d|3[01])/((?:1\d|20)\d\d|\d\d)(?![\d/]|\.\d)")
_DAY_FIRST = re.compile(r"(?<![\d./])(0?[1-9]|[12]\d|3[01])\.\s?(0?[1-9]|1[0-2])\.\s?((?:1\d|20)\d\d)(?![\d/]|\.\d)")


def dates(text: str, say: Callable[[Date], str]) -> str:
    """Every date in figures as ``say`` words it. ``3/4/2024`` is the fourth of March; a first number above 12 can only be the day."""
    text = _STAMP.sub(r" \1 ", text)
    text = _ISO.sub(lambda m: say(Date(m[1], int(m[2]), int(m[3]))), text)
    text = _YEAR_FIRST.sub(lambda m: say(Date(m[1], int(m[3]), int(m[4]))), text)
    text = _DAY_FIRST.sub(lambda m: say(Date(m[3], int(m[2]), int(m[1]))), text)
    return _SLASHED.sub(lambda m: _slashed(m, say), text)


def _slashed(match: re.Match[str], say: Callable[[Date], str]) -> str:
    first, second, year = int(match[1]), int(match[2]), match[3]
    if len(year) == 2:
        year = ("20" if int(year) < 69 else "19") + year
    if first > 12 and second > 12:
        return match.group()
    return say(Date(year, second, first) if first > 12 else Date(year, first, second))


# -- telephone numbers ---------------------------------------------------------------------------------------------------------

_PHONES = re.compile(
    r"(?<![\w.,+-])(?:"
    r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){1,6}"
    r"|(?:1[-. ])?(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-. ]\d{4}"
    r"|\d{3}-\d{4}-\d{4}"
    r"|0\d{1,4}(?:[ -]\d{2,8}){1,4}"
    r")(?![\d-]|[.,]\d)"
)
_SHORT_PHONE = re.compile(
    r"(?i)(\b(?:call|phone|telephone|tel|dial|text|fax|mobile|hotline)\b[.:]?\s+|(?:电话|热线|拨打|致电|手机|传真)[:：]?\s*)(\d{3,4}-\d{4})(?![\d-])"
)


def phones(text: str, say: Callable[[str], str]) -> str:
    """Every telephone number as ``say`` words one of its groups of digits; a pause between groups is a comma."""
    text = _PHONES.sub(lambda m: _phone(m.group(), say), text)
    return _SHORT_PHONE.sub(lambda m: m[1] + _phone(m[2], say), text)


def _phone(written: str, say: Callable[[str], str]) -> str:
    groups = re.findall(r"\d+", written)
    if not 7 <= sum(map(len, groups)) <= 15 or (written[0] == "0" and sum(map(len, groups)) < 8):
        return written
    return say(("+" if written[0] == "+" else "") + " ".join(groups))


# -- money ---------------------------------------------------------------------------------------------------------------------

SIGNS = "$€£¥￥₹₩₽₿₺₫₱₦₪฿₴"
PREFIXES = {
    "US": "USD",
    "CA": "CAD",
    "C": "CAD",
    "AU": "AUD",
    "A": "AUD",
    "HK": "HKD",
    "NT": "TWD",
    "S": "SGD",
    "NZ": "NZD",
    "MX": "MXN",
    "R": "BRL",
}
"""Letters in front of a dollar sign, and whose it is."""
CODES = "USD EUR GBP JPY CNY RMB INR CHF KRW RUB CAD AUD HKD SGD NZD BRL MXN TWD SEK NOK DKK PLN TRY BTC ETH".split()
_SIGNED = rf"(?:\b(?:{alternatives(PREFIXES)})(?=\$))?[{SIGNS}]|\b(?:{'|'.join(CODES)})\s?(?=\d)|\bRs\.?\s?(?=\d)"
_AMOUNT = r"(?<![\d.,])\d[\d,]{0,30}(?:\.\d{1,30})?"
_SCALE = r"(?:\s?(?:k|K|mn|m|M|bn|B|T)\b|\s?[万亿千百]+|\s+(?:thousand|million|billion|trillion)\b)?"
MONEY_BEFORE = re.compile(rf"({_SIGNED})\s?({_AMOUNT})({_SCALE})(?:\s?[-–—~～]\s?(?:\1\s?)?({_AMOUNT})({_SCALE}))?(?![\d.]*\d)")
MONEY_AFTER = re.compile(
    rf"(?:(?<![\w.,])({_AMOUNT})\s?[-–—~～]\s?)?(?<![\w.,])({_AMOUNT})({_SCALE})\s?([{SIGNS}¢]|(?:{'|'.join(CODES)})\b)"
)


def currency(sign: str) -> str:
    """Code of the currency that a sign, a code or letters before a dollar sign stand for."""
    sign = sign.strip().rstrip(".")
    if sign.endswith("$") and sign[:-1] in PREFIXES:
        return PREFIXES[sign[:-1]]
    return {"Rs": "₹", "￥": "¥", "RMB": "CNY"}.get(sign, sign)
