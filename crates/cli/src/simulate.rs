//! `tanada simulate`: what a recorded run would have taken under other policies, on other devices.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tanada_base::ByteSize;
use tanada_io::ModelSpec;
use tanada_placement::{End, Trace, TraceReader, import};
use tanada_replay::{Outcome as Simulated, Pace, SimulationOptions, sweep_after, synthetic};
use tanada_report::Table;

use crate::failure::{Failure, Outcome, one_line};
use crate::output::{OutputArguments, count, size};
use crate::range::{policies, shares};

/// Arguments of `tanada simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada simulate run.trace                                    # every policy, 10 to 100 % in steps of 10
  tanada simulate run.trace --policy benefit,lru:fifo --fast-share 20,40
  tanada simulate --synthetic 0.1 --fast nvme --slow 8xhdd-7200 --depth 32
  tanada simulate usr_0.csv.gz --import msr --policy smq,benefit --json
  tar xOf msr-cambridge1.tar MSR-Cambridge/usr_0.csv.gz | tanada simulate - --import msr

Times are virtual: the devices are models (docs/device-models.md), relocations take their time from the same devices, and no byte moves. Policies
and their options are described in docs/placement.md. Policies that learn see the trace once before, as in the paper; --no-training spares them that.")]
pub struct SimulateArguments {
    /// A chunk trace, or with --import another tool's log, which gzip or zstd may have compressed; - for stdin
    #[arg(value_name = "TRACE", required_unless_present = "synthetic")]
    trace: Option<PathBuf>,
    /// What TRACE is, if no chunk trace
    #[arg(long, value_enum, requires = "trace")]
    import: Option<Log>,
    /// Instead of a trace: nine queries in the shape of TPC-H's at this scale
    #[arg(long, value_name = "SCALE", conflicts_with = "trace", value_parser = scale)]
    synthetic: Option<f64>,
    /// Policies with their options, separated by commas, or all; an option of a policy follows it with a colon
    #[arg(long, value_name = "NAME,NAME", default_value = "all")]
    policy: String,
    /// Room of the fast class in per cent of all data: A..B is in steps of ten
    #[arg(long, value_name = "A..B | N,N", default_value = "10..100")]
    fast_share: String,
    /// Devices of both classes at once, the fast one first: instead of --fast and --slow
    #[arg(long, value_name = "FAST,SLOW", conflicts_with_all = ["fast", "slow"], value_parser = models)]
    models: Option<Models>,
    /// Devices of the fast class
    #[arg(long, value_name = "MODEL", default_value = "sata-ssd")]
    fast: ModelSpec,
    /// Devices of the slow class
    #[arg(long, value_name = "MODEL", default_value = "3xhdd-7200")]
    slow: ModelSpec,
    /// I/Os in flight of a query; 1 is in order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Clients that run queries at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    clients: u32,
    /// Bytes of a chunk
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    chunk_size: ByteSize,
    /// Policies that learn begin knowing nothing
    #[arg(long, conflicts_with = "training")]
    no_training: bool,
    /// Policies that learn see another recording of the same files before, such as one of the day before, instead of
    /// TRACE
    #[arg(long, value_name = "FILE", conflicts_with = "synthetic")]
    training: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

impl SimulateArguments {
    fn fast(&self) -> &ModelSpec {
        self.models.as_ref().map_or(&self.fast, |models| &models.fast)
    }

    fn slow(&self) -> &ModelSpec {
        self.models.as_ref().map_or(&self.slow, |models| &models.slow)
    }
}

/// Logs of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// MSR Cambridge CSV
    Msr,
    /// fio's write_iolog, versions 2 and 3
    Fio,
}

