#!/usr/bin/env python3
"""Prints the components of a release in the format of CycloneDX 1.5: the crates that are linked into
granary and granary-agent, and the packages of the web page.

    deploy/sbom.py VERSION TARGET
"""

import datetime
import json
import os
import subprocess
import sys

VERSION, TARGET = sys.argv[1:3]
PROGRAMS = ("granary", "granary-agent")


def linked_packages(metadata):
    """Returns the packages that the programs link, and the edges between them."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    waiting = [package["id"] for package in metadata["packages"]
               if package["name"] in PROGRAMS and package["source"] is None]
    edges = {}
    while waiting:
        package = waiting.pop()
        if package in edges:
            continue
        edges[package] = [dep["pkg"] for dep in nodes[package]["deps"]
                          if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        waiting.extend(edges[package])
    return packages, edges


def component(package):
    """Returns a crate as a component."""
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    found = {"type": "library", "bom-ref": purl, "name": package["name"],
             "version": package["version"], "purl": purl}
    if package["source"] is None:
        found["type"] = "application" if package["name"] in PROGRAMS else "library"
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return found


def page_components():
    """Returns the packages that the web page contains."""
    with open("src/web/package-lock.json", encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for path, package in sorted(packages.items()):
        if not path or package.get("dev") or package.get("devOptional"):
            continue
        name = path.rsplit("node_modules/", 1)[-1]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        found = {"type": "library", "bom-ref": purl, "name": name,
                 "version": package["version"], "purl": purl}
        if package.get("license"):
            found["licenses"] = [{"expression": package["license"]}]
        yield found


def main():
    """Prints the document. The same commit leads to the same bytes."""
    output = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET],
        check=True, stdout=subprocess.PIPE).stdout
    packages, edges = linked_packages(json.loads(output))
    ref = {package: component(packages[package])["bom-ref"] for package in edges}
    crates = sorted((component(packages[package]) for package in edges),
                    key=lambda found: found["bom-ref"])
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "name": "granary", "version": VERSION,
                          "bom-ref": "granary-release"},
        },
        "components": crates + list(page_components()),
        "dependencies": [
            {"ref": ref[package], "dependsOn": sorted({ref[other] for other in others})}
            for package, others in sorted(edges.items(), key=lambda edge: ref[edge[0]])
        ],
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


main()
