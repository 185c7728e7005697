//! How results are shown: a table for people, JSON for programs.

use crate::measure::Measure;
use anyhow::Context;
use lats_base::Duration;
use serde_json::{Map, Value};
use std::{io::Write, path::PathBuf};

/// True if the JSON goes to the standard output, instead of the table.
pub(crate) fn is_stdout(json: Option<&PathBuf>) -> bool {
    json.is_some_and(|path| path.as_os_str() == "-")
}

pub(crate) fn head(out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "{:<16} {:>12} {:>10} {:>10} {:>10} {:>8}",
        "", "ops/s", "50% us", "99% us", "99.9% us", "errors"
    )?;
    Ok(())
}

pub(crate) fn line(
    name: &str,
    measure: &Measure,
    took: Duration,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let quantile = |q| measure.quantile_us(q);
    writeln!(
        out,
        "{name:<16} {:>12.0} {:>10} {:>10} {:>10} {:>8}",
        measure.operations_per_second(took),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        measure.errors
    )?;
    if let Some(error) = &measure.first_error {
        writeln!(out, "                 the first error: {error}")?;
    }
    out.flush()?;
    Ok(())
}

/// Writes the JSON, if somebody wants it.
pub(crate) fn write(
    record: Map<String, Value>,
    json: Option<&PathBuf>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let record = Value::Object(record);
    match json {
        Some(_) if is_stdout(json) => writeln!(out, "{record:#}")?,
        Some(path) => std::fs::write(path, format!("{record:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => {}
    }
    Ok(())
}
