"""Small models made by the test: a folder with model.onnx and tokenizer.json, and the same sums in NumPy.

The tokenizer knows a few words and splits at blanks and punctuation. Each word has a vector. The cross-encoder's logit
is a scale times the product of the mean vectors of query and passage; the embedder gives each token's vector; so does
the model of late interaction.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from support import project

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[Q]", "[D]")
WORDS = """a of the on in is was how wing lift slipstream measured cat sleeps mat day most for flat plate boundary layer
transition auftrieb eines query passage : .""".split()  # noqa: SIM905
VOCABULARY = {word: number for number, word in enumerate((*SPECIAL, *WORDS, *project.WORDS))}
DIMS = 8


def vectors(seed: int = 1) -> np.ndarray:
    """A vector for each word, shape (words, DIMS)."""
    return np.random.default_rng(seed).normal(size=(len(VOCABULARY), DIMS)).astype(np.float32)


def write_tokenizer(folder: Path, padded: bool = True) -> Tokenizer:
    """With what tokenizers of models come with: padding and a limit of their own, which raggs must not mind."""
    found = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    found.normalizer = normalizers.Lowercase()
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])],
    )
    if padded:
        found.enable_padding(length=16, pad_id=0, pad_token="[PAD]")
        found.enable_truncation(4)
    found.save(str(folder / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


def save(folder: Path, nodes: list, inputs: list[str], output: tuple[str, list], constants: dict, file: str) -> None:
    whole = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs]
    made = helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "small", whole, [made], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / file))


def write_cross_encoder(
    folder: Path, outputs: int = 1, scale: float = 3.0, seed: int = 1, file: str = "model.onnx"
) -> Tokenizer:
    """A model of pairs, which gives `outputs` logits: of two the first is minus the second's half."""
    folder.mkdir(parents=True, exist_ok=True)

    def mean(of: str, name: str) -> list:
        return [
            helper.make_node("Unsqueeze", [of, "last"], [f"{name}_mask"]),
            helper.make_node("Mul", ["words", f"{name}_mask"], [f"{name}_words"]),
            helper.make_node("ReduceSum", [f"{name}_words", "middle"], [f"{name}_sum"], keepdims=0),
            helper.make_node("ReduceSum", [of, "middle"], [f"{name}_count"], keepdims=1),
            helper.make_node("Div", [f"{name}_sum", f"{name}_count"], [name]),
        ]

    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["mask", "types"], ["second"]),
        helper.make_node("Sub", ["mask", "second"], ["first"]),
        *mean("first", "query"),
        *mean("second", "passage"),
        helper.make_node("Mul", ["query", "passage"], ["product"]),
        helper.make_node("ReduceSum", ["product", "middle"], ["alike"], keepdims=1),
        helper.make_node("MatMul", ["alike", "scales"], ["logits"]),
    ]
    scales = np.float32([[scale]] if outputs == 1 else [[-scale / 2, scale][:outputs] + [0.0] * (outputs - 2)])
    constants = {"table": vectors(seed), "last": np.int64([2]), "middle": np.int64([1]), "scales": scales}
    save(
        folder,
        nodes,
        ["input_ids", "attention_mask", "token_type_ids"],
        ("logits", ["batch", outputs]),
        constants,
        file,
    )
    return write_tokenizer(folder)


def cross_logit(tokenizer: Tokenizer, query: str, passage: str, scale: float = 3.0, seed: int = 1) -> float:
    """The same by NumPy, in float64."""
    found = tokenizer.encode(query, passage)
    table, ids, types = vectors(seed).astype(np.float64), np.array(found.ids), np.array(found.type_ids)
    return float(scale * table[ids[types == 0]].mean(axis=0) @ table[ids[types == 1]].mean(axis=0))


def write_embedder(
    folder: Path, seed: int = 1, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), pooled: bool = False
) -> Tokenizer:
    """A model that gives each token's vector; `pooled`: the sum of all of them, padding included."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"])]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", ["words", "middle"], ["sentence_embedding"], keepdims=0))
    else:
        nodes.append(helper.make_node("Identity", ["words"], ["last_hidden_state"]))
    output = ("sentence_embedding", ["batch", DIMS]) if pooled else ("last_hidden_state", ["batch", "tokens", DIMS])
    constants = {"table": vectors(seed), **({"middle": np.int64([1])} if pooled else {})}
    save(folder, nodes, list(inputs), output, constants, "model.onnx")
    return write_tokenizer(folder)
