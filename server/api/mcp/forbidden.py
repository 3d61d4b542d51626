"""Explanation of a 403 to the agent that got it: which permission is missing, and who lacks it."""

from server.api.mcp.json_rpc import Json
from server.api.mcp.tools.tool import Call
from server.auth.permissions import WRITE_ACTIONS


def explain_forbidden(call: Call, error: Json) -> str:
    """Return a sentence with a space at its end, or "" for the public or if the reason is unknown.

    It contains only what the error's details and `GET /access` tell this caller.
    """
    reply = call.rest.send("GET", "/access")
    if reply.is_error or reply.body["data"]["caller"]["kind"] == "public":
        return ""
    access = reply.body["data"]
    who, permission = describe_caller(access["caller"]), error["details"].get("permission")
    if permission:
        return f"The {who} does not have the permission {permission}. "
    named = call.rest.type_named(call.text("type"))
    if named is not None and named.singular not in access["permissions"]:
        return f"The {who} has no permission for the content type {call.text('type')}. "
    types = [each["schema"]["singularName"] for each in access["contentTypes"]]
    if "operations" in call.arguments and not any(
        action in access["permissions"][name] for name in types for action in WRITE_ACTIONS
    ):
        return f"The {who} has no permission to write documents. "
    return ""


def describe_caller(caller: Json) -> str:
    """Return the kind and name of a caller, such as `token desk`."""
    if caller["kind"] == "user":
        return f"role {caller.get('role', '')} of the user {caller['name']}"
    kind = "token" if caller["kind"] == "token" else "role"
    return f"{kind} {caller['name']}"
