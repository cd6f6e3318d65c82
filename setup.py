"""What pyproject.toml cannot say: the wheel holds compiled code, which any CPython from 3.10 on loads. `scripts/wheel` puts it there."""

from setuptools import Distribution, setup


class Compiled(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=Compiled, options={"bdist_wheel": {"py_limited_api": "cp310"}})
