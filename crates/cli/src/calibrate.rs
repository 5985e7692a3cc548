//! `tanada calibrate`: what media and the processor can do, for the cost model.
//!
//! 1. The medium of a folder, or of each class of a volume, is measured on a file of its own; an emulated class is
//!    measured on its model.
//! 2. The processor is measured by statements over the sample.
//! 3. Both are kept: in the user's cache folder, or with the volume. What was kept before is compared, and figures that
//!    have drifted are named.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;
use tanada_base::ByteSize;
use tanada_innodb::MountOptions;
use tanada_io::{ExecutorOptions, Executors, Medium, ModelSpec};
use tanada_query::calibrate::{MediumMeasurement, MediumOptions, Rate, measure_medium, measure_processor};
use tanada_query::cost::{
    CALIBRATION_FILE, CpuCosts, MeasuredMedium, Measurements, MediumCosts, use_measurements,
};
use tanada_query::{Session, SessionOptions};
use tanada_report::Table;
use tanada_sample::SAMPLES;
use tanada_volume::directory::{ClassConfig, DirectoryConfig};

use crate::failure::{Failure, Outcome};
use crate::output::OutputArguments;

/// Runs of each statement that measures the processor.
const RUNS: usize = 5;
/// Figures that differ by this factor have drifted.
const DRIFT: f64 = 1.5;
/// The file has at least this size.
const LEAST_BYTES: u64 = 8 << 20;
/// Data over which an emulated class is measured.
const MODEL_EXTENT_BYTES: u64 = 4 << 30;

/// Arguments of `tanada calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada calibrate                      # the disk of the current folder, and the processor
  tanada calibrate /var/lib/mysql       # needs to write a file of 2 GiB there, and removes it
  tanada calibrate --volume vol --quick
What is measured is used from then on: EXPLAIN names the medium whose figures a prediction has.")]
pub struct CalibrateArguments {
    /// Folders whose media are measured; without any, and without --volume, the current one
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Measure each class of this volume, and keep the figures with it
    #[arg(long, value_name = "DIR")]
    volume: Option<PathBuf>,
    /// A smaller file and shorter loops: some seconds
    #[arg(long)]
    quick: bool,
    /// Size of the file; without it 2 GiB, or 256 MiB with --quick
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Print what was measured, and keep nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArguments,
}

/// Where the figures of this user's machine are kept.
fn kept_file() -> PathBuf {
    tanada::default_folder().join(CALIBRATION_FILE)
}

/// From now on the cost model has what was measured earlier on this machine; a file that cannot be used is warned of.
pub fn use_what_was_measured() {
    match Measurements::read(&kept_file()) {
        Ok(Some(measured)) => use_measurements(measured),
        Ok(None) => {}
        Err(error) => eprintln!("tanada: warning: {error}; the cost model has its defaults"),
    }
}

