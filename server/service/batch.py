"""Batch parser. An operation in a batch can refer to documents that earlier
operations wrote (docs/batch.md).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from server.documents.ids import new_document_id
from server.errors import PayloadTooLargeError, ValidationError, of_operation
from server.query.parse import written_locale
from server.schema.model import Type
from server.service.document_write import ACTIONS, DocumentWrite, Operation, Verb, permit, read_document_write
from server.service.read import Caller, Params
from server.write.write import single_id

MAX_REFERENCE_CHARS = 16 * 1024 * 1024  # limit for all ids inserted for references
_REFERENCE = re.compile(r"\{\{ *([0-9]{1,9})\.documentId *\}\}")


@dataclass(slots=True)
class BatchReader:
    """Parser for the operations in a batch. It parses them in order.

    - `ids`: the document id of each parsed operation, or None if the operation was a deletion. Later
      operations can refer to these ids.
    - `singles`: the new ids of single types that had no document before the batch, by uid.
    - `room`: the number of characters that references may still insert.
    """

    caller: Caller
    ids: list[str | None] = field(default_factory=list)
    singles: dict[str, str] = field(default_factory=dict)
    room: int = MAX_REFERENCE_CHARS

    def read(self, operations: Iterable[Operation]) -> list[DocumentWrite]:
        """Parse the operations. Each operation is parsed before the next one is fetched from the iterator.

        Raises ForbiddenError, ValidationError and PayloadTooLargeError. The error contains the number of the
        failed operation.
        """
        writes = []
        for number, operation in enumerate(operations):
            with of_operation(number):
                write = self._read_operation(operation)
            writes.append(write)
            self.ids.append(write.operation.document_id if write.query else None)
        return writes

    def _read_operation(self, operation: Operation) -> DocumentWrite:
        reader, document_id = self.caller.reader(operation.type), self._fill_references(operation.document_id)
        params = self._fill_references(operation.params)
        permit(reader, operation.verb, params)
        data = self._fill_references(operation.data)
        if operation.verb is not Verb.DELETE:
            locale_params = {} if operation.verb in ACTIONS else params
            document_id = document_id or self._id_of(operation.type, locale_params)
        filled = replace(operation, document_id=document_id, params=params, data=data)
        return read_document_write(reader, filled)

    def _id_of(self, type_: Type, params: Params) -> str:
        """Return the document id for an operation that does not specify one: the id of the single type's
        document, or a new id if no such document exists. For a collection type, the id is always new.
        """
        if type_.kind != "singleType":
            return new_document_id()
        snapshot, settings = self.caller.state.snapshot, self.caller.state.settings
        existing_id = single_id(
            snapshot, settings, type_, written_locale(params.get("locale"), type_, settings)
        )
        return existing_id or self.singles.setdefault(type_.uid, new_document_id())

    def _fill_references(self, value: Any) -> Any:
        """Return the value after replacing references such as `{{0.documentId}}` with ids in all strings
        inside it.
        """
        if type(value) is str:
            return _REFERENCE.sub(self._referred_id, value) if "{{" in value else value
        if isinstance(value, Mapping):
            return {key: self._fill_references(inner) for key, inner in value.items()}
        return [self._fill_references(item) for item in value] if isinstance(value, list) else value

    def _referred_id(self, match: re.Match[str]) -> str:
        number = int(match[1])
        if number >= len(self.ids):
            raise ValidationError(f"{match[0]} refers to an operation that does not come before this one")
        document_id = self.ids[number]
        if document_id is None:
            raise ValidationError(f"{match[0]} refers to an operation that deletes its document")
        self.room -= len(document_id)
        if self.room < 0:
            raise PayloadTooLargeError(
                f"The references expand to more than {MAX_REFERENCE_CHARS:,} characters"
            )
        return document_id
