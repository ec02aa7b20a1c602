"""Exports test models from PyTorch to ONNX: `export_models.py NAME OUT.onnx [--weights FOLDER]`.

Run by scripts/models.py in .venv-export. Every model has seeded random weights (all-MiniLM-L6-v2 has its real ones), set so
that activations keep their size through the depth and the output depends on the input: He/LeCun initialisation, batch-norm
statistics taken from random images, random batch-norm scale and shift.
"""

import argparse
import warnings

import torch
import torchvision
import transformers
from torch import nn

OPSET = 17


def calibrate(model, size):
    """Gives a convolutional network sensible batch-norm statistics, scales and shifts."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.7, 1.3)
            nn.init.normal_(module.bias, 0.0, 0.2)
            module.momentum = None  # plain average over the batches below
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0.0, module.in_features**-0.5)
    model.train()
    for module in model.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.eval()
    with torch.no_grad():
        for _ in range(3):
            # White noise, and images with coarse structure as in photographs.
            coarse = nn.functional.interpolate(torch.randn(2, 3, 14, 14), size=size, mode="bilinear")
            model(torch.cat([torch.randn(4, 3, size, size), coarse + 0.5 * torch.randn(2, 3, size, size)]))
    return model.eval()


def image_model(build):
    def make():
        model = calibrate(build(weights=None), 224)
        return model, (torch.randn(1, 3, 224, 224),), ["input"], ["output"], {}

    return make


def scale_linears(model):
    """LeCun initialisation: without it, attention of a random transformer averages its input away."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embed" not in name and "wte" not in name and "wpe" not in name:
            fan_in = (
                parameter.shape[0]
                if "c_attn" in name or "c_fc" in name or "c_proj" in name
                else parameter.shape[1]
            )
            nn.init.normal_(parameter, 0.0, fan_in**-0.5)
        elif parameter.dim() == 1 and "bias" in name:
            nn.init.normal_(parameter, 0.0, 0.1)
    return model.eval()


def vit_tiny():
    torch.backends.mha.set_fastpath_enabled(False)
    model = torchvision.models.VisionTransformer(
        image_size=224, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192, mlp_dim=768
    )
    return scale_linears(model), (torch.randn(1, 3, 224, 224),), ["input"], ["output"], {}


class TextEncoder(nn.Module):
    """BERT with plain tensors in and out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        # The mask is handed over in its additive form, which every exporter of BERT has in its graph.
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        hidden = self.model.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        for layer in self.model.encoder.layer:
            hidden = layer(hidden, mask)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return hidden, self.model.pooler(hidden)


def text_inputs(vocabulary, batch, length):
    ids = torch.randint(1, vocabulary, (batch, length))
    return ids, torch.ones(batch, length, dtype=torch.int64), torch.zeros(batch, length, dtype=torch.int64)


TEXT_NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def bert(hidden, layers, heads, intermediate, vocabulary, length):
    def make():
        config = transformers.BertConfig(
            vocab_size=vocabulary,
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=intermediate,
            attn_implementation="eager",
        )
        model = TextEncoder(scale_linears(transformers.BertModel(config))).eval()
        return (
            model,
            text_inputs(vocabulary, 1, length),
            TEXT_NAMES,
            ["last_hidden_state", "pooler_output"],
            {},
        )

    return make


class SentenceEncoder(nn.Module):
    """all-MiniLM-L6-v2: token states and the normalised mean over the unmasked tokens."""

    def __init__(self, model):
        super().__init__()
        self.encoder = TextEncoder(model)

    def forward(self, input_ids, attention_mask, token_type_ids):
        states, _ = self.encoder(input_ids, attention_mask, token_type_ids)
        weights = attention_mask.unsqueeze(-1).to(torch.float32)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return states, nn.functional.normalize(mean, p=2.0, dim=1)


def minilm(folder):
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    axes = {name: {0: "batch", 1: "length"} for name in TEXT_NAMES}
    axes["token_embeddings"] = {0: "batch", 1: "length"}
    axes["sentence_embedding"] = {0: "batch"}
    outputs = ["token_embeddings", "sentence_embedding"]
    return SentenceEncoder(model).eval(), text_inputs(30522, 2, 16), TEXT_NAMES, outputs, axes


class CausalLm(nn.Module):
    """GPT-2 without a key-value cache; the causal mask is made from the length in the graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        body = self.model.transformer
        length = input_ids.shape[1]
        hidden = body.wte(input_ids) + body.wpe(torch.arange(length, device=input_ids.device).unsqueeze(0))
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        for block in body.h:
            hidden = block(hidden, attention_mask=mask)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return self.model.lm_head(body.ln_f(hidden))


def gpt2():
    config = transformers.GPT2Config(attn_implementation="eager")
    model = CausalLm(scale_linears(transformers.GPT2LMHeadModel(config))).eval()
    axes = {"input_ids": {0: "batch", 1: "length"}, "logits": {0: "batch", 1: "length"}}
    return model, (torch.randint(0, config.vocab_size, (1, 8)),), ["input_ids"], ["logits"], axes


def lstm_bidirectional():
    model = nn.LSTM(256, 256, bidirectional=True).eval()
    return model, (torch.randn(64, 1, 256),), ["input"], ["output", "hidden", "cell"], {}


MODELS = {
    "resnet18": image_model(torchvision.models.resnet18),
    "resnet50": image_model(torchvision.models.resnet50),
    "mobilenet_v2": image_model(torchvision.models.mobilenet_v2),
    "mobilenet_v3_small": image_model(torchvision.models.mobilenet_v3_small),
    "efficientnet_b0": image_model(torchvision.models.efficientnet_b0),
    "vit_tiny": vit_tiny,
    "bert_base": bert(768, 12, 12, 3072, 30522, 128),
    "bert_small": bert(128, 2, 4, 512, 2000, 16),
    "gpt2": gpt2,
    "lstm_bidirectional": lstm_bidirectional,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*MODELS, "all-MiniLM-L6-v2"])
    parser.add_argument("out")
    parser.add_argument("--weights", help="folder with config.json and model.safetensors (all-MiniLM-L6-v2)")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(2)
    torch.manual_seed(20)
    if args.name == "all-MiniLM-L6-v2":
        model, inputs, input_names, output_names, axes = minilm(args.weights)
    else:
        model, inputs, input_names, output_names, axes = MODELS[args.name]()
    with torch.no_grad():
        torch.onnx.export(
            model,
            inputs,
            args.out,
            input_names=input_names,
            output_names=output_names,
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


if __name__ == "__main__":
    main()
