"""Holds the image's configuration (`buildah inspect`, on stdin) to what the Dockerfile promises; prints its entry point, a word a line.

configuration.py RUNTIME_IMAGE NAME=VALUE...    (the build arguments that become labels)
"""

import json
import sys

PREFIX = "org.opencontainers.image."


def main():
    base, *arguments = sys.argv[1:]
    config = json.load(sys.stdin)["OCIv1"]["config"]
    wanted = {
        "User": "65532:65532",
        "Entrypoint": ["/usr/local/bin/bellhop"],
        "Cmd": ["run"],
        "ExposedPorts": {"8080/tcp": {}},
        "Labels": {
            PREFIX + "title": "bellhop",
            PREFIX + "description": "Has each Google Chat event from Pub/Sub handled once",
            PREFIX + "licenses": "Apache-2.0",
            PREFIX + "base.name": base,
            **{PREFIX + name.lower(): value for name, value in (argument.split("=", 1) for argument in arguments)},
        },
    }
    # What buildah adds for itself.
    labels = {name: value for name, value in (config.get("Labels") or {}).items() if not name.startswith("io.buildah.")}
    found = {**config, "Labels": labels}
    wrong = [f"{key} is {found.get(key)}, not {value}" for key, value in wanted.items() if found.get(key) != value]
    if wrong:
        sys.exit("image: its configuration is wrong: " + "; ".join(wrong))
    print("\n".join(config["Entrypoint"]))


if __name__ == "__main__":
    main()
