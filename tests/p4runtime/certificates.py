"""Certificates for the tests of TLS, made by openssl(1) where the test runs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    """Signs certificates; what it signs is beside its own in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl is not installed (apt-get install openssl)")
        self._folder = folder
        self._name = name
        self.own = Pair(folder / f"{name}.crt", folder / f"{name}.key")
        _openssl("req", "-x509", *_new(self.own), "-subj", f"/CN={name}", "-addext", "keyUsage=keyCertSign")

    def sign(self, name: str, purpose: str | None = None) -> Pair:
        """A certificate for 127.0.0.1 and localhost. purpose: its extendedKeyUsage."""
        pair = Pair(self._folder / f"{self._name}-{name}.crt", self._folder / f"{self._name}-{name}.key")
        _openssl(
            "req",
            "-x509",
            "-CA",
            str(self.own.certificate),
            "-CAkey",
            str(self.own.key),
            *_new(pair),
            "-subj",
            f"/CN={name}",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            *(["-addext", f"extendedKeyUsage={purpose}"] if purpose else []),
        )
        return pair


def _new(pair: Pair) -> list[str]:
    return [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        str(pair.key),
        "-out",
        str(pair.certificate),
    ]


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
