"""How English reads what is written: money, units, dates, ranges, signs, numerals, abbreviations.

Owns the tables and rules of English. Must not know engines.
"""

from __future__ import annotations

import re

from replay.speech_addresses import addresses, hashtags
from replay.speech_figures import CLOCK, MONEY_AFTER, MONEY_BEFORE, NUMBER, Date, Rule, alternatives, currency, dates, phones, roman

_MONTHS = "January February March April May June July August September October November December".split()
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
    "hr": ("hour", "hours"), "hrs": ("hour", "hours"), "mins": ("minute", "minutes"), "sec": ("second", "seconds"),
    "secs": ("second", "seconds"),
    "kbps": ("kilobit per second", "kilobits per second"), "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"), "PB": ("petabyte", "petabytes"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"), "dpi": ("dot per inch", "dots per inch"), "dB": ("decibel", "decibels"),
    "Ω": ("ohm", "ohms"), "kΩ": ("kiloohm", "kiloohms"), "MΩ": ("megaohm", "megaohms"), "µF": ("microfarad", "microfarads"),
    "μF": ("microfarad", "microfarads"), "nF": ("nanofarad", "nanofarads"), "pF": ("picofarad", "picofarads"),
    "µs": ("microsecond", "microseconds"), "μs": ("microsecond", "microseconds"), "ns": ("nanosecond", "nanoseconds"),
    "µg": ("microgram", "micrograms"), "μg": ("microgram", "micrograms"), "Pa": ("pascal", "pascals"),
    "hPa": ("hectopascal", "hectopascals"),
    "kPa": ("kilopascal", "kilopascals"), "MPa": ("megapascal", "megapascals"), "kJ": ("kilojoule", "kilojoules"),
    "kcal": ("kilocalorie", "kilocalories"), "mAh": ("milliamp hour", "milliamp hours"), "mA": ("milliamp", "milliamps"),
    "kV": ("kilovolt", "kilovolts"), "mV": ("millivolt", "millivolts"), "mW": ("milliwatt", "milliwatts"), "TW": ("terawatt", "terawatts"),
    "TWh": ("terawatt hour", "terawatt hours"), "GWh": ("gigawatt hour", "gigawatt hours"), "MWh": ("megawatt hour", "megawatt hours"),
    "yd": ("yard", "yards"), "mi": ("mile", "miles"), "ha": ("hectare", "hectares"), "cl": ("centiliter", "centiliters"),
}  # fmt: skip
_SPACED_UNITS = {"s": ("second", "seconds")}
"""Units that are read as such only behind a space: '1990s' is something else."""
_MONEY = {
    "$": ("dollar", "dollars", "cent", "cents"), "€": ("euro", "euros", "cent", "cents"), "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""), "₹": ("rupee", "rupees", "paisa", "paise"), "₩": ("won", "won", "", ""),
    "₽": ("ruble", "rubles", "kopek", "kopeks"), "₿": ("bitcoin", "bitcoins", "", ""), "₺": ("lira", "lira", "kurush", "kurush"),
    "₫": ("dong", "dong", "", ""), "₱": ("peso", "pesos", "centavo", "centavos"), "₦": ("naira", "naira", "kobo", "kobo"),
    "₪": ("shekel", "shekels", "agora", "agorot"), "฿": ("baht", "baht", "satang", "satang"), "₴": ("hryvnia", "hryvnias", "", ""),
    "¢": ("cent", "cents", "", ""), "USD": ("US dollar", "US dollars", "cent", "cents"), "EUR": ("euro", "euros", "cent", "cents"),
    "GBP": ("pound", "pounds", "penny", "pence"), "JPY": ("yen", "yen", "", ""), "CNY": ("yuan", "yuan", "", ""),
    "INR": ("rupee", "rupees", "paisa", "paise"), "CHF": ("Swiss franc", "Swiss francs", "", ""), "KRW": ("won", "won", "", ""),
    "RUB": ("ruble", "rubles", "kopek", "kopeks"), "CAD": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "AUD": ("Australian dollar", "Australian dollars", "cent", "cents"), "HKD": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "SGD": ("Singapore dollar", "Singapore dollars", "cent", "cents"), "NZD": ("New Zealand dollar",
    "New Zealand dollars", "cent", "cents"),
    "TWD": ("Taiwan dollar", "Taiwan dollars", "cent", "cents"), "BRL": ("real", "reais", "centavo", "centavos"),
    "MXN": ("Mexican peso", "Mexican pesos", "centavo", "centavos"), "SEK": ("krona", "kronor", "", ""), "NOK": ("krone", "kroner", "", ""),
    "DKK": ("krone", "kroner", "", ""), "PLN": ("zloty", "zloty", "", ""), "TRY": ("lira", "lira", "", ""),
    "BTC": ("bitcoin", "bitcoins", "", ""), "ETH": ("ether", "ether", "", ""),
}  # fmt: skip
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
    "i.e.": "that is", "Ph.D.": "P H D", "PhD": "P H D", "PhDs": "P H D's", "w/o": "without",
    "a.k.a.": "also known as", "Dept.": "Department",
    "Gen.": "General", "Capt.": "Captain", "Lt.": "Lieutenant", "Sgt.": "Sergeant", "Rev.": "Reverend", "Gov.": "Governor",
    "Sen.": "Senator",
}  # fmt: skip
_BEFORE_NUMBER = {"No.": "number", "no.": "number", "Nos.": "numbers", "Fig.": "figure", "fig.": "figure", "Eq.": "equation",
    "p.": "page",
                  "pp.": "pages", "vol.": "volume", "Vol.": "volume", "ch.": "chapter", "Ch.": "chapter", "sec.": "section"}  # fmt: skip
