"""What is written as it is spoken: times, dates, money, units, ranges, signs and abbreviations in English and Mandarin.

Owns the tables. Letter-to-sound engines read words, plain numbers, years, decimals and ordinals; anything else they misread or silently
drop ("10:30", "5kg", "3×4", "¥100"), so it is written out here first. Must not know engines; captions keep the text as it was written.

Pure: text in, text out. Other languages come back as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

_Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
_NUMBER = r"\d[\d,]*(?:\.\d+)?"

# -- both languages ------------------------------------------------------------------------------------------------------------

_MONTHS = "January February March April May June July August September October November December".split()
_FULLWIDTH = {c: c - 0xFEE0 for c in range(0xFF01, 0xFF5F) if chr(c) not in "，。！？；：（）"}
_CIRCLED = {0x2460 + n: f" {n + 1} " for n in range(20)}
_DASHES = dict.fromkeys(map(ord, "‐‑−﹣"), "-")
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(0?[1-9]|1[0-2])-(0?[1-9]|[12]\d|3[01])(?![\d-])")
_CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s*([ap])\.?\s?m\b\.?)?", re.IGNORECASE)
_LONG = re.compile(r"(?<![\d.,])\d{9,}(?![\d.,]*\d)")
_LOOSE = re.compile(r"\s+([,.;:!?]+(?=\s|$))")
_UNSPOKEN = frozenset(("So", "Sk", "Cf", "Co", "Cn", "Cs", "Cc"))
"""Kinds of characters that nobody reads aloud: pictures, marks without a letter, controls."""
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu",
    "µ": "mu",
    "π": "pi", "ρ": "rho", "σ": "sigma", "Σ": "sigma", "τ": "tau", "φ": "phi", "ψ": "psi", "ω": "omega", "Ω": "omega",
}  # fmt: skip


def spoken(text: str, language: str) -> str:
    """The text in words that a voice of this language reads right.

    Args:
        text: tidy text (``speech_text.plain``).
        language: BCP 47; only its first part counts.
    """
    base = language.split("-")[0].lower()
    if base not in ("en", "zh"):
        return text
    text = text.translate(_CIRCLED).translate(_FULLWIDTH).translate(_DASHES)
    for pattern, words in _ENGLISH if base == "en" else _MANDARIN:
        text = pattern.sub(words, text)
    text = "".join(_WORD_OF[base].get(c, c if _is_read(c) else " ") for c in text)
    return _LOOSE.sub(r"\1", " ".join(text.split()))


def _is_read(char: str) -> bool:
    """Neither unspoken nor a letter of a script that these voices do not know (they would say something, but not that)."""
    if char < "\u0250":
        return unicodedata.category(char) not in _UNSPOKEN
    kind = unicodedata.category(char)
    return kind not in _UNSPOKEN and (kind[0] != "L" or unicodedata.name(char, "").startswith(("LATIN ", "CJK ")))


def _digits(text: str, names: str) -> str:
    return "".join(names[int(c)] for c in text)


# -- English -------------------------------------------------------------------------------------------------------------------

_UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour"), "m/s": ("meter per second", "meters per second"),
    "mph": ("mile per hour", "miles per hour"), "kg": ("kilogram", "kilograms"), "mg": ("milligram", "milligrams"), "g": ("gram",
    "grams"),
    "km": ("kilometer", "kilometers"), "cm": ("centimeter", "centimeters"), "mm": ("millimeter", "millimeters"),
    "nm": ("nanometer", "nanometers"), "µm": ("micrometer", "micrometers"), "μm": ("micrometer", "micrometers"), "m": ("meter", "meters"),
    "ft": ("foot", "feet"), "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "oz": ("ounce", "ounces"), "ml": ("milliliter",
    "milliliters"),
    "mL": ("milliliter", "milliliters"), "L": ("liter", "liters"), "kHz": ("kilohertz", "kilohertz"), "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"), "Hz": ("hertz", "hertz"), "kWh": ("kilowatt hour", "kilowatt hours"), "kW": ("kilowatt",
    "kilowatts"),
    "MW": ("megawatt", "megawatts"), "GW": ("gigawatt", "gigawatts"), "W": ("watt", "watts"), "V": ("volt", "volts"),
    "kB": ("kilobyte", "kilobytes"), "KB": ("kilobyte", "kilobytes"), "MB": ("megabyte", "megabytes"), "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"), "ms": ("millisecond", "milliseconds"), "min": ("minute", "minutes"), "h": ("hour", "hours"),
    "°C": ("degree Celsius", "degrees Celsius"), "℃": ("degree Celsius", "degrees Celsius"), "°F": ("degree Fahrenheit",
    "degrees Fahrenheit"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"), "°": ("degree", "degrees"),
}  # fmt: skip
_SPACED_UNITS = {"s": ("second", "seconds")}
"""Units that are read as such only behind a space: '1990s' is something else."""
_MONEY = {
    "$": ("dollar", "dollars", "cents"),
    "€": ("euro", "euros", "cents"),
    "£": ("pound", "pounds", "pence"),
    "¥": ("yen", "yen", "sen"),
}
_SCALES = {
    "k": "thousand",
    "K": "thousand",
    "M": "million",
    "m": "million",
    "mn": "million",
    "bn": "billion",
    "B": "billion",
    "T": "trillion",
}
_SHORT = {
    "Prof.": "Professor", "Jr.": "Junior", "Sr.": "Senior", "Inc.": "Incorporated", "Ltd.": "Limited", "Corp.": "Corporation",
    "approx.": "approximately", "Mt.": "Mount", "St.": "Saint", "vs.": "versus", "Vs.": "versus", "vs": "versus", "e.g.": "for example",
    "i.e.": "that is", "Ph.D.": "P H D", "PhD": "P H D", "w/o": "without", "a.k.a.": "also known as", "Dept.": "Department",
    "Gen.": "General", "Capt.": "Captain", "Lt.": "Lieutenant", "Sgt.": "Sergeant", "Rev.": "Reverend", "Gov.": "Governor",
    "Sen.": "Senator",
}  # fmt: skip
_BEFORE_NUMBER = {"No.": "number", "no.": "number", "Nos.": "numbers", "Fig.": "figure", "fig.": "figure", "Eq.": "equation",
    "p.": "page",
                  "pp.": "pages", "vol.": "volume", "Vol.": "volume", "ch.": "chapter", "Ch.": "chapter", "sec.": "section"}  # fmt: skip
_FRACTIONS = {
    "1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter", "3/4": "three quarters", "24/7": "24 7",
    "9/11": "9 11",
}  # fmt: skip
_GLYPHS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_NUMBERED = "Chapter|Part|Act|Volume|Section|War|Book|Phase|Stage|Type|Level|Article|Appendix|Figure|Scene|Title|Tier|Class|Mark"
_SELDOM_LETTERED = frozenset(("Chapter", "Act", "Volume", "War", "Article", "Type"))
_ROMAN = {"I": 1, "V": 5, "X": 10}


def _address(match: re.Match[str]) -> str:
    words = re.sub(r"^https?://(www\.)?", "", match.group()).rstrip("/")
    for sign, word in (
        ("@", "at"),
        (".", "dot"),
        ("/", "slash"),
        ("-", "dash"),
        ("_", "underscore"),
        ("?", "question mark"),
        ("=", "equals"),
    ):
        words = words.replace(sign, f" {word} ")
    return f" {words} "


def _clock_en(match: re.Match[str]) -> str:
    hour, minute, second, half = match.groups()
    words = str(int(hour)) if int(minute) or second or half else f"{int(hour)} o'clock"
    if int(minute):
        words += f" {int(minute)}" if int(minute) > 9 else f" oh {int(minute)}"
    if second:
        words += f" and {int(second)} second{'' if int(second) == 1 else 's'}"
    return words + (f" {half.lower()}.m." if half else "") + " "


def _money_en(match: re.Match[str]) -> str:
    sign, whole, part, scale, word = match.groups()
    one, many, small = _MONEY[sign]
    if scale or word:
        return f"{whole}{part or ''} {_SCALES[scale] if scale else word} {many}"
    words = f"{whole} {one if whole == '1' else many}"
    if part is None or not part[1:].strip("0"):
        return words
    if len(part) == 3:
        return f"{words} and {int(part[1:])} {small}"
    return f"{whole}{part} {many}"


def _unit_en(match: re.Match[str]) -> str:
    number, unit, power = match.groups()
    one, many = (_UNITS | _SPACED_UNITS)[unit]
    square = {None: "", "²": "square ", "2": "square ", "³": "cubic ", "3": "cubic "}[power]
    return f"{number} {square}{one if number == '1' else many}"


def _fraction(match: re.Match[str]) -> str:
    whole, top, bottom = match.groups()
    name = _FRACTIONS.get(f"{top}/{bottom}", f"{top} over {bottom}")
    if whole:
        name = name.replace("one half", "a half").replace("one quarter", "a quarter")
        return f"{whole} and {name}"
    return name


def _roman(match: re.Match[str]) -> str:
    """A numeral behind a word that is counted. A single letter is one only behind words that seldom have letters: not in 'Appendix C'."""
    word, letters = match.groups()
    if len(letters) == 1 and word not in _SELDOM_LETTERED:
        return match.group()
    values = [_ROMAN[c] for c in letters]
    total = sum(-v if n + 1 < len(values) and values[n + 1] > v else v for n, v in enumerate(values))
    return f"{word} {total}"


def _range_en(match: re.Match[str]) -> str:
    """From a smaller to a larger number; the other way round it is a score or a model ('3-2', '747-400')."""
    low, high = (float(g.replace(",", "").rstrip("%.")) for g in match.groups())
    return f"{match.group(1)} to {match.group(2)}" if low < high else match.group()


def _short_en(match: re.Match[str]) -> str:
    return _SHORT[match.group()]


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))


_ENGLISH: tuple[_Rule, ...] = (
    (re.compile(r"[½⅓⅔¼¾]"), lambda m: f" {_GLYPHS[m.group()]}"),
    (re.compile(r"https?://[^\s,;)\"'<>]*[\w/]"), _address),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), _address),
    (re.compile(r"\bwww\.[\w-]+(?:\.[\w-]+)+"), _address),
    (_ISO_DATE, lambda m: f"{_MONTHS[int(m.group(2)) - 1]} {int(m.group(3))}, {m.group(1)}"),
    (_CLOCK, _clock_en),
    (re.compile(r"\b(1[0-2]|[1-9])\s?([ap])\.?m\b\.?", re.IGNORECASE), lambda m: f"{m.group(1)} {m.group(2).lower()}.m."),
    (re.compile(r"([$€£¥])\s?(\d[\d,]*)(\.\d+)?(?:\s?(k|K|mn|m|M|bn|B|T)\b|\s+(thousand|million|billion|trillion)\b)?"), _money_en),
    (re.compile(rf"\b({_NUMBERED})\s+(X{{0,3}}(?:IX|IV|V?I{{1,3}}|V|(?<=X)))(?![\w'])"), _roman),
    (re.compile(r"(?<![\d/])(?:(\d+)\s+)?(\d{1,3})/(\d{1,3})(?![\d/])"), _fraction),
    (re.compile(rf"({_NUMBER})\s?({_alternatives(_UNITS)})([²³23](?!\d))?(?![\w/°])"), _unit_en),
    (re.compile(rf"({_NUMBER})\s({_alternatives(_SPACED_UNITS)})([²³])?(?![\w/'])"), _unit_en),
    (re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d+)?)(k|M|bn|B)\b"), lambda m: f"{m.group(1)} {_SCALES[m.group(2)]}"),
    (re.compile(r"(\d{2,}(?:\.\d+)?)K\b"), r"\1 thousand"),
    (re.compile(r"\b([248])K\b"), r"\1 K"),
    (re.compile(r"(\d+)\s?x\s?(?=\d)|(\d{3,})\s?×\s?(?=\d{3,})"), lambda m: f"{m.group(1) or m.group(2)} by "),
    (re.compile(rf"({_NUMBER})[x×](?=\s|$)"), r"\1 times"),
    (re.compile(r"\bSt\.(?!\s+[A-Z])"), "Street"),
    (re.compile(r"(\d+):(\d+)"), r"\1 to \2"),
    (_LONG, lambda m: " ".join(m.group())),
    (re.compile(r"(?<![\w.-])(\d[\d,.]*%?)\s?[–—]\s?(?=\d)"), r"\1 to "),
    (re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?%?)-(\d[\d,]*(?:\.\d+)?%?)(?![\w.,]*-?\d|-)"), _range_en),
    (re.compile(r"(?<=[\w)])\s+-\s+(?=\d)"), " minus "),
    (re.compile(r"(?:(?<=\s)|^)-(?=\d)"), "minus "),
    (re.compile(r"\b([a-z]{2,3})(?=²|\^2)"), lambda m: " ".join(m.group(1))),
    (re.compile(r"\^2\b|²"), " squared"),
    (re.compile(r"\^3\b|³"), " cubed"),
    (re.compile(r"\^(\w+)"), r" to the power of \1"),
    (re.compile(r"√\s?"), " the square root of "),
    (re.compile(r"#\s?(?=\d)"), " number "),
    (re.compile(rf"({_alternatives(_BEFORE_NUMBER)})\s?(?=\d)"), lambda m: f"{_BEFORE_NUMBER[m.group(1)]} "),
    (
        re.compile(r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?(?=\s\d)"),
        lambda m: next(name for name in _MONTHS if name.startswith(m.group(1)[:3])),
    ),
    (re.compile(rf"(?<![\w.])(?:{_alternatives(_SHORT)})(?![\w.])"), _short_en),
    (re.compile(r"(?<=[A-Za-z])\s?\+\s?(?=[A-Za-z0-9](?!\+))"), " plus "),
    (re.compile(r"(?<=[\d)])\s?\+\s?(?=\w)"), " plus "),
    (re.compile(r"(?<=\d)\+"), " plus"),
    (re.compile(r"(?<=[A-Za-z])/(?=[A-Za-z])"), " "),
    (re.compile(r"(?<=\d)/(?=\d)"), " "),
)  # fmt: skip

# -- Mandarin ------------------------------------------------------------------------------------------------------------------

_ZH_DIGITS = "零一二三四五六七八九"
_ZH_MONEY = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_ZH_UNITS = {
    "km/h": "公里每小时", "m/s": "米每秒", "kg": "公斤", "mg": "毫克", "g": "克", "km": "公里", "cm": "厘米", "mm": "毫米",
    "nm": "纳米", "m": "米",
    "ml": "毫升", "mL": "毫升", "L": "升", "kHz": "千赫", "MHz": "兆赫", "GHz": "吉赫", "Hz": "赫兹", "kWh": "千瓦时", "kW": "千瓦",
    "W": "瓦",
    "ms": "毫秒", "min": "分钟", "s": "秒", "h": "小时", "°C": "摄氏度", "℃": "摄氏度", "°F": "华氏度", "℉": "华氏度", "°": "度",
}  # fmt: skip


def _clock_zh(match: re.Match[str]) -> str:
    hour, minute, second, half = match.groups()
    words = ("" if not half else "上午" if half.lower() == "a" else "下午") + f"{int(hour)}点"
    if int(minute) or second:
        words += f"{'零' if int(minute) < 10 else ''}{int(minute)}分" if int(minute) else "零分"
    return words + (f"{int(second)}秒" if second else "")


def _unit_zh(match: re.Match[str]) -> str:
    number, unit, power = match.groups()
    return f"{number}{'' if power is None else '平方' if power == '²' else '立方'}{_ZH_UNITS[unit]}"


_MANDARIN: tuple[_Rule, ...] = (
    (re.compile(r"〇"), "零"),
    (re.compile(r"[½⅓⅔¼¾]"), lambda m: _GLYPHS[m.group()]),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (_ISO_DATE, lambda m: f"{m.group(1)}年{int(m.group(2))}月{int(m.group(3))}日"),
    (_CLOCK, _clock_zh),
    (re.compile(r"([¥￥$€£])\s?(\d+(?:\.\d+)?)\s?([万亿千百]*)"), lambda m: f"{m.group(2)}{m.group(3)}{_ZH_MONEY[m.group(1)]}"),
    (re.compile(rf"(\d+(?:\.\d+)?)\s?({_alternatives(_ZH_UNITS)})([²³])?(?![A-Za-z/])"), _unit_zh),
    (re.compile(r"(?<=\d)\s?-\s?(?=\d+\s?=)"), "减"),
    (re.compile(r"(?<=[年月日点分])\s?[-–—~～]+\s?(?=\d)"), "到"),
    (re.compile(r"(\d{4})\s?[-–—~～至到]+\s?(?=\d{4}年)"), lambda m: f"{_digits(m.group(1), _ZH_DIGITS)}到"),
    (re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?%?)\s?[-–—~～]+\s?(?=\d)"), r"\1到"),
    (re.compile(r"(\d+):(\d+)"), r"\1比\2"),
    (re.compile(r"(?<![\d.])\d{8,}(?![\d.])"), lambda m: _digits(m.group(), _ZH_DIGITS)),
    (re.compile(r"(\d+(?:\.\d+)?)‰"), r"千分之\1"),
    (re.compile(r"#\s?(\d+)"), r"\1号"),
    (re.compile(r"\^2\b|²"), "的平方"),
    (re.compile(r"\^3\b|³"), "的立方"),
    (re.compile(r"√\s?"), "根号"),
    (re.compile(r"(?<=\d)\s?\+\s?(?=\d)"), "加"),
    (re.compile(r"(?<=[\u4e00-\u9fff])\s?[&＆]\s?|\s?[&＆]\s?(?=[\u4e00-\u9fff])"), "和"),
)  # fmt: skip

_WORD_OF: dict[str, dict[str, str]] = {
    "en": {
        "×": " times ", "÷": " divided by ", "=": " equals ", "±": " plus or minus ", "≈": " about ", "≠": " is not ", "<": " less than ",
        ">": " greater than ", "≤": " at most ", "≥": " at least ", "→": " to ", "∞": " infinity ", "&": " and ", "@": " at ",
        "‰": " per mille",
        "°": " degrees ", "℃": " degrees Celsius ", "§": " section ", **{sign: f" {word} " for sign, word in _GREEK.items()},
    },
    "zh": {
        "×": "乘", "÷": "除以", "=": "等于", "±": "正负", "≈": "约等于", "≠": "不等于", "<": "小于", ">": "大于", "≤": "小于等于",
        "≥": "大于等于",
        "→": "到", "∞": "无穷大", "°": "度", "℃": "摄氏度", "π": "派", "μ": "缪", "Ω": "欧姆",
        **{sign: f" {word} " for sign, word in _GREEK.items() if sign not in "πμΩ"},
    },
}  # fmt: skip
