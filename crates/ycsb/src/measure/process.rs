//! CPU time and memory of this process, as the kernel counts them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The kernel's unit of CPU time in `/proc`: fixed at 100 a second for programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// How often memory is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// CPU seconds of this process, all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// Outside the kernel.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
}

impl CpuTime {
    /// So far; zero where the system does not tell.
    pub fn now() -> CpuTime {
        CpuTime::parse(&fs::read_to_string("/proc/self/stat").unwrap_or_default()).unwrap_or_default()
    }

    fn parse(stat: &str) -> Option<CpuTime> {
        // The name may hold spaces and parentheses: fields are counted from its end. `utime` is field 14, `state`
        // behind the name is field 3.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(11);
        let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        Some(CpuTime { user_s: seconds()?, system_s: seconds()? })
    }

    /// What was used since `before`.
    pub fn since(self, before: CpuTime) -> CpuTime {
        CpuTime { user_s: self.user_s - before.user_s, system_s: self.system_s - before.system_s }
    }
}

/// CPU seconds that a virtual machine had work for and did not get, of all its processors, since it began; 0 where the
/// system does not tell.
pub fn stolen_s() -> f64 {
    stolen_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or(0.0) / TICKS_PER_SECOND
}

fn stolen_ticks(stat: &str) -> Option<f64> {
    // "cpu  user nice system idle iowait irq softirq steal ..."
    let all = stat.lines().find(|line| line.starts_with("cpu "))?;
    all.split_ascii_whitespace().nth(8)?.parse().ok()
}

/// Main memory of this machine; `None` where the system does not tell.
pub fn machine_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().split(' ').next()?.parse::<u64>().ok()? << 10)
}

/// Main memory that this process has; 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Looks at the memory of this process until it is stopped.
#[derive(Debug)]
pub struct MemoryWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    most: AtomicU64,
    is_over: AtomicBool,
}

impl MemoryWatch {
    /// Begins.
    pub fn start() -> MemoryWatch {
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        let thread = std::thread::Builder::new().name("memory-watch".to_owned()).spawn(move || {
            while !watched.is_over.load(Ordering::Relaxed) {
                watched.most.fetch_max(resident_bytes(), Ordering::Relaxed);
                std::thread::park_timeout(BETWEEN_LOOKS);
            }
        });
        // Without a thread, the last look is the only one.
        MemoryWatch { shared, thread: thread.ok() }
    }

    /// The most there was.
    pub fn stop(mut self) -> u64 {
        self.end();
        self.shared.most.fetch_max(resident_bytes(), Ordering::Relaxed);
        self.shared.most.load(Ordering::Relaxed)
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "7 (a) b 1 2) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(CpuTime::parse(stat), Some(CpuTime { user_s: 2.5, system_s: 0.5 }));
        assert_eq!(CpuTime::parse("7 (x) S 1"), None);
    }

    #[test]
    fn stolen_time_is_that_of_all_processors() {
        let stat = "cpu  1 2 3 4 5 6 7 890 9 10\ncpu0 1 1 1 1 1 1 1 400 1 1\n";
        assert_eq!(stolen_ticks(stat), Some(890.0));
        assert_eq!(stolen_ticks("cpu  1 2 3"), None);
    }

    #[test]
    fn memory_that_is_taken_is_seen() {
        let before = resident_bytes();
        let watch = MemoryWatch::start();
        let taken = vec![1u8; 64 << 20];
        assert!(resident_bytes() >= before.max(32 << 20));
        drop(std::hint::black_box(taken));
        assert!(watch.stop() > 0);
    }
}
