"""The same work the plain way: the hub's file system, one request after the other."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import time

from benchmarks.scene import environment

VECTORS = 8


def seconds_a_vector(endpoint: str) -> float:
    """Seconds that one norm vector takes when each is found and read on its own."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peer"],
            env=environment(endpoint, home),
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout)


def main() -> None:
    from huggingface_hub import HfFileSystem

    files = HfFileSystem()
    started = time.monotonic()
    for layer in range(VECTORS):
        path = f"zai-org/GLM-4.5-Air/model-{layer + 1:05}-of-00047.safetensors"
        with files.open(path, "rb", cache_type="none") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            name = f"model.layers.{layer}.post_attention_layernorm.weight"
            begin, end = header[name]["data_offsets"]
            file.seek(8 + length + begin)
            assert len(file.read(end - begin)) == 8192
    print((time.monotonic() - started) / VECTORS)


if __name__ == "__main__":
    main()
