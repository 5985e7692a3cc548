//! The parameters of devices and the presets: figures of data sheets, with the source in `docs/device-models.md`.

use std::time::Duration;

use super::keys::{Key, Place};

/// A disk with a spindle and one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct SpindleSpec {
    /// Revolutions a minute.
    pub rpm: u64,
    /// Seek to the next track.
    pub seek_track: Duration,
    /// Mean seek over all pairs of places on the whole disk.
    pub seek_average: Duration,
    /// Seek over the full stroke.
    pub seek_full: Duration,
    /// How much a seek may take more or less than its mean; the elevator cannot know, so what it times closely may miss
    /// a turn.
    pub seek_jitter: Duration,
    /// What a write needs longer than a read to settle on its track.
    pub settle_write: Duration,
    /// Sustained media rate, bytes a second.
    pub rate: u64,
    /// Rate of the interface, bytes a second: how fast cached bytes move.
    pub interface: u64,
    /// Of a command that needs the mechanism; hidden behind other commands' positioning if there are any.
    pub overhead: Duration,
    /// Of a command that the cache serves.
    pub hit: Duration,
    /// Commands that the elevator chooses from; more wait first come, first served.
    pub queue: u64,
    /// The share of the stroke that the data lies on, however little it is. Without effect where `capacity` is given.
    pub span: f64,
    /// Bytes of the whole stroke: addresses are then taken literally. 0 spreads the data over `span`.
    pub capacity: u64,
    /// Bytes read ahead of a sequential stream.
    pub read_ahead: u64,
    /// Sequential streams that the cache keeps apart.
    pub streams: u64,
    /// Bytes of writes that may be acknowledged before they are on the medium; 0 is a write cache that is switched off.
    pub write_cache: u64,
}

pub(super) const SPINDLE_KEYS: &[Key<SpindleSpec>] = &[
    Key { name: "rpm", place: |spec| Place::Count(&mut spec.rpm) },
    Key { name: "seek-track", place: |spec| Place::Time(&mut spec.seek_track) },
    Key { name: "seek-average", place: |spec| Place::Time(&mut spec.seek_average) },
    Key { name: "seek-full", place: |spec| Place::Time(&mut spec.seek_full) },
    Key { name: "seek-jitter", place: |spec| Place::Time(&mut spec.seek_jitter) },
    Key { name: "settle-write", place: |spec| Place::Time(&mut spec.settle_write) },
    Key { name: "rate", place: |spec| Place::Rate(&mut spec.rate) },
    Key { name: "interface", place: |spec| Place::Rate(&mut spec.interface) },
    Key { name: "overhead", place: |spec| Place::Time(&mut spec.overhead) },
    Key { name: "hit", place: |spec| Place::Time(&mut spec.hit) },
    Key { name: "queue", place: |spec| Place::Count(&mut spec.queue) },
    Key { name: "span", place: |spec| Place::Share(&mut spec.span) },
    Key { name: "capacity", place: |spec| Place::Bytes(&mut spec.capacity) },
    Key { name: "read-ahead", place: |spec| Place::Bytes(&mut spec.read_ahead) },
    Key { name: "streams", place: |spec| Place::Count(&mut spec.streams) },
    Key { name: "write-cache", place: |spec| Place::Bytes(&mut spec.write_cache) },
];

/// A device of flash or another memory without moving parts.
#[derive(Debug, Clone, PartialEq)]
pub struct FlashSpec {
    /// Units (channels times dies) that work at once.
    pub units: u64,
    /// Bytes that one unit reads at once.
    pub page: u64,
    /// A unit's time for a page.
    pub read: Duration,
    /// The fixed part of a read's latency.
    pub overhead: Duration,
    /// From a write's arrival to its acknowledgement while the buffer has room.
    pub write: Duration,
    /// The controller's time per command; commands pass it one after the other, so it caps the IOPS.
    pub command: Duration,
    /// Bytes a second read.
    pub read_rate: u64,
    /// Bytes a second written, sustained, sequentially.
    pub write_rate: u64,
    /// Random writes of 4 KiB a second, sustained: with all that garbage collection costs.
    pub write_iops: u64,
    /// Bytes of writes that may be acknowledged before they are on the medium.
    pub write_buffer: u64,
    /// Mean time that a unit which programs keeps a read waiting.
    pub program: Duration,
    /// The share of units that program while the buffer is being emptied: the chance that a read meets one.
    pub programming: f64,
    /// A sync's time, once what it must wait for is on the medium.
    pub sync: Duration,
    /// Whether the buffer survives a power cut, so that a sync need not empty it.
    pub protected: bool,
    /// Whether reads and writes share the interface (SATA).
    pub half_duplex: bool,
}

