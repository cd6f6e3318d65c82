"""All files have one version; CITATION.cff, codemeta.json and pyproject.toml agree; a new version and the files of a release (docs/releasing.md)."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlane import probes
from fairlane.inputs.located_toml import tomllib
from tools.release import check, page, sbom, versions

CITATION = yaml.safe_load((probes.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA: dict[str, Any] = json.loads((probes.ROOT / "codemeta.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((probes.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for place in versions.PLACES:
        (tmp_path / place.file).parent.mkdir(exist_ok=True)
        shutil.copy(probes.ROOT / place.file, tmp_path / place.file)
    if "repository-code" not in CITATION:
        with (tmp_path / "CITATION.cff").open("a", encoding="utf-8") as citation:
            citation.write("repository-code: https://example.org/fairlane\n")
    return tmp_path


def test_all_files_have_one_version() -> None:
    assert versions.faults(probes.ROOT) == []
    cargo = tomllib.loads((probes.ROOT / "switch/Cargo.toml").read_text(encoding="utf-8"))
    assert versions.version(probes.ROOT) == PROJECT["version"] == cargo["workspace"]["package"]["version"]
    assert CITATION["version"] == CODEMETA["version"] == PROJECT["version"]


def test_a_new_version_goes_into_all_files_and_is_ready_for_its_tag(checkout: Path) -> None:
    unreleased = versions.notes(checkout, "Unreleased")
    assert unreleased
    assert versions.write(checkout, "9.8.7", "2030-01-02") == [place.file for place in versions.PLACES]
    assert versions.faults(checkout, "v9.8.7") == []
    assert versions.notes(checkout, "9.8.7") == unreleased
    assert versions.notes(checkout, "Unreleased") == ""
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == ("9.8.7", "2030-01-02")
    assert json.loads((checkout / "codemeta.json").read_text(encoding="utf-8"))["datePublished"] == "2030-01-02"
    before = {place.file: (checkout / place.file).read_text(encoding="utf-8") for place in versions.PLACES}
    versions.write(checkout, "9.8.7", "2030-01-02")
    assert before == {place.file: (checkout / place.file).read_text(encoding="utf-8") for place in versions.PLACES}


@pytest.mark.parametrize("place", versions.PLACES, ids=lambda place: place.file)
def test_a_file_of_another_version_is_named(checkout: Path, place: versions.Place) -> None:
    versions.write(checkout, "9.8.7", "2030-01-02")
    path = checkout / place.file
    path.write_text(path.read_text(encoding="utf-8").replace("9.8.7", "9.8.6", 1), encoding="utf-8")
    assert f"{place.file}: version 9.8.6, not 9.8.7" in versions.faults(checkout, "v9.8.7")
    assert versions.faults(checkout)


def test_a_tag_waits_for_date_notes_and_address(checkout: Path) -> None:
    versions.write(checkout, "9.8.7", "2030-01-02")
    changelog = checkout / versions.CHANGELOG
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace(versions.UNRELEASED, f"{versions.UNRELEASED}\n- A late change.\n"), encoding="utf-8")
    assert versions.faults(checkout, "v9.8.7") == ["CHANGELOG.md: lines under Unreleased, which belong to v9.8.7"]
    changelog.write_text(text.replace(" - 2030-01-02", ""), encoding="utf-8")
    assert versions.faults(checkout, "v9.8.7") == [
        "the date of the release: 2030-01-02 in CITATION.cff, 2030-01-02 in codemeta.json, none in CHANGELOG.md"
    ]
    changelog.write_text(text, encoding="utf-8")
    assert versions.faults(checkout, "9.8.7") == ["tag 9.8.7: the tag of a release is v and its version, such as v9.8.7"]
    citation = checkout / "CITATION.cff"
    citation.write_text(citation.read_text(encoding="utf-8").replace("repository-code", "# repository-code"), encoding="utf-8")
    assert [fault.partition(", ")[0] for fault in versions.faults(checkout, "v9.8.7")] == ["CITATION.cff: no repository-code"]
    assert versions.faults(checkout) == []


def test_the_workflow_asks_this_program() -> None:
    workflow = (probes.ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "python3 -m tools.release agree" in workflow
    done = subprocess.run(
        [sys.executable, "-m", "tools.release", "agree", "--tag", "v9.8.7"], cwd=probes.ROOT, text=True, capture_output=True
    )
    assert done.returncode == 1
    assert f"pyproject.toml: version {PROJECT['version']}, not 9.8.7" in done.stderr


def test_codemeta_says_what_the_citation_says() -> None:
    assert CODEMETA["name"] == CITATION["title"]
    assert CODEMETA["description"] == CITATION["abstract"]
    assert CODEMETA["keywords"] == CITATION["keywords"]
    assert CODEMETA["license"] == f"https://spdx.org/licenses/{CITATION['license']}"
    assert [author["name"] for author in CODEMETA["author"]] == [author["name"] for author in CITATION["authors"]]
    assert CODEMETA.get("codeRepository") == CITATION.get("repository-code")
    assert CODEMETA.get("datePublished") == (str(CITATION["date-released"]) if "date-released" in CITATION else None)
    papers = [(paper["name"], paper.get("identifier")) for paper in CODEMETA["referencePublication"]]
    assert papers == [(paper["title"], f"https://doi.org/{paper['doi']}" if "doi" in paper else None) for paper in CITATION["references"]]
    for key in ("readme", "buildInstructions"):
        assert (probes.ROOT / CODEMETA[key]).is_file()


def test_metadata_are_those_of_the_package() -> None:
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["keywords"] == PROJECT["keywords"]
    assert CITATION["authors"] == PROJECT["authors"]
    assert CODEMETA["runtimePlatform"] == f"CPython {PROJECT['requires-python']}"
    assert PROJECT["description"].startswith(CITATION["title"].removeprefix("Fairlane: ").capitalize())


def test_the_pages_archive_has_the_same_bytes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    folder = tmp_path / "web"
    (folder / "pyodide").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "pyodide" / "module").write_bytes(bytes(1000))
    digests = set()
    for again in range(2):
        (tmp_path / str(again)).mkdir()
        out = tmp_path / str(again) / page.file("9.8.7")
        page.pack(folder, out)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
        (folder / "index.html").touch()
    assert len(digests) == 1
    assert zipfile.ZipFile(out).namelist() == ["fairlane-page-9.8.7/index.html", "fairlane-page-9.8.7/pyodide/module"]
    with pytest.raises(SystemExit, match="make web"):
        page.pack(tmp_path / "nothing", out)


def bom() -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "metadata": {"component": {"type": "application", "name": "fairlane", "version": "9.8.7"}, "timestamp": "2026-01-01T00:00:00Z"},
        "components": [{"type": "library", "name": "h2", "version": "0.4.0", "purl": "pkg:cargo/h2@0.4.0"}],
    }


def test_a_list_of_packages_is_held_to_the_schema_and_has_the_same_bytes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    assert sbom.faults(json.dumps(bom())) == []
    assert sbom.faults(json.dumps(bom() | {"components": [{"name": "h2"}]}))
    once = sbom.repeatable(json.dumps(bom()), "c0ffee")
    other = bom()
    other["metadata"]["timestamp"], other["serialNumber"] = "2027-01-01T00:00:00Z", "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79"
    assert sbom.repeatable(json.dumps(other), "c0ffee") == once
    assert sbom.faults(once) == []
    assert sbom.repeatable(json.dumps(bom()), "decaf") != once


COMMIT = "0123456789abcdef0123456789abcdef01234567"
METADATA = (
    "Metadata-Version: 2.4\nName: fairlane\nVersion: 9.8.7\nSummary: A testbed\nDescription-Content-Type: text/markdown\n\nA testbed.\n"
)


def wheel(path: Path, commit: str = COMMIT, changed: bool = False) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fairlane/commit.json", json.dumps({"commit": commit, "changed": changed}))
        archive.writestr("fairlane-9.8.7.dist-info/METADATA", METADATA)
        archive.writestr("fairlane-9.8.7.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("fairlane-9.8.7.dist-info/RECORD", "")


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A folder with everything that a release has, small."""
    for platform in check.LINUX:
        wheel(tmp_path / check.wheel("9.8.7", platform))
    with tarfile.open(tmp_path / check.sdist("9.8.7"), "w:gz") as archive:
        for name, text in {"PKG-INFO": METADATA, "fairlane/commit.json": json.dumps({"commit": COMMIT, "changed": False})}.items():
            entry = tarfile.TarInfo(f"fairlane-9.8.7/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    with zipfile.ZipFile(tmp_path / page.file("9.8.7"), "w") as pages:
        pages.writestr("fairlane-page-9.8.7/index.html", "<!doctype html>")
    for kind in sbom.KINDS:
        (tmp_path / sbom.file(kind, "9.8.7")).write_text(json.dumps(bom()))
    return tmp_path


def test_a_whole_release_has_sums_that_sha256sum_takes(dist: Path) -> None:
    wheel(dist / check.wheel("9.8.7", "win_amd64"))
    wheel(dist / check.wheel("9.8.7", "macosx_11_0_arm64"))
    assert check.faults(dist, "9.8.7", COMMIT) == []
    assert len(check.sums(dist).splitlines()) == len(list(dist.iterdir())) - 1 == 10
    assert check.faults(dist, "9.8.7", COMMIT) == []
    command = ["sha256sum", "--check", "--strict", check.SUMS]
    assert subprocess.run(command, cwd=dist, capture_output=True).returncode == 0
    (dist / page.file("9.8.7")).write_bytes(b"")
    assert subprocess.run(command, cwd=dist, capture_output=True).returncode == 1


def test_what_a_release_lacks_or_must_not_have_is_named(dist: Path) -> None:
    whole = check.wheel("9.8.7", check.LINUX[1])
    (dist / whole).rename(dist / "kept")
    assert check.faults(dist, "9.8.7", COMMIT) == [
        f"{dist / whole}: missing",
        f"{dist / 'kept'}: no file of release 9.8.7; remove it",
    ]
    (dist / "kept").rename(dist / whole)
    wheel(dist / whole, commit="f" * 40)
    assert check.faults(dist, "9.8.7", COMMIT) == [f"{dist / whole}: made of commit {'f' * 40}, not {COMMIT}"]
    wheel(dist / whole)
    for name in (whole, check.sdist("9.8.7")):
        before = (dist / name).read_bytes()
        with zipfile.ZipFile(dist / name, "w") if name == whole else tarfile.open(dist / name, "w:gz"):
            pass
        assert check.faults(dist, "9.8.7", COMMIT)[0] == f"{dist / name}: made of commit unknown, not {COMMIT}"
        (dist / name).write_bytes(before)
    wheel(dist / whole, changed=True)
    assert check.faults(dist, "9.8.7", COMMIT) == [f"{dist / whole}: made of changed files"]
    wheel(dist / whole)
    broken = dist / sbom.file("page", "9.8.7")
    broken.write_text(json.dumps(bom() | {"components": [{"name": "h2"}]}))
    assert any(fault.startswith(f"{broken}: ") for fault in check.faults(dist, "9.8.7", COMMIT))


def test_what_pypi_refuses_is_refused(dist: Path) -> None:
    with zipfile.ZipFile(dist / check.wheel("9.8.7", check.LINUX[0]), "w") as archive:
        archive.writestr("fairlane/commit.json", json.dumps({"commit": COMMIT, "changed": False}))
        archive.writestr("fairlane-9.8.7.dist-info/METADATA", "Metadata-Version: 2.4\nName: fairlane\nVersion: 9.8.7\n")
    assert f"{dist}: PyPI would refuse a file: see above" in check.faults(dist, "9.8.7", COMMIT)
