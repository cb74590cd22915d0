"""Tools on the distributions installed in the running environment: their licences, needs and size."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution, distributions
from pathlib import Path
from typing import Annotated, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import Field

from agents.tools.licence_text import recognise
from agents.tools.licences import Evidence, judge

LICENCE_NAME = re.compile(r"^(un)?(licen[cs]e|copying|copyright)", re.IGNORECASE)
"""Names of licence files outside the folder ``licenses`` that PEP 639 gives them."""

READ_BYTES = 131_072
"""Bytes of a licence file that are looked at; the longest common licence has 35 KB."""

SHOWN_CHARACTERS = 2_000
"""Characters of a licence file that are shown."""

Name = Annotated[str, Field(description="Name of an installed distribution, as on PyPI", min_length=1)]


def list_distributions() -> list[str]:
    """List the names of the distributions installed in this environment, normalised and sorted."""
    return sorted(
        {canonicalize_name(one.metadata["Name"]) for one in distributions() if one.metadata["Name"]}
    )


def distribution_metadata(name: Name) -> dict[str, Any]:
    """Read an installed distribution's licence evidence, its required packages and its size.

    Gives name, version, licence_expression, licence_field, licence_classifiers, licence_files
    (path and recognised licences), spdx (the licence, where it can be told), verdict (permissive,
    copyleft, unknown or contradictory) with why, requires (without extras) and size_bytes.
    """
    found = find(name)
    metadata = found.metadata
    files = {str(path): recognise(text) for path, text in licence_texts(found)}
    expression, field = first(found, "License-Expression"), first(found, "License")
    classifiers = licence_classifiers(found)
    finding = judge(
        Evidence(
            expression=expression,
            field=None if field == "UNKNOWN" else field,
            classifiers=[one.split(" :: ")[-1] for one in classifiers],
            files=files,
        )
    )
    return {
        "name": metadata["Name"],
        "version": found.version,
        "spdx": finding.spdx,
        "verdict": finding.verdict,
        "why": finding.why,
        "licence_expression": expression,
        "licence_field": field and shown(field),
        "licence_classifiers": classifiers,
        "licence_files": [{"path": path, "spdx": list(labels)} for path, labels in files.items()],
        "requires": required(found),
        "size_bytes": size_bytes(found),
    }


def licence_files(name: Name) -> list[dict[str, Any]]:
    """Read an installed distribution's licence files: path, recognised licences, the text's beginning."""
    return [
        {"path": str(path), "spdx": list(recognise(text)), "text": shown(text)}
        for path, text in licence_texts(find(name))
    ]


def find(name: str) -> Distribution:
    """The installed distribution of this name.

    Raises:
        LookupError: none is installed.
    """
    try:
        return distribution(name)
    except (PackageNotFoundError, ValueError):
        raise LookupError(f"no distribution named {name!r} is installed here") from None


def first(found: Distribution, name: str) -> str | None:
    """The first metadata field of this name, None where there is none or it is empty."""
    values = found.metadata.get_all(name)
    return str(values[0]) if values and values[0] else None


def licence_classifiers(found: Distribution) -> list[str]:
    """The licence classifiers, whole."""
    return [one for one in found.metadata.get_all("Classifier") or [] if one.startswith("License ::")]


def licence_texts(found: Distribution) -> list[tuple[PackagePath, str]]:
    """The licence files that the distribution's record names, with their text."""
    texts: list[tuple[PackagePath, str]] = []
    for path in found.files or []:
        if not _is_licence(path):
            continue
        try:
            with Path(str(path.locate())).open("rb") as file:
                texts.append((path, file.read(READ_BYTES).decode("utf-8", "replace")))
        except OSError:
            continue  # named in the record, gone from the disk
    return texts


def required(found: Distribution) -> list[str]:
    """Names of the packages it needs in this environment, without those of extras."""
    names: set[str] = set()
    for line in found.requires or []:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue  # metadata older than the rules; it cannot be installed by them either
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            names.add(canonicalize_name(requirement.name))
    return sorted(names)


def size_bytes(found: Distribution) -> int | None:
    """Bytes of all files in the distribution's record, or None where it has none."""
    if found.files is None:
        return None
    return sum(path.size or 0 for path in found.files)


def shown(text: str) -> str:
    """The beginning of a long text."""
    return (
        text
        if len(text) <= SHOWN_CHARACTERS
        else f"{text[:SHOWN_CHARACTERS]} [{len(text)} characters in all]"
    )


def _is_licence(path: PackagePath) -> bool:
    folder, *inside = path.parts[:-1] or ("",)
    if folder.endswith((".dist-info", ".egg-info")) and inside and inside[0] in ("licenses", "license_files"):
        return True
    return not inside and LICENCE_NAME.match(path.name) is not None
