"""Parser for batches of operations (docs/batch.md)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from server.documents.ids import new_document_id
from server.errors import PayloadTooLargeError, ValidationError, add_operation_number
from server.index.budget import Budget
from server.query.parse import locale_to_write
from server.schema.model import Type
from server.service.document_write import (
    ACTIONS,
    DocumentWrite,
    Operation,
    Verb,
    read_document_write,
    require_write,
)
from server.service.read import Caller, Params
from server.write.write import single_type_document_id

_STEPS_PER_OPERATION = 1000  # enough that the budget checks the time before each operation
# maximum total length of the ids that replace references
MAX_REFERENCE_CHARS = 16 * 1024 * 1024
_REFERENCE = re.compile(r"\{\{ *([0-9]{1,9})\.documentId *\}\}")


@dataclass(slots=True)
class BatchReader:
    """Parser for a batch. Its operations can refer to the documents of earlier operations.

    `ids` contains the document id for each operation parsed so far, or None if the operation deletes the
    document. `single_ids` maps the uids of single types to the ids of their new documents. `remaining_chars`
    is the number of characters that references may still expand to.
    """

    caller: Caller
    budget: Budget
    ids: list[str | None] = field(default_factory=list)
    single_ids: dict[str, str] = field(default_factory=dict)
    remaining_chars: int = MAX_REFERENCE_CHARS

    def read(self, operations: Iterable[Operation]) -> list[DocumentWrite]:
        """Parse the operations, and check their permissions.

        Raises ForbiddenError, ValidationError or PayloadTooLargeError, with the number of the operation.
        """
        writes = []
        for number, operation in enumerate(operations):
            with add_operation_number(number):
                self.budget.spend(_STEPS_PER_OPERATION)
                write = self._read_operation(operation)
            writes.append(write)
            self.ids.append(write.operation.document_id if write.query else None)
        return writes

    def _read_operation(self, operation: Operation) -> DocumentWrite:
        reader, document_id = self.caller.reader(operation.type), self._fill_references(operation.document_id)
        params = self._fill_references(operation.params)
        require_write(reader, operation.verb, params)
        data = self._fill_references(operation.data)
        if operation.verb is not Verb.DELETE:
            locale_params = {} if operation.verb in ACTIONS else params
            document_id = document_id or self._id_of(operation.type, locale_params)
        filled = replace(operation, document_id=document_id, params=params, data=data)
        return read_document_write(reader, filled)

    def _id_of(self, type_: Type, params: Params) -> str:
        if type_.kind != "singleType":
            return new_document_id()
        snapshot, settings = self.caller.state.snapshot, self.caller.state.settings
        existing_id = single_type_document_id(
            snapshot, settings, type_, locale_to_write(params.get("locale"), type_, settings)
        )
        return existing_id or self.single_ids.setdefault(type_.uid, new_document_id())

    def _fill_references(self, value: Any) -> Any:
        if type(value) is str:
            return _REFERENCE.sub(self._referred_id, value) if "{{" in value else value
        if isinstance(value, Mapping):
            return {key: self._fill_references(inner) for key, inner in value.items()}
        return [self._fill_references(item) for item in value] if isinstance(value, list) else value

    def _referred_id(self, match: re.Match[str]) -> str:
        self.budget.spend(1)
        number = int(match[1])
        if number >= len(self.ids):
            raise ValidationError(f"{match[0]} does not refer to an earlier operation")
        document_id = self.ids[number]
        if document_id is None:
            raise ValidationError(f"{match[0]} refers to an operation that deletes a document")
        self.remaining_chars -= len(document_id)
        if self.remaining_chars < 0:
            raise PayloadTooLargeError(
                f"The references to earlier operations, such as {{{{0.documentId}}}}, would expand to more "
                f"than {MAX_REFERENCE_CHARS:,} characters"
            )
        return document_id