pub(super) const FLASH_KEYS: &[Key<FlashSpec>] = &[
    Key { name: "units", place: |spec| Place::Count(&mut spec.units) },
    Key { name: "page", place: |spec| Place::Bytes(&mut spec.page) },
    Key { name: "read", place: |spec| Place::Time(&mut spec.read) },
    Key { name: "overhead", place: |spec| Place::Time(&mut spec.overhead) },
    Key { name: "write", place: |spec| Place::Time(&mut spec.write) },
    Key { name: "command", place: |spec| Place::Time(&mut spec.command) },
    Key { name: "read-rate", place: |spec| Place::Rate(&mut spec.read_rate) },
    Key { name: "write-rate", place: |spec| Place::Rate(&mut spec.write_rate) },
    Key { name: "write-iops", place: |spec| Place::Count(&mut spec.write_iops) },
    Key { name: "write-buffer", place: |spec| Place::Bytes(&mut spec.write_buffer) },
    Key { name: "program", place: |spec| Place::Time(&mut spec.program) },
    Key { name: "programming", place: |spec| Place::Share(&mut spec.programming) },
    Key { name: "sync", place: |spec| Place::Time(&mut spec.sync) },
    Key { name: "protected", place: |spec| Place::Switch(&mut spec.protected) },
    Key { name: "half-duplex", place: |spec| Place::Switch(&mut spec.half_duplex) },
];

/// The parameters of one device.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberSpec {
    /// With a spindle.
    Spindle(SpindleSpec),
    /// Without moving parts.
    Flash(FlashSpec),
}

/// A device whose figures are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// A 7,200 rpm disk of 500 GB (Seagate Constellation class).
    Hdd7200,
    /// A QLC SATA SSD (Micron 5210 ION, 3.84 TB).
    SataQlc,
    /// A SATA SSD of the early 2010s (Intel 320, 300 GB).
    SataSsd,
    /// A data-centre NVMe SSD (Micron 9300 class).
    Nvme,
    /// Storage-class memory (Intel Optane P4800X).
    Scm,
}

impl Preset {
    /// All of them, slowest first.
    pub const ALL: [Preset; 5] =
        [Preset::Hdd7200, Preset::SataQlc, Preset::SataSsd, Preset::Nvme, Preset::Scm];

    /// What a specification calls it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Hdd7200 => "hdd-7200",
            Preset::SataQlc => "sata-qlc",
            Preset::SataSsd => "sata-ssd",
            Preset::Nvme => "nvme",
            Preset::Scm => "scm",
        }
    }

    /// Its parameters.
    pub fn member(self) -> MemberSpec {
        match self {
            Preset::Hdd7200 => MemberSpec::Spindle(hdd_7200()),
            Preset::SataQlc => MemberSpec::Flash(sata_qlc()),
            Preset::SataSsd => MemberSpec::Flash(sata_ssd()),
            Preset::Nvme => MemberSpec::Flash(nvme()),
            Preset::Scm => MemberSpec::Flash(scm()),
        }
    }
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

fn hdd_7200() -> SpindleSpec {
    SpindleSpec {
        rpm: 7200,
        seek_track: us(500),
        seek_average: us(8000),
        seek_full: us(17_350),
        seek_jitter: us(800),
        settle_write: us(400),
        rate: 150_000_000,
        interface: 300_000_000,
        overhead: us(200),
        hit: us(60),
        queue: 32,
        span: 0.16,
        capacity: 0,
        read_ahead: 1 << 20,
        streams: 8,
        write_cache: 8 << 20,
    }
}

fn sata_qlc() -> FlashSpec {
    FlashSpec {
        units: 64,
        page: 16 << 10,
        read: us(130),
        overhead: us(40),
        write: us(50),
        command: ns(11_600),
        read_rate: 540_000_000,
        write_rate: 350_000_000,
        write_iops: 6500,
        write_buffer: 4 << 20,
        program: us(700),
        programming: 0.25,
        sync: us(60),
        protected: true,
        half_duplex: true,
    }
}

fn sata_ssd() -> FlashSpec {
    FlashSpec {
        units: 20,
        page: 8 << 10,
        read: us(45),
        overhead: us(13),
        write: us(90),
        command: ns(24_400),
        read_rate: 270_000_000,
        write_rate: 205_000_000,
        write_iops: 23_000,
        write_buffer: 2 << 20,
        program: us(600),
        programming: 0.2,
        sync: us(100),
        protected: true,
        half_duplex: true,
    }
}

fn nvme() -> FlashSpec {
    FlashSpec {
        units: 256,
        page: 16 << 10,
        read: us(80),
        overhead: us(10),
        write: us(21),
        command: ns(1170),
        read_rate: 3_500_000_000,
        write_rate: 3_100_000_000,
        write_iops: 130_000,
        write_buffer: 16 << 20,
        program: us(300),
        programming: 0.2,
        sync: us(20),
        protected: true,
        half_duplex: false,
    }
}

fn scm() -> FlashSpec {
    FlashSpec {
        units: 28,
        page: 4 << 10,
        read: ns(3300),
        overhead: ns(2200),
        write: us(9),
        command: ns(1800),
        read_rate: 2_400_000_000,
        write_rate: 2_000_000_000,
        write_iops: 500_000,
        write_buffer: 256 << 10,
        program: us(3),
        programming: 0.1,
        sync: us(5),
        protected: true,
        half_duplex: false,
    }
}
