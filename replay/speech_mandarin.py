"""How Mandarin reads what is written: money, units, dates, ranges, fractions, signs.

Owns the tables and rules of Mandarin. Must not know engines.
"""

from __future__ import annotations

import re

from replay.speech_addresses import addresses, hashtags
from replay.speech_figures import CLOCK, MONEY_AFTER, MONEY_BEFORE, Rule, alternatives, currency, dates, phones, roman

_DIGITS = "零一二三四五六七八九"
_MONEY = {
    "¥": "元", "CNY": "元", "$": "美元", "USD": "美元", "€": "欧元", "EUR": "欧元", "£": "英镑", "GBP": "英镑", "JPY": "日元",
    "₹": "卢比", "INR": "卢比", "₩": "韩元", "KRW": "韩元", "₽": "卢布", "RUB": "卢布", "₿": "比特币", "BTC": "比特币",
    "₺": "里拉", "TRY": "里拉", "₫": "越南盾", "₱": "比索", "₦": "奈拉", "₪": "谢克尔", "฿": "泰铢", "₴": "格里夫纳",
    "¢": "美分", "CHF": "瑞士法郎", "CAD": "加元", "AUD": "澳元", "HKD": "港元", "SGD": "新加坡元", "NZD": "新西兰元",
    "TWD": "新台币", "BRL": "雷亚尔", "MXN": "墨西哥比索", "SEK": "瑞典克朗", "NOK": "挪威克朗", "DKK": "丹麦克朗",
    "PLN": "兹罗提", "ETH": "以太币",
}  # fmt: skip
_UNITS = {
    "km/h": "公里每小时", "m/s": "米每秒", "kg": "公斤", "mg": "毫克", "g": "克", "km": "公里", "cm": "厘米", "mm": "毫米",
    "nm": "纳米", "m": "米",
    "ml": "毫升", "mL": "毫升", "L": "升", "kHz": "千赫", "MHz": "兆赫", "GHz": "吉赫", "Hz": "赫兹", "kWh": "千瓦时", "kW": "千瓦",
    "W": "瓦",
    "ms": "毫秒", "min": "分钟", "s": "秒", "h": "小时", "°C": "摄氏度", "℃": "摄氏度", "°F": "华氏度", "℉": "华氏度", "°": "度",
}  # fmt: skip
_SCALES = {
    "k": "千", "K": "千", "thousand": "千", "M": "百万", "m": "百万", "mn": "百万", "million": "百万", "bn": "十亿", "B": "十亿",
    "billion": "十亿", "T": "万亿", "trillion": "万亿",
}  # fmt: skip
_ADDRESS_WORDS = {
    "@": "艾特", ".": "点", "/": "斜杠", "-": "杠", "_": "下划线", "?": "问号", "=": "等于", "&": "和", "#": "井号", "%": "百分号",
    ":": "冒号",
}  # fmt: skip


def figures(text: str) -> str:
    """Addresses, dates and telephone numbers of a text as Mandarin words; what :data:`RULES` then read is free of them."""
    text = phones(addresses(text, _ADDRESS_WORDS), _phone)
    return hashtags(dates(text, lambda d: f"{d.year}年{d.month}月{d.day}日"), "").replace("@", "艾特")


def _phone(groups: str) -> str:
    words = "，".join(_digits(g) for g in groups.removeprefix("+").split())
    return f"加{words}" if groups[0] == "+" else words


def _digits(text: str) -> str:
    return "".join(_DIGITS[int(c)] for c in text)


def _money(sign: str, low: str, low_scale: str, high: str | None, high_scale: str | None) -> str:
    name = _MONEY[currency(sign)]
    first = f"{low}{_scale(low_scale)}"
    return (f"{first}{name}" if high is None else f"{first}到{high}{_scale(high_scale or '')}{name}").replace(",", "")


def _scale(written: str) -> str:
    word = written.strip()
    return _SCALES.get(word, word)


def _fraction(match: re.Match[str]) -> str:
    spaced, joined, top, bottom = match.groups()
    whole = spaced or joined
    if f"{top}/{bottom}" == "24/7" or int(bottom) == 0 or (len(bottom) == 4 and int(bottom) % 1000):
        return match.group()
    return f"{whole + '又' if whole else ''}{bottom}分之{top}"


