"""Licence evidence of a package, and the verdict that it allows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from agents.tools.licence_text import recognise
from agents.tools.spdx import Kind, canonical, family, ids, kind_of, kind_of_id

Verdict: TypeAlias = Kind | Literal["contradictory"]

CLASSIFIERS: Mapping[str, str] = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "BSD License": "BSD",
    "Apache Software License": "Apache",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "CNRI Python License": "CNRI-Python",
    "Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU General Public License (GPL)": "GPL",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "Eclipse Public License 1.0 (EPL-1.0)": "EPL-1.0",
    "Eclipse Public License 2.0 (EPL-2.0)": "EPL-2.0",
    "European Union Public Licence 1.2 (EUPL 1.2)": "EUPL-1.2",
    "The Unlicense (Unlicense)": "Unlicense",
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": "CC0-1.0",
    "zlib/libpng License": "Zlib",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "Historical Permission Notice and Disclaimer (HPND)": "HPND",
    "CMU License (MIT-CMU)": "MIT-CMU",
    "University of Illinois/NCSA Open Source License": "NCSA",
    "PostgreSQL License": "PostgreSQL",
    "Universal Permissive License (UPL)": "UPL-1.0",
    "Zope Public License": "ZPL-2.1",
}
"""Licence classifiers (https://pypi.org/classifiers/) as SPDX ids, as a family where the version is open."""

SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), label)
    for pattern, label in (
        (r"(mit|expat)", "MIT"),
        (r"apache (software )?v?2(\.0)?|asl ?2(\.0)?|apache version 2(\.0)?|apache2(\.0)?", "Apache-2.0"),
        (r"apache( software)?", "Apache"),
        (r"(new |modified |revised )bsd|bsd 3 clause|3 clause bsd|bsd3", "BSD-3-Clause"),
        (r"simplified bsd|bsd 2 clause|2 clause bsd|bsd2", "BSD-2-Clause"),
        (r"bsd( style| like)?", "BSD"),
        (r"isc( iscl)?", "ISC"),
        (r"(psf|psfl|python software foundation|python)( v?2(\.0)?)?", "PSF-2.0"),
        (r"(mozilla public |mpl ?v?)v?2(\.0)?( mpl)?", "MPL-2.0"),
        (r"(gnu )?agpl ?v?3(\.0)?", "AGPL-3.0"),
        (r"(gnu )?agpl", "AGPL"),
        (r"(gnu )?lgpl ?v?3(\.0)?", "LGPL-3.0"),
        (r"(gnu )?lgpl ?v?2\.1", "LGPL-2.1"),
        (r"(gnu )?lgpl.*|gnu (library or )?lesser general public.*", "LGPL"),
        (r"(gnu )?gpl ?v?3(\.0)?", "GPL-3.0"),
        (r"(gnu )?gpl ?v?2(\.0)?", "GPL-2.0"),
        (r"(gnu )?gpl.*|gnu general public.*", "GPL"),
        (r"unlicense", "Unlicense"),
        (r"zlib( libpng)?", "Zlib"),
        (r"hpnd", "HPND"),
        (r"0bsd", "0BSD"),
        (r"public domain", "Public-Domain"),
    )
)
"""What people write in the field ``License``, without case, punctuation and the word "licence"."""

FAMILIES = frozenset({"BSD", "Apache", "GPL", "LGPL", "AGPL", "Public-Domain"})
"""Labels that name a licence without its version, so that they are no SPDX id."""

