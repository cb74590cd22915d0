"""Licence evidence: what texts, fields and classifiers say, and the verdict on them."""

import importlib.metadata
from collections.abc import Mapping, Sequence

import pytest
from packaging.utils import canonicalize_name

from agents.tools.distributions import distribution_metadata, licence_files, list_distributions
from agents.tools.licence_text import recognise
from agents.tools.licences import Evidence, judge, labels_of_field
from agents.tools.spdx import canonical, kind_of

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy
of this software ... The above copyright notice and this permission notice shall be included"""
BSD_2 = "Redistribution and use in source and binary forms, with or without modification, are permitted"
BSD_3 = f"{BSD_2} ... Neither the name of the copyright holder nor the names of its contributors may be used"
APACHE = "                 Apache License\n           Version 2.0, January 2004"
GPL_3 = (
    """                    GNU GENERAL PUBLIC LICENSE
                       Version 3, 29 June 2007 """
    + "x" * 1_000
    + "GNU Affero General Public License, version 3"
)
ISC = """Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice and this permission notice"""
LGPL_3 = "  GNU LESSER GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007"
LGPL_21 = "  GNU LESSER GENERAL PUBLIC LICENSE\n  Version 2.1, February 1999"


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        (MIT, ["MIT"]),
        (MIT.replace(" ", "\n * "), ["MIT"]),
        (MIT.partition("...")[0], ["MIT-0"]),
        (BSD_2, ["BSD-2-Clause"]),
        (BSD_3, ["BSD-3-Clause"]),
        (APACHE, ["Apache-2.0"]),
        (GPL_3, ["GPL-3.0"]),
        (LGPL_3, ["LGPL-3.0"]),
        (LGPL_21, ["LGPL-2.1"]),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19 November 2007", ["AGPL-3.0"]),
        ("Mozilla Public License Version 2.0\n====", ["MPL-2.0"]),
        ("subject to the terms of the Mozilla Public License, v. 2.0.", ["MPL-2.0"]),
        (f"{MIT}\n\n{APACHE}", ["Apache-2.0", "MIT"]),
        (ISC, ["ISC"]),
        ("This is free and unencumbered software released into the public domain.", ["Unlicense"]),
        ("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", ["PSF-2.0"]),
        ("Written by A. U. Thor and others", []),
        ("", []),
    ],
)
def test_licence_texts(text: str, spdx: list[str]) -> None:
    """Recognised by their own sentences, however they are wrapped or indented."""
    assert list(recognise(text)) == spdx


@pytest.mark.parametrize(
    ("field", "labels"),
    [
        ("MIT", {"MIT"}),
        ("MIT License", {"MIT"}),
        ("The MIT License (MIT)", {"MIT"}),
        ("Apache License, Version 2.0", {"Apache-2.0"}),
        ("Apache Software License 2.0", {"Apache-2.0"}),
        ("Apache 2", {"Apache-2.0"}),
        ("Apache", {"Apache"}),
        ("BSD", {"BSD"}),
        ("3-Clause BSD License", {"BSD-3-Clause"}),
        ("New BSD License", {"BSD-3-Clause"}),
        ("BSD 2-Clause License", {"BSD-2-Clause"}),
        ("ISC License", {"ISC"}),
        ("MPL 2.0", {"MPL-2.0"}),
        ("Mozilla Public License 2.0 (MPL 2.0)", {"MPL-2.0"}),
        ("GPLv3", {"GPL-3.0"}),
        ("GNU LGPL v3+", {"LGPL-3.0"}),
        ("GNU Lesser General Public License", {"LGPL"}),
        ("LGPLv3", {"LGPL-3.0"}),
        ("PSF", {"PSF-2.0"}),
        ("see LICENSE file", set()),
        ("", set()),
        (None, set()),
    ],
)
def test_what_people_write_into_the_field(field: str | None, labels: set[str]) -> None:
    """Common spellings are understood; what names no licence is not guessed at."""
    assert labels_of_field(field) == labels


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("MIT", "permissive"),
        ("Apache-2.0 WITH LLVM-exception", "permissive"),
        ("MIT OR GPL-3.0-only", "permissive"),
        ("MIT AND GPL-3.0-only", "copyleft"),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", "copyleft"),
        ("(MIT AND LGPL-2.1-only) OR BSD-3-Clause", "permissive"),
        ("GPL-2.0-or-later WITH Classpath-exception-2.0", "copyleft"),
        ("LicenseRef-Ours", "unknown"),
        ("MIT AND LicenseRef-Ours", "unknown"),
        ("LicenseRef-Ours AND GPL-3.0-only", "copyleft"),
    ],
)
def test_what_an_expression_amounts_to(expression: str, kind: str) -> None:
    """Alternatives count as the freest of them, licences together as the strictest."""
    assert kind_of(canonical(expression) or "") == kind


def evidence(
    expression: str | None = None,
    field: str | None = None,
    classifiers: Sequence[str] = (),
    files: Mapping[str, Sequence[str]] | None = None,
) -> Evidence:
    """Evidence with what is given, and nothing else."""
    return Evidence(expression=expression, field=field, classifiers=classifiers, files=files or {})


@pytest.mark.parametrize(
    ("given", "spdx", "verdict"),
    [
        (evidence("mit or apache-2.0"), "MIT OR Apache-2.0", "permissive"),
        (evidence("MIT", files={"LICENSE": ["MIT", "BSD-3-Clause"]}), "MIT", "permissive"),
        (evidence("GPL-3.0-or-later", files={"COPYING": ["GPL-3.0"]}), "GPL-3.0-or-later", "copyleft"),
        (evidence("MIT", files={"LICENSE": ["GPL-3.0"]}), None, "contradictory"),
        (evidence("MIT", classifiers=["Apache Software License"]), None, "contradictory"),
        (evidence(field="MIT", classifiers=["MIT License"]), "MIT", "permissive"),
        (evidence(field="MIT OR Apache-2.0", classifiers=["MIT License"]), "MIT OR Apache-2.0", "permissive"),
        (evidence(field="MIT", classifiers=["BSD License"]), None, "contradictory"),
        (evidence(field="BSD", files={"LICENSE": ["BSD-3-Clause"]}), "BSD-3-Clause", "permissive"),
        (evidence(field="BSD"), None, "permissive"),
        (evidence(classifiers=["BSD License"], files={"L": ["BSD-2-Clause"]}), "BSD-2-Clause", "permissive"),
        (evidence(classifiers=["MIT License", "Apache Software License"]), None, "permissive"),
        (
            evidence(classifiers=["MIT License", "GNU General Public License v3 (GPLv3)"]),
            None,
            "contradictory",
        ),
        (evidence(classifiers=["GNU General Public License v2 (GPLv2)"]), "GPL-2.0-only", "copyleft"),
        (
            evidence(field="GPLv3", classifiers=["GNU General Public License v3 or later (GPLv3+)"]),
            "GPL-3.0-or-later",
            "copyleft",
        ),
        (evidence(field="GPL-3.0+ or so"), None, "copyleft"),
        (evidence(files={"LICENSE": ["ISC"]}), "ISC", "permissive"),
        (evidence(files={"COPYING": ["GPL-3.0"]}), None, "copyleft"),
        (evidence(files={"LICENSE": [], "AUTHORS": []}), None, "unknown"),
        (evidence(field="see the website"), None, "unknown"),
        (evidence(field=MIT, classifiers=["MIT License"]), "MIT", "permissive"),
        (evidence(classifiers=["OSI Approved"]), None, "unknown"),
        (evidence(), None, "unknown"),
    ],
)
def test_the_verdict(given: Evidence, spdx: str | None, verdict: str) -> None:
    """Told by the evidence, with the evidence in words; never guessed."""
    finding = judge(given)
    assert (finding.spdx, finding.verdict) == (spdx, verdict)
    assert finding.why


def test_every_installed_distribution(subtests: pytest.Subtests) -> None:
    """All are listed, and each one's licence fields are what importlib.metadata says."""
    installed = {canonicalize_name(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    assert list_distributions() == sorted(installed)
    for name, one in installed.items():
        with subtests.test(name):
            found = distribution_metadata(name)
            metadata = one.metadata
            assert (found["name"], found["version"]) == (metadata["Name"], one.version)
            assert found["licence_expression"] == (metadata.get_all("License-Expression") or [None])[0]
            field = (metadata.get_all("License") or [""])[0]
            assert (found["licence_field"] or "")[:500] == field[:500]
            said = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
            assert found["licence_classifiers"] == said
            assert found["verdict"] in ("permissive", "copyleft", "unknown", "contradictory")
            assert found["spdx"] is None or canonical(found["spdx"]) == found["spdx"]
            assert found["size_bytes"] > 0


def test_one_distribution() -> None:
    """What is known of a package that is always here: aiohttp needs yarl, extras left out."""
    found = distribution_metadata("AioHTTP")
    assert (found["spdx"], found["verdict"]) == ("Apache-2.0 AND MIT", "permissive")
    assert "yarl" in found["requires"]
    assert "brotli" not in found["requires"]
    assert found["size_bytes"] > 1_000_000
    files = licence_files("aiohttp")
    assert {tuple(one["spdx"]) for one in files} >= {("Apache-2.0",)}
    assert all(len(one["text"]) < 2_100 for one in files)


def test_a_distribution_that_is_not_installed() -> None:
    """Says so by name."""
    with pytest.raises(LookupError, match="no-such-thing"):
        distribution_metadata("no-such-thing")
