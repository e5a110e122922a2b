"""A Python function as a retriever: what it gives, what counts of it, and what is said when it fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.contracts import write_module

from raggs.base.errors import ConfigError, DataError, ProviderError
from raggs.parts.callables import PythonRetriever

SEARCH = """
PASSAGES = {"cat": "cat", "copy": "cat", "wing": "wing", "plate": "flat plate"}
SCORES = {"cat": 2.5, "copy": 2.5, "wing": 1.0, "plate": 0.5}

def search(query, k):
    return [(doc_id, SCORES[doc_id]) for doc_id, word in PASSAGES.items() if word in query][:k]
"""


def contract_case(folder, request):
    return {"callable": f"{write_module(folder, request, SEARCH)}:search", "folder": folder}


@pytest.fixture
def make(request, tmp_path, context):
    """A retriever whose `search` has this body."""

    def made(body, name="search", **options):
        module = write_module(tmp_path, request, f"def search(query, k):\n    {body}\n")
        config = PythonRetriever.Config(callable=f"{module}:{name}", folder=tmp_path, **options)
        return PythonRetriever(config, context)

    return made


def test_ids_alone_get_falling_scores(make, ask):
    ((first, second),) = make("return ['wing', 'cat']").search([ask("a cat")])
    assert (first.doc_id, second.doc_id) == ("wing", "cat")
    assert first.score > second.score > 0


def test_scores_of_numpy_are_scores(make, ask):
    ((hit,),) = make("import numpy; return [('cat', numpy.float32(0.5))]").search([ask("a cat")])
    assert type(hit.score) is float
    assert hit.score == float(np.float32(0.5))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "returned NoneType instead of a list for query q1"),
        ("return 'cat'", "returned str instead of a list"),
        ("return ['cat', 'dog']", "returned 'dog' for query q1 .*, which the corpus does not contain"),
        ("return ['cat', 'cat']", "returned 'cat' twice"),
        ("return [('cat', float('nan'))]", "returned score nan of 'cat'"),
        ("return [('cat', 'high')]", "neither a doc_id nor a pair"),
        ("return [3]", "returned 3 for query q1 .*, which is neither a doc_id"),
    ],
)
def test_what_is_no_list_of_hits_is_told_in_a_sentence(make, ask, body, message):
    with pytest.raises(DataError, match=message) as caught:
        list(make(body).search([ask("a cat")]))
    assert caught.value.remedy


def test_what_it_raises_names_function_query_line_and_cause(make, ask, tmp_path):
    with pytest.raises(
        ProviderError, match=r"user_\d+:search raised ZeroDivisionError on query q1 \('a cat'\)"
    ) as caught:
        list(make("return 1 / 0").search([ask("a cat")]))
    assert Path(caught.value.where).parent == tmp_path
    assert caught.value.line == 2


def test_a_missing_function_or_module_is_found_before_anything_is_searched(make, context, tmp_path):
    with pytest.raises(ConfigError, match=r"has no function 'find'; its functions: search"):
        make("return []", name="find").check()
    lost = PythonRetriever(PythonRetriever.Config(callable="no_such_module:search", folder=tmp_path), context)
    with pytest.raises(ConfigError, match="there is no module 'no_such_module'"):
        lost.check()
    with pytest.raises(ConfigError, match="there is no module 'no_such_module'"):
        lost.causes()


def test_a_module_that_cannot_be_imported(make, tmp_path):
    retriever = make("return []")
    (next(tmp_path.glob("*.py"))).write_text("import no_such_package")
    problem = r"cannot be imported .ModuleNotFoundError: No module named 'no_such.*repair the module, or install"
    with pytest.raises(ConfigError, match=problem):
        retriever.check()


def test_the_content_of_its_file_counts_and_telling_so_imports_nothing(make, tmp_path):
    before = make("raise SystemExit").causes()
    assert make("raise SystemExit").causes() == before
    assert before["source"]
    assert make("raise SystemExit(1)").causes() != before


def test_of_an_installed_package_the_version_counts(context, tmp_path):
    causes = PythonRetriever(PythonRetriever.Config(callable="rapidfuzz.fuzz:ratio", folder=tmp_path), context).causes()
    assert causes["source"]
    assert causes["package"][0].split()[0].lower() == "rapidfuzz"


FRAMEWORKS = """
class Document:
    def __init__(self, text, metadata=None, id=None):
        self.page_content, self.metadata, self.id = text, metadata or {}, id