def _roman(match: re.Match[str]) -> str:
    letters = match.group(1) or match.group(2)
    number = None if letters in ("XX", "XXX") else roman(letters)
    return match.group() if number is None else str(number)


def _about(match: re.Match[str]) -> str:
    before = match.string[: match.start()].rstrip()[-1:]
    return "" if before == "约" else match.group() if before.isdigit() or before == "%" else "约"


def _clock_zh(match: re.Match[str]) -> str:
    hour, minute, second, half = match.groups()
    words = ("" if not half else "上午" if half.lower() == "a" else "下午") + f"{int(hour)}点"
    if int(minute) or int(second or 0):
        words += f"{'零' if int(minute) < 10 else ''}{int(minute)}分" if int(minute) else "零分"
    return words + (f"{int(second)}秒" if int(second or 0) else "")


def _unit_zh(match: re.Match[str]) -> str:
    number, unit, power = match.groups()
    return f"{number}{'' if power is None else '平方' if power in '²2' else '立方'}{_UNITS[unit]}"


RULES: tuple[Rule, ...] = (
    (re.compile(r"〇"), "零"),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (CLOCK, _clock_zh),
    (MONEY_BEFORE, lambda m: _money(m[1], m[2], m[3], m[4], m[5])),
    (MONEY_AFTER, lambda m: _money(m[4], m[2], m[3], None, "") if m[1] is None else _money(m[4], m[1], "", m[2], m[3])),
    (re.compile(r"(?<=[元块角])/(?=[\u4e00-\u9fff])"), "每"),
    (re.compile(r"(?<![\d/])(?:(\d+) (?:又)?|(\d+)又)?(\d{1,3})/(\d{1,4})(?![\d/])"), _fraction),
    (re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,3})\b"), r"\1乘10^\2"),
    (re.compile(r"\bN[oO]\.\s?(?=\d)"), "第"),
    (re.compile(r"(?<=[\u4e00-\u9fff])([IVX]{2,})(?![A-Za-z])|(?<=第)([IVX])(?=[\u4e00-\u9fff])"), _roman),
    (re.compile(rf"(\d+(?:\.\d+)?)\s?({alternatives(_UNITS)})([²³23](?!\d))?(?![A-Za-z/])"), _unit_zh),
    (re.compile(r"(?<=\d)\s?-\s?(?=\d+\s?=)"), "减"),
    (re.compile(r"(?<=[年月日点分])\s?[-–—~～]+\s?(?=\d)"), "到"),
    (re.compile(r"(\d{4})\s?[-–—~～至到]+\s?(?=\d{4}年)"), lambda m: f"{_digits(m.group(1))}到"),
    (re.compile(r"(?<![A-Za-z0-9_.-])(\d+(?:\.\d+)?%?)\s?[-–—~～]+\s?(?=\d)"), r"\1到"),
    (re.compile(r"[~～]\s?(?=\d)"), _about),
    (re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d.]*\d)"), lambda m: m.group().replace(".", "点")),
    (re.compile(r"(\d+)[:：](\d+)"), r"\1比\2"),
    (re.compile(r"(?<![\d.])\d{8,}(?![\d.])"), lambda m: _digits(m.group())),
    (re.compile(r"(\d+(?:\.\d+)?)‰"), r"千分之\1"),
    (re.compile(r"#\s?(\d+)"), r"\1号"),
    (re.compile(r"\^2\b|²"), "的平方"),
    (re.compile(r"\^3\b|³"), "的立方"),
    (re.compile(r"\^([+-]?\w+)"), lambda m: f"的{m[1].replace('-', '负').replace('+', '')}次方"),
    (re.compile(r"√\s?"), "根号"),
    (re.compile(r"(?<=\d)\s?\+\s?(?=\d)"), "加"),
    (re.compile(r"(?<=[\u4e00-\u9fff])\s?[&＆]\s?|\s?[&＆]\s?(?=[\u4e00-\u9fff])"), "和"),
)  # fmt: skip
