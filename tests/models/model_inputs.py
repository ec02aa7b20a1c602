"""Inputs for the real models: for each name, how to make the arrays of one run from a random generator and a size.

Every model is run on at least two inputs, and those with symbolic shapes on several sizes, odd ones among them.
"""

import numpy as np


def image(height=224, width=224, name="input"):
    def make(rng):
        return {name: rng.standard_normal((1, 3, height, width)).astype(np.float32)}

    return make


def text(batch, length, vocabulary, padded=0):
    """Token ids; the last row has `padded` masked tokens at its end."""

    def make(rng):
        mask = np.ones((batch, length), np.int64)
        if padded:
            mask[-1, -padded:] = 0
        return {
            "input_ids": rng.integers(1, vocabulary, (batch, length)),
            "attention_mask": mask,
            "token_type_ids": np.zeros((batch, length), np.int64),
        }

    return make


def tokens(batch, length):
    return lambda rng: {"input_ids": rng.integers(0, 50257, (batch, length))}


def speech(batch, state_scale):
    """A step of Silero VAD: 64 samples of context and 512 new ones of a voice-like buzz, from a given state."""

    def make(rng):
        time = np.arange(576) / 16000
        pitch = rng.uniform(90, 220, (batch, 1))
        sound = sum(np.sin(2 * np.pi * pitch * harmonic * time) / harmonic for harmonic in range(1, 12))
        noise = 0.05 * rng.standard_normal((batch, 576))
        return {
            "input": (0.2 * sound + noise).astype(np.float32),
            "state": (state_scale * rng.standard_normal((2, batch, 128))).astype(np.float32),
            "sr": np.array(16000, np.int64),
        }

    return make


def speech_8k(rng):
    arrays = speech(1, 0.5)(rng)
    arrays["input"] = arrays["input"][:, : 32 + 256].copy()
    arrays["sr"] = np.array(8000, np.int64)
    return arrays


def file_bytes(batch):
    """Magika's tokens of text-like and binary-like content."""

    def make(rng):
        rows = rng.integers(0, 256, (batch, 2048))
        rows[0] = rng.choice(np.frombuffer(b"int main(void) {\n  return x + 12;\n}\n#<>=", np.uint8), 2048)
        rows[0, 700:1100] = 256
        return {"bytes": rows.astype(np.int32)}

    return make


def sequence(rng):
    return {"input": rng.standard_normal((64, 1, 256)).astype(np.float32)}


# model: {case: maker}
CASES = {
    "magika": {"one": file_bytes(1), "three": file_bytes(3)},
    "silero_vad_16k_op15": {"start": speech(1, 0.0), "later": speech(1, 0.5), "batch3": speech(3, 0.5)},
    "silero_vad": {"start": speech(1, 0.0), "later": speech(1, 0.5), "8k": speech_8k},
    "ch_PP-OCRv4_rec": {"320": image(48, 320, "x"), "100": image(48, 100, "x")},
    "ch_ppocr_mobile_v2.0_cls": {"192": image(48, 192, "x"), "75": image(48, 75, "x")},
    "all-MiniLM-L6-v2": {
        "1x128": text(1, 128, 30522),
        "1x7": text(1, 7, 30522),
        "3x33": text(3, 33, 30522, padded=13),
    },
    "bert_small": {"16": text(1, 16, 2000), "masked": text(1, 16, 2000, padded=5)},
    "bert_base": {"128": text(1, 128, 30522)},
    "gpt2": {"1x64": tokens(1, 64), "1x1": tokens(1, 1), "2x13": tokens(2, 13)},
    "lstm_bidirectional": {"64": sequence},
    "resnet18": {"224": image()},
    "resnet50": {"224": image()},
    "mobilenet_v2": {"224": image()},
    "mobilenet_v3_small": {"224": image()},
    "efficientnet_b0": {"224": image()},
    "vit_tiny": {"224": image()},
}
