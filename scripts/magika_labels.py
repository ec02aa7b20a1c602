"""Writes models/magika/labels.inc, the C table of Magika's content types, from the package: `magika_labels.py WHEEL`."""

import json
import pathlib
import sys
import zipfile

OUT = pathlib.Path(__file__).resolve().parent.parent / "models" / "magika" / "labels.inc"


def quoted(text):
    return json.dumps(text, ensure_ascii=True)


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive:
        config = json.loads(archive.read("magika/models/standard_v3_3/config.min.json"))
        known = json.loads(archive.read("magika/config/content_types_kb.min.json"))
    lines = [
        "// Magika's content types, in the order of the model's output. Written by scripts/magika_labels.py.",
        "// MAGIKA_LABEL(label, description, MIME type, is text, least score to be believed)",
    ]
    for name in config["target_labels_space"]:
        label = config["overwrite_map"].get(name, name)
        entry = known[label]
        threshold = config["thresholds"].get(name, config["medium_confidence_threshold"])
        description, mime = quoted(entry["description"] or label), quoted(entry["mime_type"] or "")
        lines.append(
            f"MAGIKA_LABEL({quoted(label)}, {description}, {mime}, {int(entry['is_text'])}, {threshold}f)"
        )
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
