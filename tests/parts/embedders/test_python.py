"""A Python function as an embedder: unit vectors whatever it gives, and a sentence where it gives none."""

from __future__ import annotations

import numpy as np
import pytest
from support.contracts import write_module

from raggs.base.errors import ProviderError
from raggs.parts.callables import PythonEmbedder


@pytest.fixture
def make(request, tmp_path):
    def made(body, **options):
        module = write_module(tmp_path, request, f"import numpy as np\ndef embed(texts):\n    {body}\n")
        config = PythonEmbedder.Config(callable=f"{module}:embed", folder=tmp_path, dims=2, **options)
        return PythonEmbedder(config, None)

    return made


def test_lists_become_unit_vectors_batch_by_batch(make):
    vectors = make("return [[3.0 * len(text), 4.0 * len(text)] for text in texts]", batch=2).embed(["a", "", "bc"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [pytest.approx([0.6, 0.8]), [0, 0], pytest.approx([0.6, 0.8])]
    assert make("return []").embed([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "instead of an array of numbers|shape"),
        ("return [['a', 'b']] * len(texts)", "instead of an array of numbers"),
        (
            "return np.zeros((1, 2))",
            r"returned an array of shape \(1, 2\) instead of \(2, 2\) for the text 'one' and 1 more",
        ),
        ("return np.array([[1, 1], [1, np.nan]])", "returned a vector that is not finite for the text 'two'"),
        ("raise OSError('no model')", r"embed raised OSError on the text 'one' and 1 more: no model"),
    ],
)
def test_what_is_no_vector_is_told_in_a_sentence(make, body, message):
    with pytest.raises(ProviderError, match=message):
        make(body).embed(["one", "two"])


@pytest.mark.parametrize("scale", ["1e300", "1e-300", "5e-324", "1e154", "1e-160"])
def test_a_vector_of_any_finite_size_comes_to_unit_length(make, scale):
    vectors = make(f"return np.array([[1.0, 1.0], [0.0, 0.0], [3.0, 4.0]])[: len(texts)] * {scale}").embed(
        ["a", "b", "c"]
    )
    assert vectors[0].tolist() == pytest.approx([0.5**0.5] * 2)
    assert vectors[1].tolist() == [0, 0]
    assert np.linalg.norm(vectors[2]) == pytest.approx(1)


@pytest.mark.parametrize("number", ["1j", "'1'", "10**400"])
def test_what_is_no_real_number_is_refused(make, number):
    with pytest.raises(ProviderError, match="instead of an array of numbers"):
        make(f"return [[{number}, {number}]] * len(texts)").embed(["one", "two"])


def test_vectors_of_another_version_of_the_file_are_others(make):
    before = make("return np.ones((len(texts), 2))").identity
    assert make("return np.ones((len(texts), 2))", batch=1).identity == before
    assert make("return np.zeros((len(texts), 2))").identity != before
