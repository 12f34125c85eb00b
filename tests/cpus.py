"""The numeric tests as on other processors: other kernels, no wide vectors, two threads.

OpenBLAS and NumPy choose their kernels by the processor they find, and kernels sum in different
orders. Run by `make test-cpus`; arguments go to pytest.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

ROOMS = (
    "tests/measure",
    "tests/nulls",
    "tests/lineage",
    "tests/studies",
    "tests/replica",
    "tests/model",
)
CORES = {
    "x86_64": ("Nehalem", "Haswell"),
    "aarch64": ("ARMV8", "THUNDERX", "THUNDERX2T99"),
}
_PROBE = """
import numpy, scipy.linalg, threadpoolctl
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
cores = {one["architecture"].lower() for one in threadpoolctl.threadpool_info()}
print(*cores, sep=",")
print(*[name for name in __cpu_dispatch__ if __cpu_features__[name]], sep=" ")
"""


def probe(setting: dict[str, str]) -> tuple[str, str]:
    """The kernels that OpenBLAS uses under a setting, and NumPy's optional instructions.

    Empty where this processor cannot run them.
    """
    command = [sys.executable, "-c", _PROBE]
    done = subprocess.run(
        command, env=os.environ | setting, capture_output=True, text=True, check=False
    )
    cores, features = done.stdout.splitlines() if done.returncode == 0 else ("", "")
    return cores, features


def settings() -> dict[str, dict[str, str]]:
    """Environments to test under, by name; those that change nothing here are left out."""
    own, features = probe({})
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = {}
    for core in CORES.get(platform.machine(), ()):
        setting = {"OPENBLAS_CORETYPE": core}
        used, _ = probe(setting)
        if used == core.lower() != own:
            found[f"kernels of {core}"] = one | setting
        else:
            print(f"kernels of {core}: not on this processor, which uses {own}")
    if features:
        found[f"without {features}"] = one | {"NPY_DISABLE_CPU_FEATURES": features}
    found["two threads"] = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    return found


def main(arguments: list[str]) -> int:
    """Run the tests under every setting; how many of them failed."""
    failed = []
    chosen = settings()
    for name, setting in chosen.items():
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", *(arguments or ROOMS)]
        if subprocess.run(command, env=os.environ | setting, check=False).returncode:
            failed.append(name)
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} settings green", *failed, sep="; ")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
