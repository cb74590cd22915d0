"""Which licence a text is: by the sentences that only that licence has."""

import re
from collections.abc import Callable
from typing import TypeAlias

Test: TypeAlias = Callable[[str], bool]

TITLE_CHARACTERS = 600
"""The GNU and Mozilla licences name each other in their text, so their own name is looked for at the top."""

SPACE = re.compile(r"[\s*#>|=_]+")
QUOTES = str.maketrans("\u201c\u201d\u2018\u2019`", "\"\"'''")  # typographic ones


def has(*phrases: str) -> Test:
    """All phrases stand in the text."""
    return lambda text: all(phrase in text for phrase in phrases)


def lacks(*phrases: str) -> Test:
    """None of the phrases stands in the text."""
    return lambda text: not any(phrase in text for phrase in phrases)


def titled(*phrases: str) -> Test:
    """All phrases stand at the top."""
    return lambda text: all(phrase in text[:TITLE_CHARACTERS] for phrase in phrases)


MIT_GRANT = "permission is hereby granted, free of charge, to any person obtaining a copy"
BSD_GRANT = "redistribution and use in source and binary forms"
BSD_NAMES = re.compile(
    r"neither the name|may not be used to endorse or promote|names? of .{0,80} may not be used"
)
BSD_ADVERTISING = "all advertising materials mentioning"


def gnu(name: str, version: str) -> Test:
    """The text of a GNU licence, which begins with its name and version."""
    title = re.compile(rf"gnu {name}\D{{0,60}}version {re.escape(version)}\b(?!\.\d)")
    return lambda text: title.search(text[:TITLE_CHARACTERS]) is not None


RULES: tuple[tuple[str, tuple[Test, ...]], ...] = (
    ("AGPL-3.0", (gnu("affero general public license", "3"),)),
    ("LGPL-3.0", (gnu("lesser general public license", "3"),)),
    ("LGPL-2.1", (gnu("lesser general public license", "2.1"),)),
    ("GPL-3.0", (gnu("general public license", "3"),)),
    ("GPL-2.0", (gnu("general public license", "2"),)),
    ("MPL-2.0", (titled("mozilla public license", "2.0"),)),
    ("MPL-2.0", (has("mozilla public license, v. 2.0"), lacks("gnu general public license"))),
    ("EPL-2.0", (titled("eclipse public license", "2.0"),)),
    ("Apache-2.0", (has("apache license", "version 2.0"),)),
    ("PSF-2.0", (has("python software foundation license version 2"),)),
    ("PSF-2.0", (has("this license agreement is between the", "alone or in any derivative version"),)),
    ("MIT", (has(MIT_GRANT, "above copyright notice and this permission notice"),)),
    ("MIT-0", (has(MIT_GRANT), lacks("permission notice"))),
    ("BSD-4-Clause", (has(BSD_GRANT, BSD_ADVERTISING),)),
    (
        "BSD-3-Clause",
        (has(BSD_GRANT), lacks(BSD_ADVERTISING), lambda text: BSD_NAMES.search(text) is not None),
    ),
    ("BSD-2-Clause", (has(BSD_GRANT), lambda text: BSD_NAMES.search(text) is None)),
    (
        "ISC",
        (
            has(
                "permission to use, copy, modify, and",
                "distribute this software for any purpose with or without fee",
                "copyright notice and this permission notice",
            ),
        ),
    ),
    (
        "0BSD",
        (
            has(
                "permission to use, copy, modify, and",
                "distribute this software for any purpose with or without fee",
            ),
            lacks("this permission notice"),
        ),
    ),
    ("Unlicense", (has("this is free and unencumbered software released into the public domain"),)),
    (
        "Zlib",
        (
            has(
                "provided 'as-is', without any express or implied",
                "altered source versions must be plainly marked",
            ),
        ),
    ),
    ("BSL-1.0", (has("boost software license - version 1.0"),)),
    ("CC0-1.0", (titled("cc0 1.0"),)),
    (
        "MIT-CMU",
        (
            has(
                "permission to use, copy, modify",
                "distribute this software and its documentation for any purpose"
                " and without fee is hereby granted",
            ),
        ),
    ),
)


def recognise(text: str) -> tuple[str, ...]:
    """The SPDX ids of the licences in a text, none where it is no licence that is known here.

    A GNU licence comes as ``GPL-3.0`` and the like: whether a later version may be used is
    not said in its text.
    """
    plain = SPACE.sub(" ", text.translate(QUOTES)).lower()
    return tuple(dict.fromkeys(spdx_id for spdx_id, tests in RULES if all(test(plain) for test in tests)))
