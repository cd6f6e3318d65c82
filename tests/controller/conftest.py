"""The ALS program's P4Info."""

import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.controller.plane.names import Names
from fairlane.schemes import chosen, registry

ALS = Path(__file__).resolve().parents[2] / "p4src/als.p4"


@pytest.fixture(scope="session")
def p4info(tmp_path_factory) -> Names:
    return compiled(tmp_path_factory)


@pytest.fixture(scope="session")
def protecting(tmp_path_factory) -> Names:
    """With flow protection."""
    return compiled(tmp_path_factory, schemes=["protection"])


def compiled(tmp_path_factory, *defines: str, schemes: Collection[str] = ()) -> Names:
    """With these macros, and these schemes beside those of every program."""
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        pytest.skip("fairlane-compile is not built (make build)")
    folder = tmp_path_factory.mktemp("als")
    info = folder / "als.p4info.txtpb"
    chosen.write(registry.in_order((*registry.standing(), *(registry.SCHEMES[name] for name in schemes))), ALS, folder)
    subprocess.run(
        [
            compiler,
            "-DCHOSEN",
            "-I",
            folder,
            "-I",
            ALS.parent,
            *(f"-D{name}" for name in defines),
            "-o",
            folder / "als.json",
            "--p4runtime-files",
            info,
            ALS,
        ],
        check=True,
        timeout=60,
    )
    return Names.read(info)
