"""Licences as SPDX names: how people write them, what they are called, where their text is.

Reads and writes nothing. A licence that is not in the list keeps a name of the form ``LicenseRef-...``; none at all is ``NOASSERTION``.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CC = {
    "CC-BY": ("Attribution", "by", "2.0 2.5 3.0 4.0"),
    "CC-BY-SA": ("Attribution-ShareAlike", "by-sa", "2.0 2.5 3.0 4.0"),
    "CC-BY-NC": ("Attribution-NonCommercial", "by-nc", "2.0 2.5 3.0 4.0"),
    "CC-BY-NC-SA": ("Attribution-NonCommercial-ShareAlike", "by-nc-sa", "2.0 2.5 3.0 4.0"),
    "CC-BY-ND": ("Attribution-NoDerivatives", "by-nd", "2.0 2.5 3.0 4.0"),
    "CC-BY-NC-ND": ("Attribution-NonCommercial-NoDerivatives", "by-nc-nd", "2.0 2.5 3.0 4.0"),
}

TEXTS: dict[str, tuple[str, str]] = {
    **{
        f"{name}-{number}": (f"Creative Commons {words} {number}", f"https://creativecommons.org/licenses/{path}/{number}/legalcode")
        for name, (words, path, numbers) in _CC.items()
        for number in numbers.split()
    },
    "CC0-1.0": ("Creative Commons Zero 1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/legalcode"),
    "CC-PDDC": ("Creative Commons Public Domain Dedication and Certification", "https://creativecommons.org/licenses/publicdomain/"),
    "PDDL-1.0": ("Open Data Commons Public Domain Dedication and License 1.0", "https://opendatacommons.org/licenses/pddl/1-0/"),
    "ODC-By-1.0": ("Open Data Commons Attribution License 1.0", "https://opendatacommons.org/licenses/by/1-0/"),
    "MIT": ("MIT License", "https://opensource.org/license/mit"),
    "Apache-2.0": ("Apache License 2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    "GFDL-1.3-or-later": ("GNU Free Documentation License 1.3 or later", "https://www.gnu.org/licenses/fdl-1.3.html"),
}
"""SPDX id to the licence's name and the address of its text."""

NONE = "NOASSERTION"
"""SPDX's word for a licence that nobody stated."""

_UNSTATED = frozenset({"", "unknown", "none", "noassertion", "unspecified", "n/a"})
_BY_SQUEEZED = {re.sub(r"[^a-z0-9]+", "", name.lower()): name for name in TEXTS}
_BY_SQUEEZED |= {
    "cc0": "CC0-1.0",
    "apache2": "Apache-2.0",
    "mitlicense": "MIT",
    "publicdomain": "CC-PDDC",
    "odcby": "ODC-By-1.0",
    "pddl": "PDDL-1.0",
}
_WORDS = (
    ("creativecommons", "cc"),
    ("attribution", "by"),
    ("noncommercial", "nc"),
    ("sharealike", "sa"),
    ("noderivatives", "nd"),
    ("noderivs", "nd"),
    ("international", ""),
    ("unported", ""),
)


@lru_cache(maxsize=4096)
def spdx(given: str) -> str:
    """The SPDX name of a licence as somebody wrote it: ``cc by 4.0`` is ``CC-BY-4.0``."""
    if given.strip().lower() in _UNSTATED:
        return NONE
    squeezed = re.sub(r"[^a-z0-9]+", "", given.lower())
    plain = squeezed
    for word, short in _WORDS:
        plain = plain.replace(word, short)
    found = _BY_SQUEEZED.get(squeezed) or _BY_SQUEEZED.get(plain) or _BY_SQUEEZED.get(plain.removesuffix("license").removesuffix("licence"))
    return found or "LicenseRef-" + (re.sub(r"[^A-Za-z0-9.]+", "-", given).strip("-.")[:80] or "other")


def licence_file(name: str) -> tuple[str, str]:
    """File name and text for ``LICENSES/`` of one SPDX name: what it is called and where the text is; the text itself is not copied."""
    if name == NONE:
        text = "Nobody stated a licence for the sources of these rows. Ask their owners before you pass anything of them on.\n"
    elif name in TEXTS:
        title, address = TEXTS[name]
        text = f"{title}\nSPDX-License-Identifier: {name}\n\nText of the licence: {address}\n"
    else:
        text = f"A licence that has no SPDX name here, as the owner of the sources wrote it: {name.removeprefix('LicenseRef-')}\n"
    return f"LICENSES/{name}.txt", text
