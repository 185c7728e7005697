//! `cargo xtask check`: the loop of a working day. Formatting, lints, house rules, unit tests of what has changed and of what depends on
//! it, and a hundred seeds.

use super::{git, now, say, steps::PROFILE, target};
use crate::{root, run};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What the quick check is to look at.
#[derive(Args)]
pub(crate) struct Options {
    /// What has changed since this commit; if it is not given: since the commit before, and what is not committed.
    #[arg(long, value_name = "REVISION", default_value = "HEAD~1")]
    since: String,
    /// Seeds of the simulator.
    #[arg(long, default_value_t = 100)]
    seeds: u32,
}

/// A test program, the package that it belongs to, and where it expects to be run.
struct TestProgram {
    package: String,
    program: PathBuf,
    folder: PathBuf,
}

/// Runs the quick checks.
pub(crate) fn quick(options: &Options) -> anyhow::Result<()> {
    let begun = now();
    let told = |what: &str| say(&format!("== {what} ({} s)", begun.elapsed().as_secs()));
    told("format");
    run(Command::new("cargo").args(["fmt", "--all", "--check"]))?;
    told("lints");
    let lints = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--profile"];
    run(Command::new("cargo").args(lints).args([PROFILE, "--", "-D", "warnings"]))?;
    let packages = affected(&options.since)?;
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    told(&format!("build; then house rules and unit tests of {}", names.join(", ")));
    let programs = test_programs()?;
    let wanted =
        |program: &&TestProgram| program.package == "xtask" || packages.contains(&program.package);
    for program in programs.iter().filter(wanted) {
        run(Command::new(&program.program).arg("--quiet").current_dir(&program.folder))
            .with_context(|| {
                format!("again: cargo test --profile {PROFILE} -p {}", program.package)
            })?;
    }
    told(&format!("simulator, {} fresh seeds", options.seeds));
    run(Command::new("cargo").args([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        PROFILE,
        "-p",
        "lats-sim",
    ]))?;
    let sim = target().join(PROFILE).join("sim");
    run(Command::new(sim).args(["--seeds", &options.seeds.to_string()]))?;
    told("all is well; before it lands: bash scripts/test.sh");
    Ok(())
}

/// The packages with changes, and those that depend on them.
fn affected(since: &str) -> anyhow::Result<BTreeSet<String>> {
    let listed = git(&["diff", "--name-only", since])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<&str> = listed.lines().chain(new.lines()).collect();
    let metadata = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--no-deps"])
        .current_dir(root())
        .output()
        .context("cannot run cargo")?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (mut folders, mut needs) = (BTreeMap::new(), BTreeMap::new());
    for package in packages {
        let name = text(&package["name"]);
        let manifest = text(&package["manifest_path"]);
        let root = std::fs::canonicalize(root())?;
        let folder = Path::new(&manifest).parent().and_then(|f| f.strip_prefix(&root).ok());
        folders.insert(name.clone(), folder.map(Path::to_path_buf).unwrap_or_default());
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let names: BTreeSet<String> = dependencies.map(|d| text(&d["name"])).collect();
        needs.insert(name, names);
    }
    Ok(reached(&changed(&files, &folders), &needs))
}

/// The packages that these files belong to; all, if one says how everything is built.
fn changed(files: &[&str], folders: &BTreeMap<String, PathBuf>) -> BTreeSet<String> {
    let builds = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml"];
    if files.iter().any(|file| builds.contains(file)) {
        return folders.keys().cloned().collect();
    }
    let holds = |folder: &Path| files.iter().any(|file| Path::new(file).starts_with(folder));
    folders.iter().filter(|(_, folder)| holds(folder)).map(|(name, _)| name.clone()).collect()
}

/// These packages and all that depend on them.
fn reached(
    from: &BTreeSet<String>,
    needs: &BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<String> {
    let mut found = from.clone();
    loop {
        let more =
            needs.iter().filter(|(name, of)| !found.contains(*name) && !of.is_disjoint(&found));
        let more: Vec<String> = more.map(|(name, _)| name.clone()).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Builds all test programs, so that what they are built of is the same for all; gives them.
fn test_programs() -> anyhow::Result<Vec<TestProgram>> {
    let done = Command::new("cargo")
        .args(["test", "--workspace", "--no-run", "--locked", "--profile", PROFILE])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !done.status.success() {
        bail!("the tests do not build");
    }
    let said = String::from_utf8_lossy(&done.stdout);
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|m| m["profile"]["test"] == true && m["executable"].is_string());
    let program = |message: Value| {
        let text = |what: &str| message[what].as_str().unwrap_or_default().to_string();
        let folder = Path::new(&text("manifest_path")).parent().map(Path::to_path_buf);
        // path+file:///folder#name@version, or without the name where the folder has it.
        let id = text("package_id");
        let end = id.rsplit('#').next().unwrap_or_default();
        let name = end.split_once('@').map_or_else(
            || id.rsplit('#').nth(1).and_then(|path| path.rsplit('/').next()).unwrap_or_default(),
            |(name, _)| name,
        );
        TestProgram {
            package: name.to_string(),
            program: text("executable").into(),
            folder: folder.unwrap_or_default(),
        }
    };
    Ok(tests.map(program).collect())
}

#[test]
fn what_depends_on_a_change_is_tested() {
    let set = |names: &[&str]| names.iter().map(|n| (*n).to_string()).collect::<BTreeSet<_>>();
    let needs = BTreeMap::from([
        ("base".to_string(), set(&[])),
        ("ldm".to_string(), set(&["base"])),
        ("node".to_string(), set(&["ldm"])),
        ("history".to_string(), set(&[])),
    ]);
    assert_eq!(reached(&set(&["ldm"]), &needs), set(&["ldm", "node"]));
    let folders = needs.keys().map(|n| (n.clone(), PathBuf::from(format!("crates/{n}")))).collect();
    assert_eq!(changed(&["crates/ldm/src/lib.rs", "README.md"], &folders), set(&["ldm"]));
    assert_eq!(changed(&["Cargo.lock"], &folders).len(), 4);
}
