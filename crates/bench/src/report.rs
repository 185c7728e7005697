//! How results are shown: a table for people, JSON for programs.

use crate::{draw, measure::Measure};
use anyhow::{Context, ensure};
use lats_base::Duration;
use serde_json::{Map, Value};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Where results go beside the table.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Output {
    /// Write the result as JSON to this file; `-`: print it instead of the table.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the result into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Output {
    /// Looks whether these files can be written, before minutes of measuring.
    ///
    /// # Errors
    /// Which of them cannot, and why.
    pub fn check(&self) -> anyhow::Result<()> {
        let json = self.json.as_ref().filter(|_| self.prints_table());
        for (option, path) in [("--json", json), ("--svg", self.svg.as_ref())] {
            let Some(path) = path else { continue };
            ensure!(!path.is_dir(), "{option} {} is a directory; name a file", path.display());
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            ensure!(
                above.is_none_or(Path::is_dir),
                "{option} {}: there is no such directory",
                path.display()
            );
        }
        ensure!(
            json.is_none() || json != self.svg.as_ref(),
            "--json and --svg name the same file; name two"
        );
        Ok(())
    }

    /// True unless the JSON goes to the standard output instead.
    pub(crate) fn prints_table(&self) -> bool {
        self.json.as_ref().is_none_or(|path| path.as_os_str() != "-")
    }
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

/// Writes the JSON and draws the picture, if somebody wants them.
pub(crate) fn write(
    title: &str,
    record: Map<String, Value>,
    output: &Output,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let drawn = output.svg.as_ref().map_or(Ok(()), |path| draw::bars(path, title, &record));
    // The figures are worth more than the picture.
    write_json(record, output, out)?;
    drawn
}

pub(crate) fn write_json(
    record: Map<String, Value>,
    output: &Output,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let record = Value::Object(record);
    match &output.json {
        Some(_) if !output.prints_table() => writeln!(out, "{record:#}")?,
        Some(path) => std::fs::write(path, format!("{record:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => {}
    }
    Ok(())
}