#[derive(Debug, Serialize)]
struct Calibrated {
    media: Vec<CalibratedMedium>,
    cpu: CpuCosts,
    /// What differs from what was kept before.
    drifted: Vec<String>,
    /// Where it is kept; `null` for a dry run.
    kept: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct CalibratedMedium {
    /// The class of a volume.
    class: Option<String>,
    path: PathBuf,
    medium: String,
    emulated: bool,
    costs: MediumCosts,
    rates: Vec<Rate>,
    #[serde(skip)]
    disk: Option<u64>,
    #[serde(skip)]
    io_cpu_us: Option<f64>,
}

/// Runs the subcommand.
pub fn run(runtime: &tokio::runtime::Runtime, arguments: &CalibrateArguments) -> Outcome {
    let kept_in = match &arguments.volume {
        Some(volume) => volume.join(CALIBRATION_FILE),
        None => kept_file(),
    };
    // One that cannot be read is replaced.
    let before = Measurements::read(&kept_in).unwrap_or_default();
    let mut media = Vec::new();
    for (class, path) in places(arguments)? {
        media.push(match class.as_ref().and_then(|class| class.model.as_deref()) {
            Some(model) => emulated(class.as_ref(), path, model)?,
            None => measured(class.as_ref(), path, arguments)?,
        });
    }
    let io_us = media.iter().filter_map(|medium| medium.io_cpu_us).reduce(f64::min);
    progress("statements over the sample, for the processor");
    let cpu = runtime.block_on(processor(io_us, if arguments.quick { 1 } else { RUNS }))?;
    let mut measured = before.clone().unwrap_or_default();
    measured.cpu = cpu.clone();
    for medium in &media {
        if let Some(number) = medium.disk {
            measured.disks.insert(number, medium.kept());
        }
    }
    let drifted = before.map(|before| drift(&before, &measured)).unwrap_or_default();
    if !arguments.dry_run {
        measured.write(&kept_in)?;
    }
    let kept = (!arguments.dry_run).then_some(kept_in);
    arguments.output.print(&Calibrated { media, cpu, drifted, kept }, text)
}

fn progress(what: &str) {
    eprintln!("tanada: measuring: {what}");
}

/// What is measured: folders, and classes of a volume with the folder of their first device.
fn places(arguments: &CalibrateArguments) -> Outcome<Vec<(Option<ClassConfig>, PathBuf)>> {
    let mut places: Vec<_> = arguments.paths.iter().map(|path| (None, folder_of(path))).collect();
    if let Some(volume) = &arguments.volume {
        let config = DirectoryConfig::load(volume).map_err(Failure::failed)?;
        for class in config.classes {
            let path = class.paths.first().map(|path| volume.join(path)).unwrap_or_else(|| volume.clone());
            places.push((Some(class), folder_of(&path)));
        }
    } else if places.is_empty() {
        places.push((None, PathBuf::from(".")));
    }
    Ok(places)
}

/// A folder itself, or that of a file.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if path.is_file() => {
            if parent.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                parent.to_owned()
            }
        }
        _ => path.to_owned(),
    }
}

fn emulated(class: Option<&ClassConfig>, path: PathBuf, model: &str) -> Outcome<CalibratedMedium> {
    let spec: ModelSpec = model.parse().map_err(Failure::failed)?;
    let costs = MediumCosts::from(&tanada_placement::measure(&spec, MODEL_EXTENT_BYTES));
    let medium = Medium::Model { spec, extent_bytes: MODEL_EXTENT_BYTES }.to_string();
    let class = class.map(|class| class.name.clone());
    Ok(CalibratedMedium {
        class,
        path,
        medium,
        emulated: true,
        costs,
        rates: Vec::new(),
        disk: None,
        io_cpu_us: None,
    })
}

fn measured(
    class: Option<&ClassConfig>,
    path: PathBuf,
    arguments: &CalibrateArguments,
) -> Outcome<CalibratedMedium> {
    let metadata = std::fs::metadata(&path)
        .map_err(|error| Failure::failed(format!("cannot measure {}: {error}", path.display())))?;
    if !metadata.is_dir() {
        return Err(Failure::failed(format!(
            "cannot measure {}: it is no folder, and a file has to be made to measure writes; name a folder on the same \
             disk instead",
            path.display()
        )));
    }
    let medium = Medium::of_metadata(&metadata);
    let mut options = if arguments.quick { MediumOptions::quick() } else { MediumOptions::thorough() };
    options.file_bytes = arguments.size.map_or(options.file_bytes, ByteSize::bytes).max(LEAST_BYTES);
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() })
        .map_err(Failure::failed)?;
    let MediumMeasurement { costs, io_cpu_us, rates } =
        measure_medium(&path, &options, &executors, progress)?;
    let disk = match medium {
        Medium::Disk(number) => Some(number),
        _ => None,
    };
    Ok(CalibratedMedium {
        class: class.map(|class| class.name.clone()),
        medium: medium.to_string(),
        path,
        emulated: false,
        costs,
        rates,
        disk,
        io_cpu_us: Some(io_cpu_us),
    })
}

impl CalibratedMedium {
    fn kept(&self) -> MeasuredMedium {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        MeasuredMedium {
            path: std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone()),
            disk: self.medium.clone(),
            measured_s: now.as_secs(),
            costs: self.costs.clone(),
        }
    }
}

async fn processor(io_us: Option<f64>, runs: usize) -> Outcome<CpuCosts> {
    let sample = &SAMPLES[0];
    let directory = sample.data_directory(&tanada::default_folder()).map_err(Failure::failed)?;
    let session = Session::new(SessionOptions::default())?;
    session.mount_innodb(&directory, &MountOptions::default()).await?;
    session.use_database("tpch")?;
    Ok(measure_processor(&session, io_us, runs).await?)
}

