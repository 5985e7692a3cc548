//! What to emulate, as data and as text: `8xhdd-7200`, `4xsata-qlc`, `hdd-7200:span=0.5,write-cache=off`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::keys::{self, Key, Place};
use super::preset::{FLASH_KEYS, MemberSpec, Preset, SPINDLE_KEYS};
use crate::{Error, ErrorKind};

/// Most members of an array.
const MOST_MEMBERS: u32 = 65_536;

/// RAID-0's segment where nothing else is said.
const SEGMENT_BYTES: u64 = 128 << 10;

/// A device or an array of equal devices to emulate. Written `[Nx]preset[:key=value,...]`; serialised as that text.
///
/// ```
/// use tanada_io::ModelSpec;
/// let spec: ModelSpec = "8 x hdd-7200:write-cache=off,segment=64KiB".parse()?;
/// assert_eq!((spec.members(), spec.segment_bytes()), (8, 65536));
/// assert_eq!(spec.to_string(), "8xhdd-7200:segment=64KiB,write-cache=off");
/// let error = "8xhdd".parse::<ModelSpec>().unwrap_err();
/// assert!(error.to_string().contains("hdd-7200, sata-qlc, sata-ssd, nvme, scm"));
/// # Ok::<(), tanada_io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModelSpec {
    members: u32,
    array: ArraySpec,
    preset: Preset,
    member: MemberSpec,
}

#[derive(Debug, Clone, PartialEq)]
struct ArraySpec {
    segment: u64,
}

const ARRAY_KEYS: &[Key<ArraySpec>] =
    &[Key { name: "segment", place: |spec| Place::Bytes(&mut spec.segment) }];

impl ModelSpec {
    /// One device with the figures of `preset`.
    pub fn new(preset: Preset) -> ModelSpec {
        let array = ArraySpec { segment: SEGMENT_BYTES };
        ModelSpec { members: 1, array, preset, member: preset.member() }
    }

    /// The same device, `members` times, as a RAID-0 array (at least 1, at most 65,536).
    pub fn times(mut self, members: u32) -> ModelSpec {
        self.members = members.clamp(1, MOST_MEMBERS);
        self
    }

    /// Devices in the array.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Consecutive bytes on one member of the array.
    pub fn segment_bytes(&self) -> u64 {
        self.array.segment
    }

    /// The preset it began with.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// The parameters of each member.
    pub fn member(&self) -> &MemberSpec {
        &self.member
    }

    /// I/Os in flight from which on more gain nothing: what the members choose from or work on at once, all together.
    pub fn useful_depth(&self) -> usize {
        let each = match &self.member {
            MemberSpec::Spindle(spec) => spec.queue,
            MemberSpec::Flash(spec) => spec.units,
        };
        usize::try_from(each.saturating_mul(u64::from(self.members))).unwrap_or(usize::MAX)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let outcome = match &mut self.member {
            MemberSpec::Spindle(spec) => assign(SPINDLE_KEYS, spec, name, value),
            MemberSpec::Flash(spec) => assign(FLASH_KEYS, spec, name, value),
        };
        outcome.or_else(|| assign(ARRAY_KEYS, &mut self.array, name, value)).unwrap_or_else(|| {
            let of_member = match &self.member {
                MemberSpec::Spindle(_) => keys::names(SPINDLE_KEYS),
                MemberSpec::Flash(_) => keys::names(FLASH_KEYS),
            };
            let array = keys::names(ARRAY_KEYS);
            Err(format!("{} has no {name:?}; it has {array}, {of_member}", self.preset.name()))
        })
    }

    /// What is wrong with parameters that are each well written.
    fn contradiction(&self) -> Option<String> {
        if self.array.segment < 512 {
            return Some("segment is at least 512 bytes".to_owned());
        }
        match &self.member {
            MemberSpec::Spindle(spec) => {
                let ordered = spec.seek_track <= spec.seek_average && spec.seek_average <= spec.seek_full;
                (!ordered).then(|| "seek-track, seek-average and seek-full must not fall".to_owned())
            }
            MemberSpec::Flash(spec) => (spec.page < 512).then(|| "page is at least 512 bytes".to_owned()),
        }
    }
}

/// Sets the key if the table has it.
fn assign<S>(keys: &[Key<S>], spec: &mut S, name: &str, value: &str) -> Option<Result<(), String>> {
    let key = keys.iter().find(|key| key.name == name)?;
    let set = (key.place)(spec).set(value);
    Some(set.map_err(|expected| format!("{name}={value}: {name} is {expected}")))
}

/// What differs from `plain`, as `key=value`.
fn differences<S: Clone>(keys: &[Key<S>], spec: &S, plain: &S, into: &mut Vec<String>) {
    for key in keys {
        let text = (key.place)(&mut spec.clone()).text();
        if text != (key.place)(&mut plain.clone()).text() {
            into.push(format!("{}={text}", key.name));
        }
    }
}

