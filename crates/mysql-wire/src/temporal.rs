//! Days and times in the binary form that rows and parameters share.
//!
//! Each starts with its length; parts that are zero at the end are left out.

use lats_values::{Date, DateTime, Time};

use crate::bytes::Reader;
use crate::error::WireError;

/// The longest TIME; MySQL cuts longer ones to it.
const HOURS_MAX: u32 = 838;

/// Appends a DATE.
pub(crate) fn put_date(out: &mut Vec<u8>, date: &Date) {
    if date.is_zero() {
        out.push(0);
    } else {
        out.push(4);
        put_date_fields(out, date);
    }
}

/// Appends a DATETIME or TIMESTAMP.
pub(crate) fn put_date_time(out: &mut Vec<u8>, moment: &DateTime) {
    let clock = [moment.hour, moment.minute, moment.second];
    if clock == [0; 3] && moment.micros == 0 {
        return put_date(out, &moment.date);
    }
    out.push(if moment.micros == 0 { 7 } else { 11 });
    put_date_fields(out, &moment.date);
    out.extend_from_slice(&clock);
    if moment.micros != 0 {
        out.extend_from_slice(&moment.micros.to_le_bytes());
    }
}

/// Appends a TIME.
pub(crate) fn put_time(out: &mut Vec<u8>, time: &Time) {
    let hours = u32::from(time.hours);
    let clock = [(hours % 24) as u8, time.minutes, time.seconds];
    if hours == 0 && clock == [0; 3] && time.micros == 0 {
        out.push(0);
        return;
    }
    out.push(if time.micros == 0 { 8 } else { 12 });
    out.push(u8::from(time.negative));
    out.extend_from_slice(&(hours / 24).to_le_bytes());
    out.extend_from_slice(&clock);
    if time.micros != 0 {
        out.extend_from_slice(&time.micros.to_le_bytes());
    }
}

fn put_date_fields(out: &mut Vec<u8>, date: &Date) {
    out.extend_from_slice(&date.year.to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

/// Reads a DATE; a time of day behind it is dropped, as MySQL drops it.
pub(crate) fn read_date(reader: &mut Reader<'_>) -> Result<Option<Date>, WireError> {
    Ok(read_date_time(reader)?.map(|moment| moment.date))
}

/// Reads a DATETIME. `None` means that its numbers are no date or time of day.
pub(crate) fn read_date_time(reader: &mut Reader<'_>) -> Result<Option<DateTime>, WireError> {
    let length = reader.u8()?;
    let mut fields = Reader::new(reader.take(usize::from(length))?);
    let (mut year, mut month, mut day) = (0, 0, 0);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(WireError::Malformed("length of a date"));
    }
    if length >= 4 {
        (year, month, day) = (fields.u16()?, fields.u8()?, fields.u8()?);
    }
    if length >= 7 {
        (hour, minute, second) = (fields.u8()?, fields.u8()?, fields.u8()?);
    }
    if length >= 11 {
        micros = fields.u32()?;
    }
    let clock = hour <= 23 && is_clock(minute, second, micros);
    let date = Date::new(year, month, day).filter(|_| clock);
    let fsp = shown_digits(micros);
    Ok(date.map(|date| DateTime { date, hour, minute, second, micros, fsp }))
}

/// Reads a TIME. `None` means that its numbers are no time.
pub(crate) fn read_time(reader: &mut Reader<'_>) -> Result<Option<Time>, WireError> {
    let length = reader.u8()?;
    let mut fields = Reader::new(reader.take(usize::from(length))?);
    let (mut negative, mut hours, mut minutes, mut seconds, mut micros) = (false, 0, 0, 0, 0);
    if !matches!(length, 0 | 8 | 12) {
        return Err(WireError::Malformed("length of a time"));
    }
    if length >= 8 {
        negative = fields.u8()? != 0;
        let days = fields.u32()?;
        hours = days.saturating_mul(24).saturating_add(u32::from(fields.u8()?));
        (minutes, seconds) = (fields.u8()?, fields.u8()?);
    }
    if length >= 12 {
        micros = fields.u32()?;
    }
    if !is_clock(minutes, seconds, micros) {
        return Ok(None);
    }
    if hours > HOURS_MAX || (hours == HOURS_MAX && (minutes, seconds) == (59, 59)) {
        (hours, minutes, seconds, micros) = (HOURS_MAX, 59, 59, 0);
    }
    let fsp = shown_digits(micros);
    // There is no negative zero.
    negative &= (hours, minutes, seconds, micros) != (0, 0, 0, 0);
    Ok(Some(Time { negative, hours: hours as u16, minutes, seconds, micros, fsp }))
}

fn is_clock(minutes: u8, seconds: u8, micros: u32) -> bool {
    minutes <= 59 && seconds <= 59 && micros <= 999_999
}

/// Parameters do not tell how many digits of the second's fraction they show.
fn shown_digits(micros: u32) -> u8 {
    if micros == 0 { 0 } else { 6 }
}
