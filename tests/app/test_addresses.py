"""Whose keys go where: new addresses are told apart from known ones, and get no key without a word of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.project import make_project

from raggs.app import addresses
from raggs.app.addresses import Destination, is_known, permit, settings_file, trust_hosts
from raggs.app.housekeeping import validate
from raggs.app.run import run
from raggs.base.errors import PrerequisiteError
from raggs.config.load import load_config
from raggs.config.models import RunConfig

JUDGE = {"judge": {"type": "litellm", "model": "openai/judge"}}
INDEX = {"retrievers": [{"type": "elasticsearch", "index": "i", "url": "https://search.example.org"}]}


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv(addresses.TRUSTED, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setattr(addresses, "_approved", set())


def config(folder: Path, address: str = "https://models.example.org/v1", **sections: Any) -> RunConfig:
    project = make_project(folder, queries=1, corpus=4, **{"judge": JUDGE, "llm": {"api_base": address}, **sections})
    return load_config(project.config).run


def test_a_new_address_gets_no_key(tmp_path: Path) -> None:
    asked = config(tmp_path)
    with pytest.raises(
        PrerequisiteError, match=r"OPENAI_API_KEY would be sent to https://models.example.org/v1"
    ) as told:
        permit(asked, ["judge"])
    assert "--yes" in str(told.value)
    assert str(settings_file()) in str(told.value)
    permit(asked, ["retrieve", "merge"])  # where no model is asked, no key is sent
    with pytest.raises(PrerequisiteError, match="an address that you have not approved"):
        run(asked, start="judge")
    shown: list[Destination] = []
    permit(asked, ["judge"], lambda new: not shown.extend(new))
    assert [found.keys for found in shown] == [("OPENAI_API_KEY",)]
    permit(asked, ["rank"])  # a yes is for the process


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost:8000",
        "http://[::1]:8000/v1",
        "http://127.8.9.1",
        "https://api.openai.com/v1",
    ],
)
def test_this_machine_and_the_providers_own_address_are_known(address: str, tmp_path: Path) -> None:
    permit(config(tmp_path, address), ["judge"])


@pytest.mark.parametrize(
    "address",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com.example.org",
        "https://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://0x7f000001.example.org/",
        "https://models.example.org:444",
    ],
)
def test_what_only_looks_known_is_new(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.org/v1")
    with pytest.raises(PrerequisiteError, match="an address that you have not approved"):
        permit(config(tmp_path, address), ["judge"])


def test_the_users_own_settings_make_an_address_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = config(tmp_path, "https://Models.example.org:8443/v1")
    with monkeypatch.context() as patch:
        patch.setenv(addresses.TRUSTED, "other.example.org, models.example.org:8443")
        permit(asked, ["judge"])
    with monkeypatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", "https://models.example.org:8443")
        permit(asked, ["judge"])
    trust_hosts(["models.example.org"])
    permit(asked, ["judge"])
    assert settings_file().read_text() == "models.example.org\n"


def test_no_key_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    permit(config(tmp_path, retrieve=INDEX), ["embed", "judge", "rank"])


def test_a_server_of_elasticsearch_is_looked_at_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tmp_path, retrieve=INDEX)
    monkeypatch.setenv("ELASTIC_API_KEY", "0123456789abcdef")
    with pytest.raises(PrerequisiteError, match=r"ELASTIC_API_KEY would be sent to https://search.example.org"):
        validate(tmp_path / "raggs.yaml")


def test_a_dotenv_makes_no_address_known_and_runs_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import os

    foreign = {
        "PYTHONPATH": "/evil",
        "DASK_DISTRIBUTED__WORKER__PRELOAD": "evil.py",
        "OPENAI_BASE_URL": "https://evil.example.org",
        "AZURE_API_BASE": "https://evil.example.org",
        "HTTPS_PROXY": "http://evil.example.org",
        "SSL_CERT_FILE": "evil.pem",
        "AWS_CONFIG_FILE": "evil",
        "LD_PRELOAD": "evil.so",
        "PATH": "/evil",
        addresses.TRUSTED: "evil.example.org",
        "RAGGS_RUN_YES": "1",
        "XDG_CONFIG_HOME": "/evil",
        "NETRC": "evil",
    }
    given = {"MISTRAL_API_KEY": "given", "AWS_SESSION_TOKEN": "given", "MODEL": "openai/given"}
    for name in {*foreign, *given} - {"PATH", "XDG_CONFIG_HOME"}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "my own key, long")
    lines = {**foreign, **given, "RAGGS__RANK__MAX_CALLS": "7", "OPENAI_API_KEY": "theirs"}
    (tmp_path / ".env").write_text("".join(f'{name}="{value}"\n' for name, value in lines.items()))
    found = config(tmp_path, judge={"judge": {"type": "litellm", "model": "${MODEL}"}})
    assert found.rank.max_calls == 7
    assert found.judge.judge.model_dump()["model"] == "openai/given"
    assert [os.environ.get(name) for name in given] == ["given", "given", None]
    assert os.environ["OPENAI_API_KEY"] == "my own key, long"
    assert not [name for name, value in foreign.items() if os.environ.get(name) == value]
    (told,) = [record.getMessage() for record in caplog.records if record.name == "raggs.config.source"]
    assert all(name in told for name in foreign)
    assert "MODEL" not in told
    assert "evil" not in told
    for name in given:
        os.environ.pop(name, None)


@pytest.mark.parametrize(
    "address", ["https://api.voyageai.com/v1", "https://api.jina.ai/v1", "https://api.cohere.com/v2"]
)
def test_the_homes_of_rerankers_are_known(address):
    assert is_known(Destination("llm.api_base", address, ("A_KEY",)))
    assert not is_known(Destination("llm.api_base", address.replace("https", "http"), ("A_KEY",)))