/// Runs the subcommand.
pub fn run(arguments: &SimulateArguments) -> Outcome {
    let policies = policies("--policy", &arguments.policy)?;
    let shares = shares("--fast-share", &arguments.fast_share, 0)?;
    let chunk_bytes = arguments.chunk_size.bytes();
    if !(64 << 10..=1 << 30).contains(&chunk_bytes) || !chunk_bytes.is_power_of_two() {
        return Err(Failure::usage("--chunk-size: a power of two from 64KiB to 1GiB"));
    }
    if [&arguments.trace, &arguments.training].iter().all(|path| path.as_deref().is_some_and(is_stdin)) {
        return Err(Failure::usage("--training: stdin has the trace already"));
    }
    let trace = trace(arguments)?;
    if trace.ios() == 0 {
        let name = arguments.trace.as_deref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
        return Err(Failure::failed(format!("{name}the trace has no I/O")));
    }
    let training = arguments.training.as_ref().map(|path| read(path, arguments.import)).transpose()?;
    let training = training.as_ref().unwrap_or(&trace);
    let mut runs = Vec::with_capacity(policies.len() * shares.len());
    for share in &shares {
        for policy in &policies {
            runs.push(SimulationOptions {
                fast: arguments.fast().clone(),
                slow: arguments.slow().clone(),
                pace: if arguments.depth == 1 {
                    Pace::InOrder
                } else {
                    Pace::OutOfOrder { depth: arguments.depth }
                },
                clients: arguments.clients as usize,
                chunk_bytes,
                trains: !arguments.no_training,
                ..SimulationOptions::new(policy, f64::from(*share) / 100.0)
            });
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = progress(runs.len());
    let outcomes = sweep_after(training, &trace, None, &runs, threads, &|done| {
        progress.set_position(done as u64);
    })
    .map_err(Failure::failed)?;
    progress.finish_and_clear();
    arguments.output.print(&outcomes, |outcomes| text(arguments, &trace, &policies, &shares, outcomes))
}

fn progress(runs: usize) -> indicatif::ProgressBar {
    // Hidden where stderr is no terminal.
    let style = indicatif::ProgressStyle::with_template("{pos} of {len} replays {wide_bar} {eta}");
    let bar = indicatif::ProgressBar::new(runs as u64);
    style.map(|style| bar.clone().with_style(style)).unwrap_or(bar)
}

/// Devices of the fast and the slow class.
#[derive(Debug, Clone)]
struct Models {
    fast: ModelSpec,
    slow: ModelSpec,
}

fn models(text: &str) -> Result<Models, String> {
    let mut models: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        // hdd-7200:span=1,write-cache=off: what is no model of its own is the last one's option.
        let is_option = part.split_once('=').is_some_and(|(key, _)| !key.contains(':'));
        match models.last_mut() {
            Some(last) if is_option && last.contains(':') => *last = format!("{last},{part}"),
            _ => models.push(part.to_owned()),
        }
    }
    let [fast, slow] = &models[..] else { return Err("two models, like sata-ssd,3xhdd-7200".to_owned()) };
    let model = |text: &String| text.parse::<ModelSpec>().map_err(|error| error.to_string());
    Ok(Models { fast: model(fast)?, slow: model(slow)? })
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=10.0).contains(&scale) => Ok(scale),
        _ => Err("a scale from 0.001 to 10".to_owned()),
    }
}

fn trace(arguments: &SimulateArguments) -> Outcome<Trace> {
    if let Some(scale) = arguments.synthetic {
        return Ok(synthetic::nine_queries(&synthetic::Synthetic { scale, ..Default::default() }));
    }
    let Some(path) = &arguments.trace else { return Err(Failure::usage("name a trace, or use --synthetic")) };
    read(path, arguments.import)
}

fn read(path: &Path, log: Option<Log>) -> Outcome<Trace> {
    let source = if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() };
    let unreadable = |error: &dyn std::fmt::Display| Failure::failed(format!("{source}: {error}"));
    let file: Box<dyn BufRead> = if is_stdin(path) {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(path).map_err(|error| unreadable(&error))?))
    };
    let name = run_name(path);
    match log {
        Some(Log::Msr) => import::msr(file, &name).map_err(|error| unreadable(&error)),
        Some(Log::Fio) => import::fio(file, &name).map_err(|error| unreadable(&error)),
        None => {
            let read = TraceReader::new(file).and_then(TraceReader::read);
            let (trace, end) = read.map_err(|error| unreadable(&error))?;
            warn_of(&source, &end);
            Ok(trace)
        }
    }
}