/// Figures that are not what they were.
fn drift(before: &Measurements, now: &Measurements) -> Vec<String> {
    let mut drifted = Vec::new();
    let mut compare = |what: String, before: f64, now: f64| {
        let ratio = now / before.max(1e-12);
        if !(1.0 / DRIFT..=DRIFT).contains(&ratio) {
            drifted.push(format!("{what}: {before:.3} before, {now:.3} now"));
        }
    };
    for (number, disk) in &now.disks {
        let Some(old) = before.disks.get(number).filter(|old| old.measured_s != disk.measured_s) else {
            continue;
        };
        for depth in [1.0, 64.0] {
            let what = format!("{}, random reads a second at depth {depth}", disk.disk);
            compare(what, old.costs.iops(depth), disk.costs.iops(depth));
        }
        let what = format!("{}, MB/s in sequence", disk.disk);
        compare(what, old.costs.sequential_mb_per_s, disk.costs.sequential_mb_per_s);
    }
    for (name, old, new) in [
        ("a row", before.cpu.row_us, now.cpu.row_us),
        ("a column", before.cpu.column_us, now.cpu.column_us),
        ("a look-up", before.cpu.lookup_us, now.cpu.lookup_us),
        ("a hash probe", before.cpu.hash_probe_us, now.cpu.hash_probe_us),
    ] {
        compare(format!("processor, us for {name}"), old, new);
    }
    drifted
}

fn text(calibrated: &Calibrated) -> String {
    let mut media = Table::new(&[
        "medium",
        "class",
        "random reads/s, depth 1",
        "16",
        "256",
        "writes/s, depth 16",
        "MB/s read",
        "MB/s written",
        "useful depth",
    ]);
    for medium in &calibrated.media {
        let costs = &medium.costs;
        media.add(vec![
            medium.medium.clone(),
            medium.class.clone().unwrap_or_default(),
            format!("{:.0}", costs.iops(1.0)),
            format!("{:.0}", costs.iops(16.0)),
            format!("{:.0}", costs.iops(256.0)),
            format!("{:.0}", costs.write_iops(16.0)),
            format!("{:.0}", costs.sequential_mb_per_s),
            format!("{:.0}", costs.sequential_write_mb_per_s),
            format!("{:.0}", costs.adaptive_depth),
        ]);
    }
    let cpu = &calibrated.cpu;
    let mut processor = Table::new(&["work of the processor", "us"]);
    for (what, us) in [
        ("a random I/O", cpu.io_us),
        ("a page", cpu.page_us),
        ("a row", cpu.row_us),
        ("a column of a row", cpu.column_us),
        ("a look-up", cpu.lookup_us),
        ("a bookmark", cpu.bookmark_us),
        ("a row into a hash table", cpu.hash_build_us),
        ("a hash probe", cpu.hash_probe_us),
        ("a comparison", cpu.comparison_us),
        ("an expression", cpu.expression_us),
    ] {
        processor.add(vec![what.to_owned(), format!("{us:.3}")]);
    }
    let mut text = format!("{media}\n{processor}");
    for drifted in &calibrated.drifted {
        text += &format!("drifted: {drifted}\n");
    }
    text += &match &calibrated.kept {
        Some(path) => format!("kept in {}\n", path.display()),
        None => "nothing was kept\n".to_owned(),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drifted_figures_are_named() {
        let mut before = Measurements::default();
        let costs = MediumCosts::default();
        let disk = |measured_s, costs| MeasuredMedium {
            path: PathBuf::from("/"),
            disk: "disk 8:3".to_owned(),
            measured_s,
            costs,
        };
        before.disks.insert(1, disk(1, costs.clone()));
        let mut now = before.clone();
        assert!(drift(&before, &now).is_empty());
        let mut slower = costs;
        slower.sequential_mb_per_s /= 2.0;
        now.disks.insert(1, disk(2, slower));
        now.cpu.row_us *= 1.6;
        let named = drift(&before, &now);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(
            named[0].starts_with("disk 8:3, MB/s in sequence: 5000.000 before, 2500.000 now"),
            "{named:?}"
        );
    }
}
