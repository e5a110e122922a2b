"""Canaries in every place where a key could stand: none reaches a file, the screen or a sentence."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import invoke
from support.project import Project, make_project, raggs

from raggs.app.run import open_runner
from raggs.base.errors import ConfigError
from raggs.config.load import load_config

CANARY = "canary+0123456789/abcdefghij"
LITERAL = "literal+9876543210/jihgfedcba"

IN_FILE: dict[str, dict[str, Any]] = {
    "a parameter": {"llm": {"parameters": {"api_key": LITERAL}}},
    "in capitals": {"llm": {"parameters": {"API_KEY": LITERAL}}},
    "of amazon": {"llm": {"parameters": {"aws_secret_access_key": LITERAL}}},
    "of azure": {"llm": {"parameters": {"azure_ad_token": LITERAL}}},
    "nested": {"llm": {"parameters": {"extra_body": {"api_key": LITERAL}}}},
    "in a list": {"llm": {"parameters": {"extra_body": [{"headers": [{"Authorization": LITERAL}]}]}}},
    "in an address": {"llm": {"api_base": f"http://127.0.0.1:9/v1?api_key={LITERAL}"}},
    "as a user": {"llm": {"api_base": f"http://{LITERAL.replace('/', '-')}@127.0.0.1:9/v1"}},
    "of an index": {"retrieve": {"retrievers": [{"type": "elasticsearch", "index": "i", "api_key": LITERAL}]}},
    "an unknown key": {"openai_api_key": LITERAL},
    "a variable in a parameter": {"llm": {"parameters": {"user": "${OPENAI_API_KEY}"}}},
    "a variable in a longer text": {"llm": {"parameters": {"user": "me ${OPENAI_API_KEY} you"}}},
    "a variable in an address": {"llm": {"api_base": "http://127.0.0.1:9/${OPENAI_API_KEY}/v1"}},
    "a variable in a number": {"rank": {"top": "${OPENAI_API_KEY}"}},
    "a variable in a choice": {"judge": {"mode": "${OPENAI_API_KEY}"}},
    "a variable in an unknown key": {"rank": {"topp": "${OPENAI_API_KEY}"}},
    "a variable in a path": {"workspace": "runs/${OPENAI_API_KEY}"},
    "a variable as the name": {"name": "${OPENAI_API_KEY}"},
    "its value": {"llm": {"parameters": {"user": CANARY}}},
    "its value in a text": {"llm": {"parameters": {"stop": [f"x {CANARY}"]}}},
    "its value as a key": {"llm": {"prices": {CANARY: {"input": 1, "output": 1}}}},
    "its value in a wrong place": {"rank": CANARY},
    "a short one by name": {"llm": {"parameters": {"password": "abc"}}},
    "the form of one": {"llm": {"parameters": {"user": f"sk-{LITERAL.replace('/', '').replace('+', '')}"}}},
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def holders(folder: Path, *secrets: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    return [path for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)]


def refused(project: Project, *arguments: str) -> None:
    parts = (CANARY, LITERAL, CANARY[7:17], LITERAL[8:18])
    for command in (("run",), ("validate",), ("config", "show"), ("run", "--debug"), ("run", "--dry-run")):
        done = invoke(*command, "--config", project.config, *arguments)
        assert done.exit_code == 5, done.stderr
        assert not [part for part in parts if part in done.stdout + done.stderr], done.stderr
    assert holders(project.folder, *parts) == []


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("case", IN_FILE)
def test_a_key_in_the_file_is_refused_unseen(case: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=4)
    settings = project.settings() | {"embed": {"embedder": None}}
    for section, value in IN_FILE[case].items():
        both = isinstance(settings.get(section), dict) and isinstance(value, dict)
        settings[section] = settings[section] | value if both else value
    project.config.write_text(yaml.safe_dump(settings))
    refused(project)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("llm.parameters.api_key", LITERAL),
        ("llm.parameters.extra_body.secret", LITERAL),
        ("llm.api_base", f"http://127.0.0.1:9/?token={LITERAL}"),
        ("llm.parameters.user", CANARY),
        ("rank.top", CANARY),
        ("nothing.there", CANARY),
    ],
)
def test_a_key_from_elsewhere_is_refused_unseen(
    setting: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path, queries=1, corpus=4)
    refused(project, "--set", f"{setting}={value}")
    monkeypatch.setenv("RAGGS__" + setting.upper().replace(".", "__"), value)
    refused(project)


def test_a_key_in_a_configuration_made_in_python_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=4)
    config = load_config(project.config).run
    changed = config.model_copy(update={"llm": config.llm.model_copy(update={"parameters": {"user": CANARY}})})
    with pytest.raises(ConfigError, match="contains the value of OPENAI_API_KEY") as caught, open_runner(changed):
        pass
    assert CANARY not in str(caught.value)
    assert not project.run.exists()


def test_what_a_function_of_the_user_says_of_a_key_is_masked(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=6)
    body = "    raise ValueError('no access with ' + os.environ['OPENAI_API_KEY'])"
    code = f"import os\ndef grade(query, passage):\n{body}\n"
    (tmp_path / "mine.py").write_text(code)
    project.change(judge={"judge": {"type": "python", "callable": "mine:grade"}})
    done = raggs("run", "--config", project.config)
    assert done.returncode == 7
    for command in (["status", project.run], ["why", project.run, "judge"], ["cost", project.run]):
        again = raggs(*command)
        assert CANARY not in again.stdout + again.stderr
    assert CANARY not in done.stdout + done.stderr
    assert holders(tmp_path, CANARY) == []
    assert "no access with [redacted]" in (project.run / "judge.jsonl").read_text()


def test_the_sentence_names_the_place_and_the_remedy(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=4, llm={"parameters": {"extra_body": {"api_key": LITERAL}}})
    done = invoke("validate", "--config", project.config)
    assert "llm.parameters.extra_body.api_key: a key must not be in a file" in done.stderr
    assert "raggs.yaml:" in done.stderr
    assert "set the provider's environment variable" in done.stderr


class Ear:
    """Listens on a port of this machine and counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self.heard: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def listen(self) -> list[bytes]:
        """What was sent so far."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                return self.heard
            with connection:
                connection.settimeout(0.2)
                try:
                    self.heard.append(connection.recv(4096))
                except TimeoutError:
                    self.heard.append(b"")

    def close(self) -> None:
        self._socket.close()


def test_reading_a_foreign_run_sends_nothing_to_the_addresses_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path, queries=1, corpus=6)
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    monkeypatch.setenv("ELASTIC_API_KEY", CANARY)
    with closing(Ear()) as ear:
        manifest = project.manifest()
        place = {"type": "elasticsearch", "index": "i", "url": ear.url, "retries": 0}
        manifest["config"]["retrieve"]["retrievers"] = [place]
        manifest["config"]["corpus"] = place
        manifest["config"]["llm"]["api_base"] = ear.url
        manifest["stages"]["retrieve"]["params"]["retrievers"] = [place]
        (project.run / "manifest.json").write_text(json.dumps(manifest))
        project.config.unlink()
        qid = "q00"
        for command in (
            ["status", project.run],
            ["why", project.run, "retrieve"],
            ["why", project.run, "--query", qid],
            ["cost", project.run],
            ["audit", project.run],
            ["export", project.run, "--format", "trec", "--out", tmp_path / "out"],
            ["eval", "--golden", project.run, "--run", project.run],
        ):
            done = invoke(*command)
            assert not isinstance(done.exception, OSError)
            assert ear.listen() == [], command


def test_a_foreign_configuration_gets_the_key_only_after_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """127.0.0.1 is always known, so this goes by another name of this machine."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("ELASTIC_API_KEY", CANARY)
    place = {"type": "elasticsearch", "index": "i", "retries": 0, "timeout": 1}
    with closing(socket.create_server(("0.0.0.0", 0))) as ear:  # its own address is not loopback
        url = f"http://0.0.0.0:{ear.getsockname()[1]}"
        project = make_project(tmp_path, queries=1, corpus=4, embed={"embedder": None})
        project.change(retrieve={"retrievers": [{**place, "url": url}]})
        ear.settimeout(0.1)
        commands = (["run"], ["run", "--dry-run"], ["validate"], ["index"], ["doctor"], ["status", str(project.run)])
        for command in commands:
            done = invoke(*command, "--config", project.config)
            assert "ELASTIC_API_KEY would be sent to" in done.stdout + done.stderr or command[0] == "status"
            with pytest.raises(TimeoutError):
                ear.accept()
        monkeypatch.setenv("RAGGS_TRUSTED_HOSTS", "0.0.0.0")
        invoke("validate", "--config", project.config)
        connection, _ = ear.accept()
        connection.close()


def test_what_a_judge_says_of_a_key_and_what_an_old_manifest_holds_is_masked(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=6)
    (tmp_path / "mine.py").write_text(
        "import os\ndef grade(query, passage):\n    return os.environ['OPENAI_API_KEY']\n"
    )
    project.change(judge={"judge": {"type": "python", "callable": "mine:grade"}})
    done = raggs("run", "--config", project.config)
    assert done.returncode == 7
    assert CANARY not in done.stdout + done.stderr
    assert holders(tmp_path, CANARY) == []
    manifest = project.manifest()
    manifest["stages"]["judge"]["components"][CANARY] = CANARY
    (project.run / "manifest.json").write_text(json.dumps(manifest))
    for command in ("status", "audit", "cost"):
        for form in ([], ["--json"]):
            told = invoke(command, project.run, *form)
            assert CANARY not in told.stdout + told.stderr
    told = invoke("why", project.run, "judge", "--details")
    assert CANARY not in told.stdout + told.stderr
    assert "[redacted]" in told.stdout
