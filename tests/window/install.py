#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""install.py CMAKE BUILD VERSION: `cmake --install` into an empty folder, which is then moved: the program starts from
there, finds its resources and its libraries; what the desktop reads is valid, where its tools are there to say so."""
import os
import re
import shutil
import subprocess
import sys

from program import Failed, exit_status

ID = "org.headscope.Headscope"
FILES = ["bin/headscope", "lib/headscope/libheadscope_kernels.so", "share/headscope/texts/lantern.txt",
         "share/headscope/samples/llama-kjv-shakespeare/config.json", "share/headscope/icons/headscope.svg",
         "share/doc/headscope/LICENSE", "share/doc/headscope/README.md", "share/doc/headscope/docs/file-formats.md",
         f"share/applications/{ID}.desktop", f"share/icons/hicolor/scalable/apps/{ID}.svg",
         f"share/metainfo/{ID}.metainfo.xml", f"share/mime/packages/{ID}.xml"]


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise Failed(f"expected {' '.join(command)} to pass; found {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


def search_path(file):
    """DT_RPATH: DT_RUNPATH would not hold for the libraries of libraries."""
    found = re.search(r"\((RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-d", file))
    if not found or found[1] != "RPATH":
        raise Failed(f"expected a DT_RPATH in {file}; found {found[1] if found else 'none'}")
    return [folder for folder in found[2].split(":") if folder]


def check(cmake, build, version, folder):
    first, prefix = os.path.join(folder, "first"), os.path.join(folder, "a place of its own")
    run(cmake, "--install", build, "--prefix", first)
    os.rename(first, prefix)
    missing = [file for file in FILES if not os.path.isfile(os.path.join(prefix, file))]
    if missing:
        raise Failed(f"expected these files to be installed: {', '.join(missing)}")
    program = os.path.join(prefix, "bin/headscope")
    bundled = os.path.exists(os.path.join(prefix, "lib/headscope/libtorch_cpu.so"))
    parquet = os.path.join(prefix, "lib/headscope/libheadscope_parquet.so")  # where Arrow was found
    for file in (program, os.path.join(prefix, "lib/headscope/libheadscope_kernels.so"),
                 *([parquet] if os.path.exists(parquet) else [])):
        for place in search_path(file):
            # Either beside the program, or the LibTorch or Arrow it was built with; never the build.
            if not place.startswith("$ORIGIN") and (bundled or os.path.realpath(build) in os.path.realpath(place)):
                raise Failed(f"expected only paths from $ORIGIN{'' if bundled else ' and LibTorch'}; found {place} in {file}")
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8"}
    if version not in run(program, "--version", env=environment):
        raise Failed(f"expected version {version}")
    libraries = run("ldd", program, env=environment)
    for name in ("libheadscope_kernels.so", *(["libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcupti.so.13"] if bundled else [])):
        place = re.search(rf"{re.escape(name)} => (.*) \(", libraries)
        if not place or not os.path.realpath(place[1]).startswith(os.path.realpath(prefix)):
            raise Failed(f"expected {name} from {prefix}; found {place[1] if place else 'none'}")
    if os.path.exists(parquet) and "not found" in run("ldd", parquet, env=environment):
        raise Failed(f"expected the libraries of {parquet}; found some missing")
    # Its own resources: a change to them shows.
    with open(os.path.join(prefix, "share/headscope/texts/install.txt"), "w", encoding="utf-8") as file:
        file.write("A text that only this installation has.")
    sample = os.path.join(prefix, "share/headscope/samples/llama-kjv-shakespeare")
    run(program, "analyze", sample, "--example", "install", "-o", os.path.join(folder, "a.headscope.h5"), env=environment)

    share = os.path.join(prefix, "share")
    if shutil.which("desktop-file-validate"):
        run("desktop-file-validate", os.path.join(share, f"applications/{ID}.desktop"))
    if shutil.which("appstreamcli"):
        run("appstreamcli", "validate", "--no-net", os.path.join(share, f"metainfo/{ID}.metainfo.xml"))
    if shutil.which("update-mime-database"):
        run("update-mime-database", os.path.join(share, "mime"), env=environment)
        with open(os.path.join(share, "mime/globs"), encoding="utf-8") as file:
            patterns = file.read()
        for kind, pattern in (("analysis", "*.headscope.h5"), ("evaluation", "*.evaluation.h5"), ("ask", "*.ask.h5")):
            if f"application/x-headscope-{kind}:{pattern}" not in patterns:
                raise Failed(f"expected {pattern} among the patterns of files")
    print("installed, moved and started" + (" with LibTorch" if bundled else ""))


if __name__ == "__main__":
    sys.exit(exit_status("install", lambda folder: check(*sys.argv[1:4], folder)))