/// Whether the trace comes from there.
fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What the run of an imported log is called: its file, without what tells how it is written.
fn run_name(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".to_owned();
    }
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    let inner = if is_compressed { path.with_extension("") } else { path.to_owned() };
    inner.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn warn_of(source: &str, end: &End) {
    if *end != End::Finished {
        let said = one_line(&format!("{source}: the recording was cut short; what is there is replayed"));
        eprintln!("tanada: warning: {said}");
    }
}

/// What a table shows of an outcome.
type Figure = fn(&Simulated) -> String;

/// The tables, each under its title; the first has the head of all for one.
const FIGURES: [(&str, Figure); 8] = [
    ("", |outcome| format!("{:.1}", outcome.total_s)),
    ("requests to the slow class, relocations left out", |outcome| outcome.slow_ios.to_string()),
    ("MiB that relocations copied", |outcome| mebibytes(outcome.relocation_bytes)),
    ("requests of relocations to the slow class", |outcome| outcome.relocation_slow_ios.to_string()),
    ("requests of relocations to the fast class", |outcome| outcome.relocation_fast_ios.to_string()),
    ("% of the bytes read that came from the fast class", |outcome| {
        format!("{:.1}", outcome.hit_rate * 100.0)
    }),
    ("MiB written to the fast class while queries ran", |outcome| mebibytes(outcome.fast_bytes_written)),
    ("MiB put into the fast class beforehand, in no time", |outcome| mebibytes(outcome.prepared_bytes)),
];

fn mebibytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

fn text(
    arguments: &SimulateArguments,
    trace: &Trace,
    policies: &[String],
    shares: &[u32],
    outcomes: &[Simulated],
) -> String {
    let mut text = format!(
        "{} over {} in {}, on {} (slow) and {} (fast), all emulated, in virtual time\n\nseconds in all\n",
        count(trace.ios(), "I/O"),
        size(trace.bytes()),
        count(trace.queries().len() as u64, "query run"),
        arguments.slow(),
        arguments.fast(),
    );
    for (title, figure) in FIGURES {
        if !title.is_empty() {
            text.push_str(&format!("\n{title}\n"));
        }
        let mut header = vec!["fast %"];
        header.extend(policies.iter().map(String::as_str));
        let mut table = Table::new(&header);
        for (share, row) in shares.iter().zip(outcomes.chunks(policies.len())) {
            let mut cells = vec![share.to_string()];
            cells.extend(row.iter().map(figure));
            table.add(cells);
        }
        text.push_str(&table.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_after_their_files() {
        for (path, name) in [
            ("a/usr_0.csv.gz", "usr_0"),
            ("usr.0.csv", "usr.0"),
            ("fio.log.zst", "fio"),
            ("-", "stdin"),
            ("a", "a"),
        ] {
            assert_eq!(run_name(Path::new(path)), name);
        }
    }

    #[test]
    fn both_models_come_at_once() {
        let both = models("nvme, 8xhdd-7200").unwrap();
        assert_eq!(
            (both.fast.to_string(), both.slow.to_string()),
            ("nvme".to_owned(), "8xhdd-7200".to_owned())
        );
        let with_options = models("hdd-7200:span=0.5,write-cache=off, sata-ssd").unwrap();
        assert_eq!(with_options.slow.to_string(), "sata-ssd");
        assert_eq!(with_options.fast, "hdd-7200:span=0.5,write-cache=off".parse().unwrap());
        for wrong in ["nvme", "nvme,", "nvme,tape", "nvme,nvme,nvme", "span=1,nvme"] {
            assert!(models(wrong).is_err(), "{wrong}");
        }
    }
}
