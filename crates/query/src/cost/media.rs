//! What is known of the media of this machine.
//!
//! 1. A device model is measured on itself.
//! 2. A disk that `tanada calibrate` has measured has the figures of its file: one in the user's cache folder, and one
//!    in the folder of each volume that was measured.
//! 3. Any other has the defaults.
//!
//! Disks are those of the machine, so what was read of them holds for the process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tanada_io::{Medium, ModelSpec};

use super::{Calibration, CpuCosts, MediumCosts};
use crate::{Error, ErrorKind, Result};

/// What the file is called.
pub const CALIBRATION_FILE: &str = "calibration.json";
/// The version of its format.
const VERSION: u32 = 1;

/// A measured medium.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredMedium {
    /// Where it was measured.
    pub path: PathBuf,
    /// The disk's name, as [`Medium`] is displayed.
    pub disk: String,
    /// When, in seconds since 1970.
    pub measured_s: u64,
    /// The figures.
    pub costs: MediumCosts,
}

/// What `tanada calibrate` has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurements {
    version: u32,
    /// The processor.
    pub cpu: CpuCosts,
    /// Disks, by device number.
    pub disks: BTreeMap<u64, MeasuredMedium>,
}

impl Default for Measurements {
    fn default() -> Self {
        Measurements { version: VERSION, cpu: CpuCosts::default(), disks: BTreeMap::new() }
    }
}

impl Measurements {
    /// Reads them; `None` where there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of this format and version.
    pub fn read(path: &Path) -> Result<Option<Measurements>> {
        let failed = |kind, why: String| {
            let path = path.display();
            let way_out = "remove it, or measure again with tanada calibrate";
            Error::new(kind, format!("cannot use the calibration {path}: {why}; {way_out}"))
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(ErrorKind::Io, error.to_string())),
        };
        let read: Measurements = serde_json::from_str(&text)
            .map_err(|error| failed(ErrorKind::InvalidInput, format!("it is no calibration ({error})")))?;
        if read.version != VERSION {
            let why = format!("it has version {}, this program reads {VERSION}", read.version);
            return Err(failed(ErrorKind::InvalidInput, why));
        }
        let disks = read.disks.values().flat_map(|disk| disk.costs.figures());
        let figures = disks.chain(read.cpu.figures());
        if let Some(wrong) = figures.into_iter().find(|figure| !(figure.is_finite() && *figure > 0.0)) {
            return Err(failed(ErrorKind::InvalidInput, format!("a figure of it is {wrong}")));
        }
        Ok(Some(read))
    }

    /// Writes them in the place of what is there, at once.
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write the calibration {}: {error}", path.display()))
        };
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let beside = path.with_extension(format!("json.{}", std::process::id()));
        std::fs::write(&beside, text + "\n").and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            failed(error)
        })
    }
}

#[derive(Debug, Default)]
struct Known {
    measured: Option<Measurements>,
    /// Models that were measured, by their text and the power of two of their extent.
    models: BTreeMap<(String, u32), MediumCosts>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { measured: None, models: BTreeMap::new() });

/// From now on these are used; disks that were known before remain.
pub fn use_measurements(measured: Measurements) {
    let mut known = KNOWN.lock();
    match &mut known.measured {
        None => known.measured = Some(measured),
        Some(before) => {
            before.cpu = measured.cpu;
            before.disks.extend(measured.disks);
        }
    }
}

/// What is known of a medium and of the processor, and where it is from.
pub fn calibration_of(medium: &Medium) -> Arc<Calibrated> {
    let mut known = KNOWN.lock();
    let cpu = known.measured.as_ref().map(|measured| measured.cpu.clone()).unwrap_or_default();
    let disk = match medium {
        Medium::Disk(number) => known.measured.as_ref().and_then(|measured| measured.disks.get(number)),
        Medium::Unknown | Medium::Model { .. } => None,
    };
    let (costs, source) = match (medium, disk) {
        (Medium::Model { spec, extent_bytes }, _) => (known.model(spec, *extent_bytes), medium.to_string()),
        (_, Some(disk)) => (disk.costs.clone(), format!("{medium} as measured")),
        _ => (MediumCosts::default(), format!("{medium}, defaults")),
    };
    Arc::new(Calibrated { calibration: Calibration { medium: costs, cpu }, source })
}

impl Known {
    fn model(&mut self, spec: &ModelSpec, extent_bytes: u64) -> MediumCosts {
        let extent = extent_bytes.max(64 << 20).checked_next_power_of_two().unwrap_or(1 << 63);
        let costs = self.models.entry((spec.to_string(), extent.trailing_zeros()));
        costs.or_insert_with(|| MediumCosts::from(&tanada_placement::measure(spec, extent))).clone()
    }
}

/// Constants of the cost model for what lies on a medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// The constants.
    pub calibration: Calibration,
    /// Where those of the medium are from: `disk 8:3 as measured`, `8xhdd-7200 (emulated)`, `disk 8:3, defaults`.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(iops: f64) -> Measurements {
        let mut costs = MediumCosts::default();
        costs.random_reads.iter_mut().for_each(|rate| rate.iops = iops);
        let path = PathBuf::from("/data");
        let disk = MeasuredMedium { path, disk: "disk 8:3".to_owned(), measured_s: 1, costs };
        Measurements { disks: BTreeMap::from([(u64::MAX, disk)]), ..Measurements::default() }
    }

    #[test]
    fn measured_disks_replace_the_defaults_and_models_are_measured_on_themselves() {
        let disk = Medium::Disk(u64::MAX);
        assert_eq!(calibration_of(&disk).calibration.medium, MediumCosts::default());
        use_measurements(measured(1_234.0));
        let found = calibration_of(&disk);
        assert_eq!(found.calibration.medium.iops(64.0), 1_234.0);
        assert!(found.source.ends_with("as measured"), "{}", found.source);
        let other = calibration_of(&Medium::Unknown);
        assert_eq!(
            (other.calibration.medium.iops(1.0), other.source.as_str()),
            (11_500.0, "unknown, defaults")
        );
        let spec: ModelSpec = "hdd-7200".parse().unwrap();
        let model = calibration_of(&Medium::Model { spec, extent_bytes: 1 << 30 });
        assert!(model.calibration.medium.iops(1.0) < 300.0, "{model:?}");
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_a_bad_one_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache").join(CALIBRATION_FILE);
        assert_eq!(Measurements::read(&path).unwrap(), None);
        measured(77.0).write(&path).unwrap();
        assert_eq!(Measurements::read(&path).unwrap(), Some(measured(77.0)));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to, said) in [
            ("\"version\": 1", "\"version\": 9", "it has version 9"),
            ("77.0", "-1.0", "a figure of it is -1"),
            ("\"cpu\"", "\"gpu\"", "it is no calibration"),
        ] {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let error = Measurements::read(&path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("tanada calibrate"), "{error}");
        }
    }
}
