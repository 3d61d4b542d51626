"""Reads the operations of a batch, which may refer to the documents of those before them (docs/batch.md)."""

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

MAX_REFERENCE_CHARS = 16 * 1024 * 1024  # Of all ids that references stand for.
_REFERENCE = re.compile(r"\{\{ *([0-9]{1,9})\.documentId *\}\}")


@dataclass(slots=True)
class BatchReader:
    """Reads the operations of a batch one after the other.

    `ids` are those of their documents, which later ones refer to; None of one that deletes. A document that
    is still to be made has its id already, that of a single type in `singles` by its uid. `room` is how many
    more characters may stand for references.
    """

    caller: Caller
    ids: list[str | None] = field(default_factory=list)
    singles: dict[str, str] = field(default_factory=dict)
    room: int = MAX_REFERENCE_CHARS

    def read(self, operations: Iterable[Operation]) -> list[DocumentWrite]:
        """Return the writes. Each operation is taken once those before it are read.

        Raises ForbiddenError, ValidationError and PayloadTooLargeError, with the number of the operation.
        """
        writes = []
        for number, operation in enumerate(operations):
            with of_operation(number):
                write = self._one(operation)
            writes.append(write)
            self.ids.append(write.operation.document_id if write.query else None)
        return writes

    def _one(self, operation: Operation) -> DocumentWrite:
        reader, document_id = self.caller.reader(operation.type), self._fill_references(operation.document_id)
        params = self._fill_references(operation.params)
        permit(reader, operation.verb, params)
        data = self._fill_references(operation.data)
        if operation.verb is not Verb.DELETE:
            where = {} if operation.verb in ACTIONS else params
            document_id = document_id or self._id_of(operation.type, where)
        filled = replace(operation, document_id=document_id, params=params, data=data)
        return read_document_write(reader, filled)

    def _id_of(self, type_: Type, params: Params) -> str:
        """Return the id of a document that is named by none: it is new, or that of a single type."""
        if type_.kind != "singleType":
            return new_document_id()
        snapshot, settings = self.caller.state.snapshot, self.caller.state.settings
        there = single_id(snapshot, settings, type_, written_locale(params.get("locale"), type_, settings))
        return there or self.singles.setdefault(type_.uid, new_document_id())

    def _fill_references(self, value: Any) -> Any:
        """Return a value with the ids that texts in it refer to."""
        if type(value) is str:
            return _REFERENCE.sub(self._referred_id, value) if "{{" in value else value
        if isinstance(value, Mapping):
            return {key: self._fill_references(inner) for key, inner in value.items()}
        return [self._fill_references(item) for item in value] if isinstance(value, list) else value

    def _referred_id(self, found: re.Match[str]) -> str:
        number = int(found[1])
        if number >= len(self.ids):
            raise ValidationError(f"{found[0]} refers to an operation that does not come before this one")
        document_id = self.ids[number]
        if document_id is None:
            raise ValidationError(f"{found[0]} refers to an operation that deletes its document")
        self.room -= len(document_id)
        if self.room < 0:
            raise PayloadTooLargeError(f"The references come to more than {MAX_REFERENCE_CHARS:,} characters")
        return document_id