_FRACTIONS = {"1/2": "one half", "1/4": "one quarter", "3/4": "three quarters", "24/7": "24 7", "9/11": "9 11", "50/50": "50 50"}
_PARTS = {
    2: ("half", "halves"), 3: ("third", "thirds"), 4: ("quarter", "quarters"), 5: ("fifth", "fifths"), 6: ("sixth", "sixths"),
    7: ("seventh", "sevenths"), 8: ("eighth", "eighths"), 9: ("ninth", "ninths"), 10: ("tenth", "tenths"), 12: ("twelfth", "twelfths"),
    16: ("sixteenth", "sixteenths"), 20: ("twentieth", "twentieths"), 32: ("thirty-second", "thirty-seconds"),
    100: ("hundredth", "hundredths"),
}  # fmt: skip
_TOPS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NUMBERED = "Chapter|Part|Act|Volume|Section|War|Book|Phase|Stage|Type|Level|Article|Appendix|Figure|Scene|Title|Tier|Class|Mark"
_SELDOM_LETTERED = frozenset(("Chapter", "Act", "Volume", "War", "Article", "Type"))
_REIGNED = (
    "King|Queen|Pope|Emperor|Tsar|Czar|Sultan|Louis|Henry|Charles|George|Edward|James|William|Elizabeth|Mary|Philip|Richard|John|Paul|Pius|"
    "Benedict|Leo|Gregory|Innocent|Clement|Alexander|Nicholas|Catherine|Peter|Ivan|Frederick|Wilhelm|Napoleon|Francis|Ferdinand|Alfonso|"
    "Victor|Emmanuel|Ramses|Ramesses|Ptolemy|Cleopatra|Thutmose|Amenhotep|Haakon|Harald|Christian|Gustav|Carl|Carlos|Felipe|Otto|Rudolf|"
    "Leopold|Joseph|Maximilian|Murad|Selim|Mehmed|Darius|Edmund|Robert|Umberto|Margrethe|Olav|Juan"
)
_AFTER_RULER = r"(?![\w'.]\w|')"
_NO_NUMERALS = frozenset(("XX", "XXX", "XL", "XXL", "LI", "LIV", "IL", "LL"))
"""Letters that are more often a size, a chromosome or a name."""
_ADDRESS_WORDS = {
    "@": "at", ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "?": "question mark", "=": "equals", "&": "and", "#": "hash",
    "%": "percent", "+": "plus", ":": "colon", "~": "tilde",
}  # fmt: skip


def figures(text: str) -> str:
    """Addresses, dates and telephone numbers of a text as English words; what :data:`RULES` then read is free of them."""
    text = phones(addresses(text, _ADDRESS_WORDS), _digits)
    return hashtags(dates(text, _date), "hashtag")


def _digits(groups: str) -> str:
    words = ", ".join(" ".join(g) for g in groups.removeprefix("+").split())
    return f"plus {words}" if groups[0] == "+" else words


def _date(date: Date) -> str:
    return f"{_MONTHS[date.month - 1]} {date.day}, {date.year}"


def _clock_en(match: re.Match[str]) -> str:
    hour, minute, second, half = match.groups()
    words = str(int(hour)) if int(minute) or int(second or 0) or half else f"{int(hour)} o'clock"
    if int(minute):
        words += f" {int(minute)}" if int(minute) > 9 else f" oh {int(minute)}"
    if second and int(second):
        words += f" and {int(second)} second{'' if int(second) == 1 else 's'}"
    return words + (f" {half.lower()}.m." if half else "") + " "


def _money_before(match: re.Match[str]) -> str:
    sign, low, low_scale, high, high_scale = match.groups()
    return _money(sign, low, low_scale, high, high_scale)


