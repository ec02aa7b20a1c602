"""Attention in all its variants, drawn at random: masks, causal frontiers, windows, past keys, lengths, groups of heads,
caps. Right is onnx's reference evaluator."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator


def variant(seed):
    """Opset, inputs by name, attributes and the number of results."""
    rng = np.random.default_rng(seed)

    def chance(p):
        return rng.random() < p

    def values(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    batch, groups, kv_heads = (int(rng.integers(1, 3)) for _ in range(3))
    heads, queries, keys, size = groups * kv_heads, *(int(rng.integers(1, 7)) for _ in range(2)), 4
    opset, attributes = int(rng.choice([23, 24, 25])), {}
    given = {"Q": values(batch, heads, queries, size), "K": values(batch, kv_heads, keys, size)}
    given["V"] = values(batch, kv_heads, keys, 6)
    memory = rng.choice(["none", "past", "lengths"] if opset > 23 else ["none", "past"])
    total = keys
    if memory == "past":
        past = int(rng.integers(0, 4))
        given |= {
            "past_key": values(batch, kv_heads, past, size),
            "past_value": values(batch, kv_heads, past, 6),
        }
        total += past
    if memory == "lengths":
        given["nonpad_kv_seqlen"] = rng.integers(1, keys + 1, batch)
    mask = rng.choice(["none", "bool", "float"])
    if mask != "none":
        lead = [(), (1, 1), (batch, 1), (batch, heads), (1, heads)][int(rng.integers(0, 5))]
        short = int(rng.integers(0, total)) if opset > 23 and chance(0.3) else 0
        given["attn_mask"] = values(*lead, queries, total - short)
        if mask == "bool":
            given["attn_mask"] = given["attn_mask"] > -0.5
    if chance(0.6):
        attributes["is_causal"] = 1
    for name in ["left_window_size", "right_window_size"] if opset > 24 else []:
        if chance(0.6):
            attributes[name] = int(rng.integers(0, 4))
    attributes |= {"scale": 0.7} if chance(0.3) else {}
    attributes |= {"softcap": 2.0} if chance(0.3) else {}
    if chance(0.3):
        for name, number in {"Q": heads, "K": kv_heads, "V": kv_heads}.items():
            given[name] = given[name].transpose(0, 2, 1, 3).reshape(batch, -1, number * given[name].shape[3])
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    return opset, given, attributes, 3 if memory == "past" else 1


def model_of(opset, given, attributes, count, symbolic):
    slots = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    names = [name if name in given else "" for name in slots]
    sizes = {
        name: [
            f"{name}{d}" if symbolic and (d == 0 or (d == 2 and value.ndim == 4)) else size
            for d, size in enumerate(value.shape)
        ]
        for name, value in given.items()
    }
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), sizes[name])
        for name, value in given.items()
    ]
    results = [f"o{k}" for k in range(count)]
    node = helper.make_node("Attention", names, results, **attributes)
    graph = helper.make_graph([node], "attention", inputs, [onnx.ValueInfoProto(name=r) for r in results])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


@pytest.mark.parametrize("options", [(), ("--fast-math",)])
@pytest.mark.parametrize("seed", range(12))
def test_variants(bevel, tmp_path, seed, options):
    opset, given, attributes, count = variant(seed)
    model = model_of(opset, given, attributes, count, symbolic=seed % 2 == 1)
    onnx.save(model, tmp_path / "m.onnx")
    arguments = [*options, "--output-dir", tmp_path, "--npy", "--threads", 1]
    for name, value in given.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path}/{name}.npy"]
    bevel("run", tmp_path / "m.onnx", *arguments, timeout=60)
    for k, want in enumerate(ReferenceEvaluator(model).run(None, given)):
        np.testing.assert_allclose(
            np.load(tmp_path / f"output_{k}.npy"), want, rtol=1e-4, atol=1e-5, strict=True
        )
