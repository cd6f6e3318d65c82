"""What pyproject.toml cannot say: the wheel holds compiled code, which any CPython from 3.10 on loads (`scripts/wheel` puts it there), and a
line that puts the names of BMv2's Python packages behind all others."""

from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py


class Compiled(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class WithNames(build_py):
    """Adds a file that Python reads at its start. sudo passes PATH on, and never PYTHONPATH: a controller that `sudo python3` runs still finds
    `p4.v1` (`fairlane/bmv2/python`)."""

    def run(self) -> None:
        super().run()
        (Path(self.build_lib) / "fairlane_bmv2_names.pth").write_text("fairlane/bmv2/python\n")


setup(distclass=Compiled, cmdclass={"build_py": WithNames}, options={"bdist_wheel": {"py_limited_api": "cp310"}})
