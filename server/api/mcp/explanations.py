"""Explanations of errors, written for agents."""

from http import HTTPStatus

from server.api.mcp.json_rpc import Json
from server.api.mcp.tools.tool import Call
from server.auth.permissions import SITE_SUBJECTS, WRITE_ACTIONS
from server.errors import SUGGESTION
from server.query.operators import LOGIC, OPERATORS

_MAX_ERRORS = 3
_MAX_NAMES = 40


def explain(call: Call, error: Json) -> str:
    line = " ".join(f"{_message(error)} ({error['status']} {error['name']})".split())
    if SUGGESTION in error["details"]:
        return f'{line}; did you mean "{error["details"][SUGGESTION]}"?'
    if error["status"] == HTTPStatus.FORBIDDEN:
        return f"{line}. {explain_forbidden(call, error)}site_info lists your permissions"
    return line + _known_names(call, error)


def _message(error: Json) -> str:
    details = error["details"]
    errors = details.get("errors") or []
    message = "; ".join(f"{'.'.join(one['path'])}: {one['message']}" for one in errors[:_MAX_ERRORS])
    if len(errors) > _MAX_ERRORS:
        message += f"; and {len(errors) - _MAX_ERRORS} more errors"
    where = f"operations[{details['operation']}]: " if "operation" in details else ""
    return f"{where}{message or error['message']}"


def _known_names(call: Call, error: Json) -> str:
    details = error["details"]
    key, path = details.get("key"), details.get("path")
    if not isinstance(key, str) or "source" not in details:
        return ""
    if key.startswith("$"):
        return f"; the operators are {', '.join((*LOGIC, *OPERATORS))}"
    names: list[str] = []
    if path in (None, "", key):
        names = _attribute_names(call, details.get("operation"), of_body=details["source"] == "body")
    more = ", …" if len(names) > _MAX_NAMES else ""
    listed = f"; the attributes are {', '.join(names[:_MAX_NAMES])}{more}"
    return listed if names else "; get_schema lists the attributes"


def _attribute_names(call: Call, operation_number: int | None, *, of_body: bool) -> list[str]:
    one = (
        call
        if operation_number is None
        else Call(call.arguments["operations"][operation_number], call.rest, call.settings)
    )
    type_, reply = call.rest.type_named(one.text("type")), call.rest.send("GET", "/access")
    if type_ is None or reply.is_error:
        return []
    types = reply.body["data"]["contentTypes"]
    found: Json = next((each["schema"]["attributes"] for each in types if each["uid"] == type_.uid), {})
    return [name for name, attribute in found.items() if of_body or not attribute.get("private")]


def explain_forbidden(call: Call, error: Json) -> str:
    """Return a sentence that explains which permission is missing, or "" if this is unknown.

    The sentence has a trailing space. It contains only what the caller could also learn from the error or
    from `GET /access`.
    """
    reply = call.rest.send("GET", "/access")
    if reply.is_error or reply.body["data"]["caller"]["kind"] == "public":
        return ""
    access = reply.body["data"]
    who, permission = describe_caller(access["caller"]), error["details"].get("permission")
    if permission:
        subject = permission.partition(".")[0]
        is_taken = subject in SITE_SUBJECTS and call.rest.type_named(subject) is not None
        why = f', because a content type is named "{subject}"; rename it' if is_taken else ""
        return f"The {who} does not have the permission {permission}{why}. "
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
    if caller["kind"] == "user":
        return f"role {caller.get('role', '')} of the user {caller['name']}"
    kind = "token" if caller["kind"] == "token" else "role"
    return f"{kind} {caller['name']}"
