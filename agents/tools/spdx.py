"""SPDX licence ids: what they allow, and expressions of them (https://spdx.org/licenses/)."""

import re
from typing import Literal, TypeAlias

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

Kind: TypeAlias = Literal["permissive", "copyleft", "unknown"]

COPYLEFT = re.compile(
    r"^(AGPL|LGPL|GPL|MPL|EPL|EUPL|CDDL|CECILL|OSL|MS-RL|SSPL|CPL|IPL|QPL|Sleepycat|CC-BY-SA)(-|$)"
)
PERMISSIVE = re.compile(
    r"^(MIT|MIT-.+|X11|BSD-.+|0BSD|Apache-(1|2)\.\d|ISC|PSF-2\.0|Python-2\.0(\.1)?|CNRI-Python|Unlicense|Zlib"
    r"|zlib-acknowledgement|BSL-1\.0|HPND(-.+)?|NCSA|CC0-1\.0|CC-BY-[34]\.0|WTFPL|ZPL-.+|AFL-.+|Artistic-2\.0"
    r"|Unicode-.+|OFL-1\.1|PostgreSQL|curl|OpenSSL|FTL|libpng(-2\.0)?|BlueOak-1\.0\.0|UPL-1\.0|MulanPSL-2\.0)$"
)

WORD = re.compile(r"\(|\)|[^\s()]+")


def canonical(expression: str) -> str | None:
    """The SPDX expression in its canonical form, or None where it is none."""
    try:
        return str(canonicalize_license_expression(expression.strip()))
    except InvalidLicenseExpression:
        return None


def ids(expression: str) -> frozenset[str]:
    """The licence ids in a canonical expression, without exceptions and operators."""
    found: list[str] = []
    after_with = False
    for word in WORD.findall(expression):
        if word not in ("(", ")", "AND", "OR", "WITH") and not after_with:
            found.append(word)
        after_with = word == "WITH"
    return frozenset(found)


def kind_of_id(spdx_id: str) -> Kind:
    """What one licence is. Weak copyleft such as the LGPL or the MPL counts as copyleft."""
    if COPYLEFT.match(spdx_id := spdx_id.rstrip("+")):
        return "copyleft"
    return "permissive" if PERMISSIVE.match(spdx_id) else "unknown"


def kind_of(expression: str) -> Kind:
    """What a canonical expression is: of alternatives the freest, of licences together the strictest."""
    words = WORD.findall(expression)[::-1]

    def either() -> Kind:
        kinds = [both()]
        while words and words[-1] == "OR":
            words.pop()
            kinds.append(both())
        return next(kind for kind in ("permissive", "unknown", "copyleft") if kind in kinds)

    def both() -> Kind:
        kinds = [one()]
        while words and words[-1] == "AND":
            words.pop()
            kinds.append(one())
        return next(kind for kind in ("copyleft", "unknown", "permissive") if kind in kinds)

    def one() -> Kind:
        word = words.pop()
        if word == "(":
            kind = either()
            words.pop()
            return kind
        if words and words[-1] == "WITH":
            del words[-2:]
        return kind_of_id(word)

    return either()


def family(spdx_id: str) -> str:
    """The licence without version details: what two sources must agree on not to contradict each other."""
    name = spdx_id.upper().rstrip("+")
    for start in ("AGPL", "LGPL", "GPL", "BSD", "APACHE", "MPL", "PSF"):
        if name == start or name.startswith(f"{start}-"):
            return start
    return {"0BSD": "BSD", "PYTHON-2.0": "PSF", "CNRI-PYTHON": "PSF", "MIT-CMU": "HPND"}.get(name, name)
