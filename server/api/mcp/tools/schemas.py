"""JSON Schemas that several tools share."""

from server.api.mcp.json_rpc import Json

TEXT: Json = {"type": "string"}
COUNT: Json = {"type": "integer"}
FLAG: Json = {"type": "boolean"}
OBJECT: Json = {"type": "object"}
LIST: Json = {"type": "array"}
LIST_OR_NULL: Json = {"type": ["array", "null"]}
POSITIVE: Json = {"type": "integer", "minimum": 1}
STATUS: Json = {"enum": ["draft", "published"]}
NAMES: Json = {"type": ["string", "array"]}
AT: Json = {"type": "string", "description": "Commit, tag, branch or time to read from"}
TYPE: Json = {"type": "string", "description": "Content type, as site_info names it"}
ID: Json = {"type": "string", "description": "Omit for a single type"}
POPULATE: Json = {"type": ["string", "array", "object"]}
BRANCH: Json = {"type": "string", "description": "Default: your own branch"}
MESSAGE: Json = {"type": "string", "description": "Commit message"}
PAGES: Json = {"page": POSITIVE, "pageSize": POSITIVE}
LISTED: Json = {"data": LIST, "total": COUNT, "returned": COUNT, "next": OBJECT}
# What every write returns about where it went.
WRITTEN: Json = {"branch": TEXT, "commit": TEXT, "goOn": OBJECT}