def _money_after(match: re.Match[str]) -> str:
    low, high, scale, sign = match.groups()
    return _money(sign, high, scale, None, "") if low is None else _money(sign, low, "", high, scale)


def _money(sign: str, low: str, low_scale: str, high: str | None, high_scale: str | None) -> str:
    """One amount, or a range of two."""
    if high is None:
        return _amount(low, low_scale, sign)
    name = _MONEY[currency(sign)][1]
    return f"{low}{_scale(low_scale)} to {high}{_scale(high_scale or '')} {name}"


def _scale(written: str) -> str:
    word = written.strip()
    return f" {_SCALES.get(word, word)}" if word else ""


def _amount(number: str, scale: str, sign: str) -> str:
    one, many, cent, cents = _MONEY[currency(sign)]
    whole, _, part = number.partition(".")
    if scale.strip():
        return f"{number}{_scale(scale)} {many}"
    words = f"{whole} {one if whole == '1' else many}"
    if not part.strip("0"):
        return words
    if len(part) != 2 or not cents:
        return f"{number} {many}"
    small = f"{int(part)} {cent if int(part) == 1 else cents}"
    return small if whole == "0" else f"{words} and {small}"


def _unit(match: re.Match[str]) -> str:
    number, unit, power = match.groups()
    one, many = (_UNITS | _SPACED_UNITS)[unit]
    name = one if number == "1" else many
    if "/" in unit:
        return f"{number} {name}{ {None: '', '²': ' squared', '2': ' squared', '³': ' cubed', '3': ' cubed'}[power] }"
    return f"{number} { {None: '', '²': 'square ', '2': 'square ', '³': 'cubic ', '3': 'cubic '}[power] }{name}"


def _fraction(match: re.Match[str]) -> str:
    whole, top, bottom = match.groups()
    if len(bottom) == 4 and int(bottom) % 1000:  # a month and its year
        return match.group()
    name = _FRACTIONS.get(f"{top}/{bottom}") or _part(int(top), int(bottom)) or f"{top} over {bottom}"
    if whole:
        return f"{whole} and {re.sub('^one ', 'a ', name)}"
    return name


def _part(top: int, bottom: int) -> str | None:
    if bottom not in _PARTS or not 0 < top < bottom:
        return None
    return f"{_TOPS[top] if top < len(_TOPS) else top} {_PARTS[bottom][top > 1]}"


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _counted(match: re.Match[str]) -> str:
    """A numeral behind a word that is counted. A single letter is one only behind words that seldom have letters: not in 'Appendix C'."""
    word, letters = match.groups()
    if len(letters) == 1 and word not in _SELDOM_LETTERED:
        return match.group()
    return f"{word} {roman(letters) or letters}"


def _ruler(match: re.Match[str]) -> str:
    number = roman(match.group(2))
    return match.group() if number is None else f"{match.group(1)} the {_ordinal(number)}"


def _named(match: re.Match[str]) -> str:
    """A numeral of two letters and more behind a name: 'Apollo XI'."""
    number = None if match.group(2) in _NO_NUMERALS else roman(match.group(2))
    return match.group() if number is None else f"{match.group(1)} {number}"


def _century(match: re.Match[str]) -> str:
    number = roman(match.group(1))
    return match.group() if number is None else f"{_ordinal(number)} {match.group(2)}"


def _powered(match: re.Match[str]) -> str:
    return f" to the power of {match.group(1).replace('-', 'minus ').replace('+', '')}"


def _range_en(match: re.Match[str]) -> str:
    """From a smaller to a larger number; the other way round it is a score or a model ('3-2', '747-400')."""
    low, high = (float(g.replace(",", "").rstrip("%.")) for g in match.groups())
    if re.fullmatch(r"\d{3}-\d{4}", match.group()) and (low % 5 or high % 5):  # a telephone number
        return match.group()
    return f"{match.group(1)} to {match.group(2)}" if low < high else match.group()


def _short_en(match: re.Match[str]) -> str:
    return _SHORT[match.group()]


