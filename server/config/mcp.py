"""The `mcp` section of site.yaml (docs/agents.md)."""

from dataclasses import dataclass
from enum import StrEnum

from server.config import values
from server.config.setting import setting
from server.formats.config_file import ConfigFile
from server.schema.spelling import suggestion

CALLER_PLACEHOLDER = "{caller}"
MIN_BYTES = 16_000


class WriteMode(StrEnum):
    """Destination of agents' writes: their own branch, the served branch, or none."""

    BRANCH = "branch"
    DIRECT = "direct"
    NONE = "none"


class ResultText(StrEnum):
    """Form of the text in a tool's result: JSON or a one-line summary."""

    JSON = "json"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class McpSettings:
    """Settings for the MCP server."""

    enabled: bool = setting(
        False,
        "flag",
        "Whether agents can connect at `POST /mcp`, with the [Model Context Protocol](agents.md).",
    )
    write: WriteMode = setting(
        WriteMode.BRANCH,
        "agents' writes",
        "Where agents' writes go: to a `branch` that a person merges, to the served content (`direct`), or"
        " nowhere (`none`).",
        "`branch`",
    )
    branch: str = setting(
        "agent/{caller}",
        "agents' branch",
        "The branch for agents' writes. `{caller}` stands for the caller's name.",
    )
    max_bytes: int = setting(64_000, "result size", "The maximum size of a tool's result.", "`64 kB`")
    text: ResultText = setting(
        ResultText.JSON,
        "result text",
        "The text of a tool's result: its JSON, for clients that ignore structured content (`json`), or one"
        " line (`summary`).",
        "`json`",
    )
    upload_from: tuple[str, ...] = setting(
        (),
        "hosts",
        "Hosts from which the tool `upload` can fetch files, such as `images.example.org`.",
        "none",
    )


def read_write_mode(file: ConfigFile, default: WriteMode, *key_path: str) -> WriteMode:
    word = values.text(file, default, *key_path)
    if word not in list(WriteMode):
        raise file.refuse_value(
            'be "branch", "direct" or "none"', suggestion(word, list(WriteMode)), *key_path
        )
    return WriteMode(word)


def read_result_text(file: ConfigFile, default: ResultText, *key_path: str) -> ResultText:
    word = values.text(file, default, *key_path)
    if word not in list(ResultText):
        raise file.refuse_value('be "json" or "summary"', suggestion(word, list(ResultText)), *key_path)
    return ResultText(word)


def read_branch_pattern(file: ConfigFile, default: str, *key_path: str) -> str:
    """Read the pattern for the names of agents' branches. Raises SetupError if it lacks `{caller}`."""
    name = values.text(file, default, *key_path)
    if CALLER_PLACEHOLDER not in name:
        raise file.refuse_value(
            f"contain {CALLER_PLACEHOLDER}", "write a name such as agent/{caller}", *key_path
        )
    values.require_branch_name(file, name.replace(CALLER_PLACEHOLDER, "a"), *key_path)
    return name


def read_result_size(file: ConfigFile, default: int, *key_path: str) -> int:
    size = values.size(file, default, *key_path)
    if size < MIN_BYTES:
        raise file.refuse_value(f"be at least {MIN_BYTES // 1000} kB", "use a size such as 64 kB", *key_path)
    return size