FULL_TEXT = 200
"""Characters from which on a field ``License`` holds the text of the licence, not its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a distribution says of its licence.

    Attributes:
        expression: The field ``License-Expression``, or None.
        field: The field ``License`` as it stands, or None.
        classifiers: Licence classifiers, without ``License ::`` and ``OSI Approved ::``.
        files: The licences recognised in each licence file, by path.
    """

    expression: str | None = None
    field: str | None = None
    classifiers: Sequence[str] = ()
    files: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the evidence amounts to.

    Attributes:
        spdx: The licence as an SPDX expression, or None where it cannot be told.
        why: The evidence in one sentence.
    """

    spdx: str | None
    verdict: Verdict
    why: str


def judge(evidence: Evidence) -> Finding:
    """The licence and the verdict that the evidence allows."""
    expression = canonical(evidence.expression or "") or canonical(evidence.field or "")
    from_field = ids(expression) if expression else labels_of_field(evidence.field)
    from_classifiers = labels_of_classifiers(evidence.classifiers)
    texts = [label for labels in evidence.files.values() for label in labels]
    if is_full_text(evidence.field):
        texts += recognise(evidence.field or "")
    from_texts = frozenset(texts)
    quarrel = contradiction(
        {"the metadata": from_field, "the classifiers": from_classifiers, "the licence texts": from_texts}
    )
    if quarrel:
        return Finding(spdx=None, verdict="contradictory", why=quarrel)
    if expression:
        return Finding(spdx=expression, verdict=kind_of(expression), why=f"the metadata say {expression}")
    declared = from_field | from_classifiers
    if declared:
        return _from_labels(declared, from_texts, "the metadata say")
    if from_texts:
        return _from_labels(from_texts, frozenset(), "only the licence texts say")
    said = f"; the field License says {evidence.field[:60]!r}" if evidence.field else ""
    return Finding(spdx=None, verdict="unknown", why=f"no licence that is known is named anywhere{said}")


def is_full_text(field: str | None) -> bool:
    """The field ``License`` holds the text of a licence, not its name."""
    return field is not None and (len(field) > FULL_TEXT or "\n" in field.strip())


def labels_of_classifiers(classifiers: Iterable[str]) -> frozenset[str]:
    """SPDX ids, or families, of licence classifiers; those that name no licence are left out."""
    return frozenset(CLASSIFIERS[name] for name in classifiers if name in CLASSIFIERS)


def labels_of_field(field: str | None) -> frozenset[str]:
    """The SPDX id, or the family, that the field ``License`` names; of a full text the first line counts."""
    lines = (field or "").strip().splitlines()
    if not lines:
        return frozenset()
    name = re.sub(r"\b(the|licen[cs]ed?|version|terms?)\b|[^a-z0-9.]+", " ", lines[0].lower())
    name = " ".join(dict.fromkeys(name.split())).strip(". ")  # "MIT License (MIT)" says it twice
    for pattern, label in SPELLINGS:
        if pattern.fullmatch(name):
            return frozenset({label})
    return frozenset()


def contradiction(sources: Mapping[str, frozenset[str]]) -> str:
    """The first two sources that name no licence in common, in words; empty where all agree."""
    speaking = [(name, labels) for name, labels in sources.items() if labels]
    for (name, labels), (other, others) in combinations(speaking, 2):
        if not {family(label) for label in labels} & {family(label) for label in others}:
            return f"{name} say {listed(labels)}, {other} say {listed(others)}"
    return ""


def _from_labels(labels: frozenset[str], details: frozenset[str], who: str) -> Finding:
    """The finding where licences are named without an expression; *details* can tell a family's version."""
    exact = {spdx_id for label in labels for spdx_id in _exact(label, labels | details)}
    kinds = {kind_of_id(label) if label not in FAMILIES else _kind_of_family(label) for label in labels}
    why = f"{who} {listed(labels)}"
    families = {family(label) for label in labels}
    if len(families) == 1:
        spdx = next(iter(exact)) if len(exact) == 1 else None
        return Finding(spdx=spdx if spdx and canonical(spdx) else None, verdict=next(iter(kinds)), why=why)
    if kinds == {"permissive"}:
        return Finding(spdx=None, verdict="permissive", why=f"{why}, without saying which applies")
    if "copyleft" in kinds and "permissive" in kinds:
        return Finding(spdx=None, verdict="contradictory", why=f"{why}, without saying which applies")
    return Finding(spdx=None, verdict="copyleft" if kinds == {"copyleft"} else "unknown", why=why)


def _exact(label: str, known: frozenset[str]) -> frozenset[str]:
    """The SPDX ids that a label can mean, by what else is known."""
    if label not in FAMILIES:
        later = frozenset(other for other in known if other in (f"{label}-only", f"{label}-or-later"))
        return later or frozenset({label} if not re.fullmatch(r"A?L?GPL-\d\.\d", label) else ())
    return frozenset(other for other in known if other not in FAMILIES and family(other) == family(label))


def _kind_of_family(label: str) -> Kind:
    return "copyleft" if label.endswith("GPL") else "permissive"


def listed(labels: Iterable[str]) -> str:
    """Labels for a sentence; a family is left out where one of it is named exactly."""
    named = set(labels)
    exact = {family(label) for label in named - FAMILIES}
    return " and ".join(
        sorted(label for label in named if label not in FAMILIES or family(label) not in exact)
    )