RULES: tuple[Rule, ...] = (
    (re.compile(r"\b(0?[1-9]|1[0-2])\.([0-5]\d)(?=\s?[ap]\.?m\b)", re.IGNORECASE), r"\1:\2"),
    (CLOCK, _clock_en),
    (re.compile(r"\b(1[0-2]|[1-9])\s?([ap])\.?m\b\.?", re.IGNORECASE), lambda m: f"{m.group(1)} {m.group(2).lower()}.m."),
    (MONEY_BEFORE, _money_before),
    (MONEY_AFTER, _money_after),
    (re.compile(r"¢\s?(\d+)"), r"\1 cents"),
    (re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,3})\b"), r"\1 times 10^\2"),
    (re.compile(r"\b(\d)'(\d{1,2})\""), lambda m: f"{m[1]} {'foot' if m[1] == '1' else 'feet'} {m[2]} inch{'' if m[2] == '1' else 'es'}"),
    (re.compile(rf"\b({_NUMBERED})\s+(X{{0,3}}(?:IX|IV|V?I{{1,3}}|V|(?<=X)))(?![\w'])"), _counted),
    (re.compile(r"\bWW(II?)\b"), lambda m: f"World War {len(m[1])}"),
    (re.compile(r"\b([IVXL]+)(?:th)?\s+(centur(?:y|ies))\b"), _century),
    (re.compile(rf"\b((?:King|Queen|Pope|Emperor|Tsar|Czar|Sultan)(?: [A-Z][a-z]+){{1,2}}) ([IVXL]+){_AFTER_RULER}"), _ruler),
    (re.compile(rf"\b({_REIGNED}) ([IVXL]{{2,}}){_AFTER_RULER}"), _ruler),
    (re.compile(r"\b([A-Z][a-z]+|Bowl)\s+([IVXL]{2,})(?![\w'])"), _named),
    (re.compile(r"(?<![\d/])(?:(\d+)\s+)?(\d{1,3})/(\d{1,4})(?![\d/])"), _fraction),
    (re.compile(rf"({NUMBER})\s?({alternatives(_UNITS)})([²³23](?!\d))?(?![\w/°])"), _unit),
    (re.compile(rf"({NUMBER})\s({alternatives(_SPACED_UNITS)})([²³])?(?![\w/'])"), _unit),
    (re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d+)?)(k|M|bn|B)\b"), lambda m: f"{m.group(1)} {_SCALES[m.group(2)]}"),
    (re.compile(r"(\d{2,}(?:\.\d+)?)K\b"), r"\1 thousand"),
    (re.compile(r"\b([248])K\b"), r"\1 K"),
    (re.compile(r"(\d+)\s?x\s?(?=\d)|(\d{3,})\s?×\s?(?=\d{3,})"), lambda m: f"{m.group(1) or m.group(2)} by "),
    (re.compile(rf"({NUMBER})[x×](?=\s|$)"), r"\1 times"),
    (re.compile(r"(?<![\w.])v?\d+(?:\.\d+){2,}(?![\w.]*\d)"), lambda m: m.group().replace(".", " point ")),
    (re.compile(r"\bSt\.(?!\s+[A-Z])"), "Street"),
    (re.compile(r"(\d+):(\d+)"), r"\1 to \2"),
    (re.compile(r"(?<![\d.,])\d{9,}(?![\d.,]*\d)"), lambda m: " ".join(m.group())),
    (re.compile(r"(?<![\w.-])(\d[\d,.]*%?)\s?[–—]\s?(?=\d)"), r"\1 to "),
    (re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?%?)-(\d[\d,]*(?:\.\d+)?%?)(?![\w.,]*-?\d|-)"), _range_en),
    (re.compile(r"(?<=[\w)])\s+-\s+(?=\d)"), " minus "),
    (re.compile(r"(?:(?<=\s)|^)-(?=\d)"), "minus "),
    (re.compile(r"\b([a-z]{2,3})(?=²|\^2)"), lambda m: " ".join(m.group(1))),
    (re.compile(r"\^2\b|²"), " squared"),
    (re.compile(r"\^3\b|³"), " cubed"),
    (re.compile(r"\^\{?([+-]?\w+)\}?"), _powered),
    (re.compile(r"(?<![\w~])[~～∼]\s?(?=[\d.])"), "about "),
    (re.compile(r"(?<=\d)\*(?=\d)"), " times "),
    (re.compile(r"\b([CFDGA])#(?![\w])"), r"\1 sharp"),
    (re.compile(r"√\s?"), " the square root of "),
    (re.compile(r"#\s?(?=\d)"), " number "),
    (re.compile(rf"({alternatives(_BEFORE_NUMBER)})\s?(?=\d)"), lambda m: f"{_BEFORE_NUMBER[m.group(1)]} "),
    (
        re.compile(r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?(?=\s\d)"),
        lambda m: next(name for name in _MONTHS if name.startswith(m.group(1)[:3])),
    ),
    (re.compile(rf"(?<![\w.])(?:{alternatives(_SHORT)})(?![\w.])"), _short_en),
    (re.compile(r"(?<=[A-Za-z])\s?\+\s?(?=[A-Za-z0-9](?!\+))"), " plus "),
    (re.compile(r"(?<=[\d)])\s?\+\s?(?=\w)"), " plus "),
    (re.compile(r"(?<=\d)\+"), " plus"),
    (re.compile(r"(?<=[A-Za-z])/(?=[A-Za-z])"), " "),
    (re.compile(r"(?<=\d)/(?=\d)"), " "),
)  # fmt: skip