impl FromStr for ModelSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<ModelSpec, Error> {
        parse(text).map_err(|why| {
            let message =
                format!("{text:?} is no device model: {why}. Write it like 8xhdd-7200 or nvme:read=60us");
            Error::new(ErrorKind::InvalidInput, message)
        })
    }
}

fn parse(text: &str) -> Result<ModelSpec, String> {
    let (device, parameters) = text.split_once(':').unwrap_or((text, ""));
    let (members, name) = split_count(device.trim())?;
    let preset = Preset::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        format!("the preset {name:?} is not known; there are {names}")
    })?;
    let mut spec = ModelSpec::new(preset).times(members);
    for parameter in parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
        let (key, value) =
            parameter.split_once('=').ok_or_else(|| format!("{parameter:?} is no key=value"))?;
        spec.set(key.trim(), value.trim())?;
    }
    spec.contradiction().map_or(Ok(spec), Err)
}

/// `8xhdd` and `8 x hdd` are 8 of `hdd`; `hdd` is one.
fn split_count(text: &str) -> Result<(u32, &str), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let Some(name) = text[digits..].trim_start().strip_prefix('x').filter(|_| digits > 0) else {
        return Ok((1, text));
    };
    let members = text[..digits].parse().ok().filter(|members| (1..=MOST_MEMBERS).contains(members));
    Ok((members.ok_or_else(|| format!("an array has 1 to {MOST_MEMBERS} members"))?, name.trim_start()))
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members > 1 {
            write!(f, "{}x", self.members)?;
        }
        f.write_str(self.preset.name())?;
        let mut parameters = Vec::new();
        differences(ARRAY_KEYS, &self.array, &ArraySpec { segment: SEGMENT_BYTES }, &mut parameters);
        match (&self.member, self.preset.member()) {
            (MemberSpec::Spindle(spec), MemberSpec::Spindle(plain)) => {
                differences(SPINDLE_KEYS, spec, &plain, &mut parameters);
            }
            (MemberSpec::Flash(spec), MemberSpec::Flash(plain)) => {
                differences(FLASH_KEYS, spec, &plain, &mut parameters);
            }
            (MemberSpec::Spindle(_), MemberSpec::Flash(_))
            | (MemberSpec::Flash(_), MemberSpec::Spindle(_)) => {}
        }
        if parameters.is_empty() { Ok(()) } else { write!(f, ":{}", parameters.join(",")) }
    }
}

impl From<ModelSpec> for String {
    fn from(spec: ModelSpec) -> String {
        spec.to_string()
    }
}

impl TryFrom<String> for ModelSpec {
    type Error = Error;

    fn try_from(text: String) -> Result<ModelSpec, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<ModelSpec>().unwrap_err().to_string()
    }

    #[test]
    fn specifications_are_written_as_read() {
        for text in [
            "hdd-7200",
            "8xhdd-7200",
            "4xsata-qlc:write-rate=260MB/s,write-iops=13000",
            "nvme:read=60us",
            "scm",
            "3xhdd-7200:segment=64KiB,span=1,capacity=500GB,write-cache=off",
        ] {
            assert_eq!(text.parse::<ModelSpec>().unwrap().to_string(), text);
        }
        assert_eq!("1x sata-ssd".parse::<ModelSpec>().unwrap().to_string(), "sata-ssd");
        assert_eq!("hdd-7200: span=0.5 , queue=1".parse::<ModelSpec>().unwrap().members(), 1);
    }

    #[test]
    fn mistakes_are_answered_with_what_is_right() {
        assert!(message("floppy").contains("there are hdd-7200, sata-qlc, sata-ssd, nvme, scm"));
        assert!(message("nvme:rpm=3").contains("it has segment, units, page, read"));
        assert!(message("hdd-7200:rate=fast").contains("rate is a rate above zero, like 150MB/s"));
        assert!(message("0xnvme").contains("1 to 65536 members"));
        assert!(message("99999999999xnvme").contains("1 to 65536 members"));
        assert!(message("nvme:read").contains("is no key=value"));
        assert!(message("hdd-7200:seek-average=30ms").contains("must not fall"));
        assert!(message("2xnvme:segment=0B").contains("at least 512"));
        assert!(message("").contains("there are hdd-7200"));
    }

    #[test]
    fn a_specification_is_data() {
        let spec: ModelSpec = "8xhdd-7200:span=0.5".parse().unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(json, "\"8xhdd-7200:span=0.5\"");
        assert_eq!(serde_json::from_str::<ModelSpec>(&json).unwrap(), spec);
        assert!(serde_json::from_str::<ModelSpec>("\"tape\"").is_err());
    }
}
