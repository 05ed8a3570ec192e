#!/usr/bin/env bash
# Makes the package importable from the checkout without installing it: benchmarks/device_setup.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
cp -r "$here/translator" "$1/tilewright"
cp -r "$here/runtime" "$1/tilewright/runtime"
cp -r "$here/templates" "$1/tilewright/templates"
cp -r "$here/runtime/tools" "$1/tilewright/tools"
cp -r "$here/runtime/torch" "$1/tilewright/torch"
cp -r "$here/runtime/jax" "$1/tilewright/jax"
# The part in C, where there is a compiler.
include=$(python3 -c "import sysconfig; print(sysconfig.get_paths()['include'])")
cc -O2 -shared -fPIC -I"$include" "$here"/runtime/quick_*.c -o "$1/tilewright/runtime/quick_launch.abi3.so" || true
