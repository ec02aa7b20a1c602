"""Makes the data of the course's programs: data/*.npy, a small stand-in for FashionMNIST and a network trained on it.

    .venv/bin/python examples/course/make_data.py

Every picture is 28x28, one of ten garments drawn as a filled outline that is moved, stretched, dimmed and made noisy
by a generator with a fixed seed. The network is the course's: 784 → 128 → relu → 10, trained here by plain gradient
descent in NumPy. What it writes is committed, so that accuracy means the same everywhere.
"""

import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "data"
SIDE, HIDDEN, CLASSES = 28, 128, 10
NAMES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]

# Outlines of garments in a square of [-1, 1], x to the right and y down: polygons that are joined.
OUTLINES = {
    "t-shirt": [[(-0.5, -0.7), (0.5, -0.7), (0.5, 0.8), (-0.5, 0.8)], [(-1, -0.7), (1, -0.7), (0.9, -0.2), (-0.9, -0.2)]],
    "trouser": [[(-0.5, -0.9), (0.5, -0.9), (0.5, -0.4), (-0.5, -0.4)],
                [(-0.5, -0.5), (-0.1, -0.5), (-0.2, 0.9), (-0.6, 0.9)], [(0.1, -0.5), (0.5, -0.5), (0.6, 0.9), (0.2, 0.9)]],
    "pullover": [[(-0.5, -0.7), (0.5, -0.7), (0.5, 0.7), (-0.5, 0.7)], [(-0.6, -0.7), (-0.4, -0.7), (-0.7, 0.8), (-1, 0.7)],
                 [(0.4, -0.7), (0.6, -0.7), (1, 0.7), (0.7, 0.8)]],
    "dress": [[(-0.3, -0.9), (0.3, -0.9), (0.2, -0.2), (-0.2, -0.2)], [(-0.2, -0.3), (0.2, -0.3), (0.6, 0.9), (-0.6, 0.9)]],
    "coat": [[(-0.6, -0.8), (-0.1, -0.8), (-0.1, 0.9), (-0.6, 0.9)], [(0.1, -0.8), (0.6, -0.8), (0.6, 0.9), (0.1, 0.9)],
             [(-0.6, -0.8), (0.6, -0.8), (0.9, 0.5), (0.7, 0.5), (0.4, -0.5), (-0.4, -0.5), (-0.7, 0.5), (-0.9, 0.5)]],
    "sandal": [[(-0.9, 0.3), (0.9, 0.3), (0.9, 0.5), (-0.9, 0.5)], [(-0.5, 0.3), (-0.3, 0.3), (0.3, -0.2), (0.1, -0.2)],
               [(0.5, 0.3), (0.7, 0.3), (0.9, -0.3), (0.7, -0.3)]],
    "shirt": [[(-0.5, -0.8), (0.5, -0.8), (0.5, 0.8), (-0.5, 0.8)], [(-0.9, -0.7), (-0.5, -0.8), (-0.6, 0.2), (-0.9, 0.2)],
              [(0.5, -0.8), (0.9, -0.7), (0.9, 0.2), (0.6, 0.2)]],
    "sneaker": [[(-0.9, 0.1), (0.9, -0.2), (0.9, 0.4), (-0.9, 0.4)]],
    "bag": [[(-0.8, -0.1), (0.8, -0.1), (0.8, 0.8), (-0.8, 0.8)], [(-0.4, -0.6), (0.4, -0.6), (0.4, -0.5), (-0.4, -0.5)],
            [(-0.4, -0.6), (-0.3, -0.6), (-0.3, 0), (-0.4, 0)], [(0.3, -0.6), (0.4, -0.6), (0.4, 0), (0.3, 0)]],
    "boot": [[(0.1, -0.9), (0.8, -0.9), (0.8, 0.8), (0.1, 0.8)], [(-0.9, 0.4), (0.8, 0.2), (0.8, 0.8), (-0.9, 0.8)]],
}  # fmt: skip


def inside(polygon, x, y):
    """Which points lie in a polygon: an odd number of edges to the right."""
    result = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        crosses = (y0 > y) != (y1 > y)
        with np.errstate(divide="ignore", invalid="ignore"):
            result ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return result


def draw(rng, label):
    grid = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 2)
    y, x = np.meshgrid(grid, grid, indexing="ij")
    angle, skew = rng.normal(0, 0.12), rng.normal(0, 0.1)
    x = (x - rng.normal(0, 0.06)) / rng.uniform(0.7, 0.95)
    y = (y - rng.normal(0, 0.06)) / rng.uniform(0.7, 0.95)
    x, y = np.cos(angle) * x + np.sin(angle) * y + skew * y, np.cos(angle) * y - np.sin(angle) * x
    shape = np.zeros(x.shape, bool)
    for polygon in OUTLINES[NAMES[label]]:
        shape |= inside(polygon, x, y)
    picture = shape * rng.uniform(0.4, 0.9) * (1 + 0.2 * np.sin(rng.uniform(0, 9) * x + rng.uniform(0, 6)))
    picture += rng.normal(0, 0.12, picture.shape)
    return np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)


def pictures(rng, count):
    labels = rng.integers(0, CLASSES, count)
    return np.stack([draw(rng, label) for label in labels]), labels


def train(rng, images, labels, steps=600, batch=100, rate=0.1):
    x = images.reshape(len(images), -1).astype(np.float32) / 255
    w0 = rng.normal(0, 0.05, (HIDDEN, SIDE * SIDE)).astype(np.float32)
    w1 = rng.normal(0, 0.1, (CLASSES, HIDDEN)).astype(np.float32)
    b0, b1 = np.zeros(HIDDEN, np.float32), np.zeros(CLASSES, np.float32)
    for _ in range(steps):
        rows = rng.integers(0, len(x), batch)
        hidden = np.maximum(x[rows] @ w0.T + b0, 0)
        scores = hidden @ w1.T + b1
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        delta = scores / scores.sum(axis=1, keepdims=True)
        delta[np.arange(batch), labels[rows]] -= 1
        delta /= batch
        back = (delta @ w1) * (hidden > 0)
        w1 -= rate * delta.T @ hidden
        b1 -= rate * delta.sum(axis=0)
        w0 -= rate * back.T @ x[rows]
        b0 -= rate * back.sum(axis=0)
    return {"w0": w0, "b0": b0, "w1": w1, "b1": b1}


def main():
    rng = np.random.default_rng(20)
    weights = train(rng, *pictures(rng, 3000))
    images, labels = pictures(rng, 50)
    x = images.reshape(50, -1).astype(np.float32) / 255
    scores = np.maximum(x @ weights["w0"].T + weights["b0"], 0) @ weights["w1"].T + weights["b1"]
    print(f"accuracy on {len(x)} pictures: {np.mean(scores.argmax(axis=1) == labels):.2f}")
    FOLDER.mkdir(exist_ok=True)
    for name, value in {**weights, "images": images, "labels": labels.astype(np.int64), "x": x[:1]}.items():
        np.save(FOLDER / f"{name}.npy", value)


if __name__ == "__main__":
    main()
