"""What kinprint is installed with, as a CycloneDX 1.6 document: `make sbom`, out/sbom.cdx.json.

Packages, versions and digests are those of requirements/run.lock, from which `make demo` and
`make test` install; pip refuses a file with another digest. Licences are what installed packages
say of themselves. The same lock gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "run.lock"
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


class Locked(Struct, frozen=True):
    """A package that the lock names."""

    name: str
    version: str
    digests: tuple[str, ...]


def locked(file: Path = LOCK) -> list[Locked]:
    """All packages of a lock; some are for other systems only."""
    raw = file.read_text("utf-8")
    starts = list(_PACKAGE.finditer(raw))
    ends = [one.start() for one in starts[1:]] + [len(raw)]
    return [
        Locked(one[1], one[2], tuple(sorted(_HASH.findall(raw, one.end(), end))))
        for one, end in zip(starts, ends, strict=True)
    ]


def licence(name: str) -> str | None:
    """What an installed package says its licence is: an SPDX expression, or its own words."""
    try:
        told = metadata(name)
    except PackageNotFoundError:
        return None
    for expression in told.get_all("License-Expression") or ():
        return str(expression)
    for classifier in told.get_all("Classifier") or ():
        if classifier in _CLASSIFIERS:
            return _CLASSIFIERS[classifier]
    words = "\n".join(told.get_all("License") or ()).strip().splitlines()
    return words[0] if words else "unknown"


def document() -> dict[str, Any]:
    """The bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = re.search(r'__version__ = "([^"]+)"', _version_file())
    own = {
        "type": "library",
        "bom-ref": "kinprint",
        "name": "kinprint",
        "version": version[1] if version else "0",
        "licenses": [{"expression": project["license"]}],
    }
    packages = locked()
    components = [_component(one) for one in packages]
    seed = "\n".join(f"{one.name}=={one.version}" for one in packages)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }


def _version_file() -> str:
    return (ROOT / "src" / "kinprint" / "version.py").read_text("utf-8")


def _component(one: Locked) -> dict[str, Any]:
    place = f"pkg:pypi/{one.name.lower().replace('_', '-')}@{one.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": place,
        "name": one.name,
        "version": one.version,
        "purl": place,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{one.name}/{one.version}/",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in one.digests],
            }
        ],
    }
    if found := licence(one.name):
        kind = {"expression": found} if _is_expression(found) else {"license": {"name": found}}
        component["licenses"] = [kind]
    return component


def _is_expression(given: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*", given))


def main() -> None:
    """Write the document."""
    file = ROOT / "out" / "sbom.cdx.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document(), indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{file.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
