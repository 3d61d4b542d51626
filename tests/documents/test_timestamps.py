"""Tests of dates, times and timestamps in all notations, which the API returns in a single notation."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.timestamps import from_datetime, from_seconds, now, read_date, read_time, read_timestamp

ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DATETIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES)
FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def in_milliseconds(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(microsecond=value.microsecond // 1000 * 1000)


@given(DATETIMES)
def test_a_timestamp_reads_back(value: datetime) -> None:
    timestamp = from_datetime(value)
    assert FORM.fullmatch(timestamp)
    assert read_timestamp(timestamp) == timestamp
    assert datetime.fromisoformat(timestamp) == in_milliseconds(value)


@given(DATETIMES, st.sampled_from(["T", "t", " ", "  "]))
def test_any_iso_form_is_that_timestamp(value: datetime, separator: str) -> None:
    text = value.isoformat().replace("T", separator, 1)
    assert read_timestamp(text) == from_datetime(value)
    assert read_timestamp(f" {text} ") == from_datetime(value)


@given(DATETIMES, DATETIMES)
def test_the_order_of_text_is_the_order_of_time(one: datetime, other: datetime) -> None:
    assert (from_datetime(one) < from_datetime(other)) == (in_milliseconds(one) < in_milliseconds(other))


@given(st.integers(10**9, 10**15))
def test_long_numbers_are_milliseconds_since_1970(value: int) -> None:
    try:
        expected = from_datetime(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value))
    except OverflowError:
        with pytest.raises(ValueError, match=str(value)):
            read_timestamp(str(value))
    else:
        assert read_timestamp(str(value)) == expected


WRITTEN = {
    "2024-01-02": "2024-01-02T00:00:00.000Z",
    "2024-1-2": "2024-01-02T00:00:00.000Z",
    "2024-01-02 03:04": "2024-01-02T03:04:00.000Z",
    "2024-01-02T03:04:05": "2024-01-02T03:04:05.000Z",
    "2024-01-02T03:04:05.6789Z": "2024-01-02T03:04:05.678Z",
    "2024-01-02T03:04:05,5Z": "2024-01-02T03:04:05.500Z",
    "2024-01-02 03:04:05 +02:00": "2024-01-02T01:04:05.000Z",
    "2024-01-02T03:04:05-0330": "2024-01-02T06:34:05.000Z",
    "2024-01-02T03:04:05+2": "2024-01-02T01:04:05.000Z",
    "0001-01-01": "0001-01-01T00:00:00.000Z",
    "-1000000000": "1969-12-20T10:13:20.000Z",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_people_write_is_a_timestamp(text: str) -> None:
    assert read_timestamp(text) == WRITTEN[text]


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2024-02-30", "2023-02-29T00:00:00.000Z", "2024-13-01", "2024-01-02T24:00", "12:30",
     "2024-01-02T03:04:05+99:00", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "2024",
     "20240102", "2024-01-02T03", "٢٠٢٤-01-02", "2024-01-02T03:04:05.٣Z", "99999-01-01", "9999999999999999"],
)  # fmt: skip
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_timestamp(text)


@given(st.text(max_size=30))
def test_any_text_is_a_timestamp_or_refused(text: str) -> None:
    for read in (read_timestamp, read_date, read_time):
        try:
            found = read(text)
        except ValueError:
            continue
        assert read(found) == found


@given(st.dates())
def test_dates(value: date) -> None:
    text = value.isoformat()
    assert read_date(text) == text
    assert read_date(f"{text}T23:59:59+13:00") == text  # the day as written, in any time zone
    assert read_date(f"{value.year:04d}-{value.month}-{value.day}") == text


@pytest.mark.parametrize(
    "text", ["", "2023-02-29", "2024-01", "2024-01-02x", "01/02/2024", "2024-01-02 noon"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_date(text)


@given(st.times())
def test_times(value: time) -> None:
    text = f"{value:%H:%M:%S}.{value.microsecond // 1000:03d}"
    assert read_time(value.isoformat()) == text
    assert read_time(text) == text
    assert read_time(f"{value:%H:%M}") == f"{value:%H:%M}:00.000"


@pytest.mark.parametrize(
    "text", ["", "24:00", "10:60", "10", "10:20:60", "10:20:30.1234567", "10:20Z", "-1:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_time(text)


def test_seconds_and_now() -> None:
    assert from_seconds(0) == "1970-01-01T00:00:00.000Z"
    assert from_seconds(1704164645.6789) == "2024-01-02T03:04:05.678Z"
    assert FORM.fullmatch(now())
