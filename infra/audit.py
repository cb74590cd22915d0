"""Looks up the locked packages in an advisory service.

    python infra/audit.py REQUIREMENTS...

Asks OSV, and where that cannot be reached the Python Package Index. Exit code 1 where a locked
package has a known vulnerability. Where neither service can be reached nothing is looked up: it
says so, and ends with 0, since a network without such a service is no fault of the packages.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

AUDIT_S: Final = 600.0
"""Seconds for all packages; some 100 are looked up one by one."""

_FIRST: Final = re.compile(r"^[A-Za-z0-9][^\n]*==[^\n]*\\\n(?:    --hash=[^\n]*\n)+", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Audit, and give the exit code."""
    parser = argparse.ArgumentParser(description="Look up the locked packages in an advisory service.")
    parser.add_argument("requirements", nargs="+", type=Path)
    parser.add_argument("--osv-url", help="where OSV's interface is, if not where it is for everybody")
    options = parser.parse_args(arguments)
    osv = ["--vulnerability-service=osv", *([f"--osv-url={options.osv_url}"] if options.osv_url else [])]
    for service in (osv, ["--vulnerability-service=pypi"]):
        if answers(options.requirements[0], service):
            return audit(options.requirements, service)
    print(
        "NOT AUDITED: neither OSV nor the Python Package Index says from here which packages have known "
        "vulnerabilities, so none was looked up. Run `make audit` where one of them can be reached."
    )
    return 0


def answers(requirements: Path, service: Sequence[str]) -> bool:
    """The service is there: it knows the first of these packages."""
    first = _FIRST.search(requirements.read_text(encoding="utf-8"))
    if first is None:
        raise SystemExit(f"{requirements} has no package with a hash: `make lock` writes one")
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(first[0].replace("\\\n    --hash", " --hash").replace(" \\\n", "\n"))
        file.flush()
        packages, _ = look_up([Path(file.name)], service)
    return any("skip_reason" not in package for package in packages)


def audit(files: Sequence[Path], service: Sequence[str]) -> int:
    """Look up every package, and print what was found."""
    packages, said = look_up(files, service)
    if not packages:
        print(f"The advisory service failed half way: {said}", file=sys.stderr)
        return 1
    skipped = [package for package in packages if "skip_reason" in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for found in package["vulns"]:
            fixed = (
                f"fixed in {', '.join(found['fix_versions'])}" if found["fix_versions"] else "not fixed yet"
            )
            names = ", ".join([found["id"], *found.get("aliases", ())])
            print(f"{package['name']} {package['version']}: {names}, {fixed}")
    for package in skipped:
        print(f"not looked up: {package['name']} ({package['skip_reason']})")
    looked_up = f"{len(packages) - len(skipped)} of {len(packages)} locked packages looked up"
    print(f"{looked_up}, {len(vulnerable)} with known vulnerabilities.")
    return 1 if vulnerable else 0


def look_up(files: Sequence[Path], service: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """What pip-audit found of each package, and what it said; none where it failed."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner=off",
    ]
    command += ["--format=json", *service, *(f"--requirement={file}" for file in files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_S, check=False)  # noqa: S603 - ours
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [], done.stderr[-2_000:].strip()
    return packages, done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