class Node:
    def __init__(self, text, metadata=None, id_="node-1"):
        self.text, self.metadata, self.id_ = text, metadata or {}, id_

class NodeWithScore:
    def __init__(self, node, score=None):
        self.node, self.score = node, score

class Chain:
    def __init__(self, documents):
        self.documents = documents
    def invoke(self, query):
        return self.documents

class Index:
    def __init__(self, nodes):
        self.nodes = nodes
    def retrieve(self, query):
        return self.nodes

CAT = "A cat sleeps on  the mat\\nfor most of the day."
by_key = Chain([Document("x", {"source": "wing"}), Document("y", {"source": "cat"})])
by_doc_id = Chain([Document("x", {"doc_id": "plate"}, "other")])
by_id = Chain([Document("x", {}, "wing")])
by_number = Chain([Document("x", {"page": 7})])
empty = Chain([Document("", {}, "wing")])
nested = Chain([Document("x", {"source": ["wing"]})])
by_text = Chain([Document(CAT)])
scored = Index([NodeWithScore(Node("x", {}, "plate"), 0.0), NodeWithScore(Node(CAT), 0.25)])
strange = Chain([Document("A dog.", {"source": "dog"}, "dog")])
"""


@pytest.fixture
def framework(request, tmp_path, context):
    module = write_module(tmp_path, request, FRAMEWORKS)
    return lambda name, **options: PythonRetriever(
        PythonRetriever.Config(callable=f"{module}:{name}", folder=tmp_path, **options), context
    )


@pytest.mark.parametrize(
    ("name", "options", "ids"),
    [
        ("by_key", {"id_field": "source"}, ["wing", "cat"]),
        ("by_key", {"id_field": "source", "k": 1}, ["wing"]),
        ("by_doc_id", {}, ["plate"]),
        ("by_id", {}, ["wing"]),
        ("empty", {}, ["wing"]),
        ("by_text", {}, ["cat"]),
        ("scored", {}, ["cat", "plate"]),
        ("scored.retrieve", {}, ["cat", "plate"]),
    ],
)
def test_retrievers_of_frameworks(framework, ask, name, options, ids):
    (hits,) = framework(name, **options).search([ask("a cat")])
    assert [hit.doc_id for hit in hits] == ids


def test_scores_of_frameworks_are_used(framework, ask):
    (hits,) = framework("scored").search([ask("a cat")])
    assert [hit.score for hit in hits] == [0.25, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"a document for query q1 \('a cat'\) that is not in the corpus: id 'dog', text 'A dog\.'"),
        ({"id_field": "source"}, r"not in the corpus: metadata source 'dog', text 'A dog\.'"),
        ({"id_field": "page"}, r"not in the corpus: metadata page None"),
    ],
)
def test_a_document_that_is_not_in_the_corpus(framework, ask, options, message):
    with pytest.raises(DataError, match=message) as caught:
        list(framework("strange", **options).search([ask("a cat")]))
    assert caught.value.remedy.startswith("set id_field")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("by_number", {"id_field": "page"}, "metadata page '7'"),
        ("nested", {"id_field": "source"}, "metadata source None"),
    ],
)
def test_metadata_with_numbers_are_ids_and_lists_are_not(framework, ask, name, options, message):
    with pytest.raises(DataError, match=message):
        list(framework(name, **options).search([ask("a cat")]))
