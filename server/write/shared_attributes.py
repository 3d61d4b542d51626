"""Attributes that have the same value in all locales."""

from collections.abc import Collection

from server.write.context import Context, Values, values_of
from server.write.draft_merge import drop_equal_draft, write_draft
from server.write.request import Address
from server.write.write_timestamps import timestamp_of_change


def write_shared_values(
    context: Context,
    address: Address,
    document_id: str,
    changed: Values,
    possible_guesses: Collection[str] = (),
) -> None:
    """Copy changed values to the files in the other locales, for attributes that all locales share.

    For attributes in `possible_guesses`, files are rewritten even if they already contain the new value.
    Otherwise, authors could find out whether they have guessed a hidden value.
    """
    attributes = address.type.attributes
    shared = {name: value for name, value in changed.items() if not attributes[name].localized}
    if not shared or not address.type.localized:
        return
    for locale in context.settings.locales.available:
        if locale != address.locale:
            always = any(name in shared for name in possible_guesses)
            _share_with(context, address, document_id, locale, shared, always=always)


def _share_with(
    context: Context, address: Address, document_id: str, locale: str, shared: Values, *, always: bool
) -> None:
    published, draft = context.versions(address.type, document_id, locale)
    base = draft or published
    if base is None:
        return
    values = {**values_of(base), **shared}
    if address.draft:
        write_draft(context, published, draft, values, even_if_unchanged=always)
        return
    for document in filter(None, (published, draft)):
        changes = context.changed_keys(document, {**values_of(document), **shared})
        if always:
            changes |= timestamp_of_change(context, document)
        if changes:
            context.rewrite(document, changes)
    if published:
        drop_equal_draft(context, published, draft, {**values_of(published), **shared}, values)
