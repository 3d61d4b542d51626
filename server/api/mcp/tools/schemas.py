"""JSON Schemas that several tools share."""

from server.api.mcp.json_rpc import Json

TEXT: Json = {"type": "string"}
COUNT: Json = {"type": "integer"}
DRY_RUN: Json = {"type": "boolean", "description": "Only report the changes"}
OBJECT: Json = {"type": "object"}
LIST: Json = {"type": "array"}
LIST_OR_NULL: Json = {"type": ["array", "null"]}
POSITIVE: Json = {"type": "integer", "minimum": 1}
STATUS: Json = {"enum": ["draft", "published"]}
STATUS_TO_READ: Json = {**STATUS, "description": "Default: published"}
NAMES: Json = {"type": ["string", "array"]}
PATHS: Json = {**NAMES, "description": "Exact paths of files"}
AT: Json = {"type": "string", "description": "Commit, tag, branch or time"}
TYPE: Json = {"type": "string", "description": "Name in site_info"}
ID: Json = {"type": "string", "description": "Omit for a single type"}
POPULATE: Json = {"type": ["string", "array", "object"], "description": "Relation names, or *"}
BRANCH: Json = {"type": "string", "description": "Default: see site_info"}
MESSAGE: Json = {"type": "string", "description": "Commit message"}
PAGES: Json = {"page": POSITIVE, "pageSize": POSITIVE}
LISTED: Json = {"data": LIST, "total": COUNT, "returned": COUNT, "next": OBJECT}
# The part of a write's result that describes the branch.
WRITTEN: Json = {"branch": TEXT, "commit": TEXT, "review": OBJECT}
