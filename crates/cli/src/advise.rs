//! `tanada advise`: placement for MySQL, MariaDB, PostgreSQL and SQLite on a mounted volume, by their plans.
//!
//! Without `--proxy` one statement is explained, what it reads is printed and placed. With it, clients connect to this
//! process instead of to the server, and what they read is placed while the server runs it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgGroup, Args};
use futures::FutureExt;
use serde::Serialize;
use tanada_advisor::layout::InnodbLayout;
use tanada_advisor::message::{Announcement, Foreseen, ObjectAccess, Relocated};
use tanada_advisor::proxy::{Address, Connect, Explainer, Protocol, Proxy, explain};
use tanada_advisor::server::credentials::{Password, Target};
use tanada_advisor::server::{MySql, Postgres, Sqlite};
use tanada_advisor::{Advisor, Client, FileLayout, Mounts, PlanSource, Statistics};
use tanada_io::{ExecutorOptions, Executors};
use tanada_placement::Pattern;
use tanada_report::Table;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Outcome};
use crate::output::{OutputArguments, count, say, size};

/// Statements that wait to be explained.
const MAX_WAITING: usize = 1024;
/// Moves that are printed one by one.
const SHOWN_MOVES: usize = 10;

/// Arguments of `tanada advise`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("system").required(true).args(["mysql", "postgres", "sqlite"])),
    group(ArgGroup::new("work").required(true).args(["proxy", "statement"])),
    after_help = "\
Examples:
  tanada mount vol /mnt/vol --policy benefit
  tanada advise --mysql mysql://root@127.0.0.1/shop --volume vol -- \"select count(*) from orders\"
  tanada advise --mysql 'mysql://root@/shop?socket=/run/mysqld/mysqld.sock' --volume vol --proxy 127.0.0.1:3307
  tanada advise --sqlite /mnt/vol/shop.db --volume vol --run -- \"select count(*) from orders\"

The password comes from --password-file, or from the environment (TANADA_PASSWORD)."
)]
pub struct AdviseArguments {
    /// A server of MySQL or MariaDB: mysql://USER@HOST:PORT/DATABASE, or with ?socket=PATH
    #[arg(long, value_name = "URL")]
    mysql: Option<String>,
    /// A server of PostgreSQL: postgres://USER@HOST:PORT/DATABASE, or with ?socket=FOLDER
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// A database file of SQLite, where the volume is mounted
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// The volume's folder; it is mounted with --policy
    #[arg(long, value_name = "DIR")]
    volume: PathBuf,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The server's data directory, where it has another path here than the server says
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Listen here, HOST:PORT or a socket's path, for clients of the server
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["sqlite", "run"])]
    proxy: Option<String>,
    /// Run the statement, while what it reads is placed
    #[arg(long)]
    run: bool,
    #[command(flatten)]
    output: OutputArguments,
    /// The statement
    #[arg(last = true, value_name = "SQL")]
    statement: Option<String>,
}

/// What was done for a statement.
#[derive(Debug, Serialize)]
struct Advice {
    accesses: Vec<ObjectAccess>,
    forecast: Foreseen,
    placed: Vec<Relocated>,
    rows: Option<u64>,
    seconds: f64,
}

/// Runs `tanada advise`.
pub fn run(runtime: &tokio::runtime::Runtime, arguments: &AdviseArguments) -> Outcome {
    runtime.block_on(async {
        let password = Password::find(arguments.password_file.as_deref()).map_err(Failure::usage)?;
        if let Some(url) = &arguments.mysql {
            let target = Target::parse(url, &["mysql", "mariadb"], 3306, password).map_err(Failure::usage)?;
            return mysql(arguments, target).await;
        }
        if let Some(url) = &arguments.postgres {
            let schemes = ["postgres", "postgresql"];
            let target = Target::parse(url, &schemes, 5432, password).map_err(Failure::usage)?;
            return postgres(arguments, target).await;
        }
        let Some(file) = &arguments.sqlite else { return Err(Failure::usage("no system is named")) };
        let open = || Sqlite::open(file).map_err(Failure::failed);
        let mounts = Mounts::of(&arguments.volume).map_err(Failure::failed)?;
        if mounts.object(file).is_none() {
            return Err(Failure::failed(format!("{} does not lie in the mounted volume", file.display())));
        }
        let mut advisor = Advisor::new(open()?, open()?, mounts);
        let runs = open()?;
        let statement = arguments.statement.clone().unwrap_or_default();
        let to_run = statement.clone();
        let run = async move { runs.run(&to_run).map_err(Failure::failed) };
        advise(arguments, &mut advisor, None, &statement, run).await
    })
}

async fn mysql(arguments: &AdviseArguments, target: Target) -> Outcome {
    let executors = Executors::start(ExecutorOptions::default()).map_err(Failure::failed)?;
    let (volume, data_dir) = (arguments.volume.clone(), arguments.data_dir.clone());
    let connect = {
        let (target, executors) = (target.clone(), executors.clone());
        move || {
            let (target, executors) = (target.clone(), executors.clone());
            let (volume, data_dir) = (volume.clone(), data_dir.clone());
            async move {
                let server = MySql::connect(&target).await?;
                let data = data_dir.unwrap_or_else(|| server.data_directory().to_owned());
                let layout = InnodbLayout::new(&data, executors);
                let mut advisor = Advisor::new(server, layout, Mounts::of(&volume)?);
                let client = count_in(&mut advisor, &volume).await?;
                Ok(Explainer { advisor, client })
            }
            .boxed()
        }
    };
    if let Some(at) = &arguments.proxy {
        let server = address(&target, |socket| socket.to_owned());
        return proxy(at, server, Protocol::MySql, Box::new(connect)).await;
    }
    let mut explainer = connect().await.map_err(Failure::failed)?;
    let statement = arguments.statement.clone().unwrap_or_default();
    let (database, to_run) = (target.database.clone(), statement.clone());
    let run = async move {
        let mut runs = MySql::connect(&target).await.map_err(Failure::failed)?;
        runs.run(&to_run).await.map_err(Failure::failed)
    };
    advise(arguments, &mut explainer.advisor, database.as_deref(), &statement, run).await
}

async fn postgres(arguments: &AdviseArguments, target: Target) -> Outcome {
    let (volume, data_dir) = (arguments.volume.clone(), arguments.data_dir.clone());
    let connect = {
        let target = target.clone();
        move || {
            let (target, volume, data_dir) = (target.clone(), volume.clone(), data_dir.clone());
            async move {
                let server = Postgres::connect(&target, data_dir.as_deref()).await?;
                let mut advisor = Advisor::new(server.clone(), server, Mounts::of(&volume)?);
                let client = count_in(&mut advisor, &volume).await?;
                Ok(Explainer { advisor, client })
            }
            .boxed()
        }
    };
    if let Some(at) = &arguments.proxy {
        let server = address(&target, |socket| socket.join(".s.PGSQL.5432"));
        return proxy(at, server, Protocol::Postgres, Box::new(connect)).await;
    }
    let mut explainer = connect().await.map_err(Failure::failed)?;
    let statement = arguments.statement.clone().unwrap_or_default();
    let (database, to_run) = (target.database.clone(), statement.clone());
    let run = async move {
        let runs = Postgres::connect(&target, Some(Path::new("/"))).await.map_err(Failure::failed)?;
        runs.run(&to_run).await.map_err(Failure::failed)
    };
    advise(arguments, &mut explainer.advisor, database.as_deref(), &statement, run).await
}

fn address(target: &Target, socket: impl Fn(&Path) -> PathBuf) -> Address {
    match (&target.socket, &target.address) {
        (Some(path), _) => Address::Unix(socket(path)),
        (None, Some((host, port))) => Address::Tcp(host.clone(), *port),
        (None, None) => Address::Tcp("127.0.0.1".to_owned(), 0),
    }
}

/// Connects to the mount, and tells it what the server has counted, as far as it may be asked.
async fn count_in<P: PlanSource + Statistics, L: FileLayout>(
    advisor: &mut Advisor<P, L>,
    volume: &Path,
) -> tanada_advisor::Result<Client> {
    let mut client = Client::connect(volume).await?;
    if let Ok(counted) = advisor.counted().await
        && !counted.is_empty()
    {
        client.count(counted).await?;
    }
    Ok(client)
}

/// Serves clients until a signal.
async fn proxy<P, L>(at: &str, server: Address, protocol: Protocol, connect: Connect<P, L>) -> Outcome
where
    P: PlanSource + Statistics + 'static,
    L: FileLayout + 'static,
{
    let malformed = || Failure::usage(format!("{at:?} is neither HOST:PORT nor a socket's path"));
    let address = Address::parse(at).ok_or_else(malformed)?;
    // Whoever begins wants to know at once whether it works.
    drop(connect().await.map_err(Failure::failed)?);
    let listening = Proxy::listen(&address, server, protocol).await;
    let listening = listening.map_err(|error| Failure::failed(format!("cannot listen at {at}: {error}")))?;
    say(&match listening.port() {
        Some(port) => format!("listening at {at} (port {port})\n"),
        None => format!("listening at {at}\n"),
    })?;
    let (events, received) = tokio::sync::mpsc::channel(MAX_WAITING);
    tokio::spawn(explain(connect, received, listening.unseen()));
    let mut terminated = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    tokio::select! {
        () = listening.serve(events) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
    Ok(())
}

/// Explains a statement, prints what it reads, places it, and runs it if that is wanted.
async fn advise<P, L>(
    arguments: &AdviseArguments,
    advisor: &mut Advisor<P, L>,
    database: Option<&str>,
    statement: &str,
    run: impl Future<Output = Outcome<u64>>,
) -> Outcome
where
    P: PlanSource + Statistics,
    L: FileLayout,
{
    let mut client = Client::connect(&arguments.volume).await.map_err(Failure::failed)?;
    let announcement = advisor.announcement(database, statement).await.map_err(Failure::failed)?;
    let forecast = client.forecast(&announcement).await.map_err(Failure::failed)?;
    let before = client.placed(0).await.map_err(Failure::failed)?.last().map_or(0, |last| last.no + 1);
    let begun = Instant::now();
    let query = client.begin(&announcement).await.map_err(Failure::failed)?;
    let rows = if arguments.run {
        Some(run.await?)
    } else {
        client.settle().await.map_err(Failure::failed)?;
        None
    };
    let seconds = begun.elapsed().as_secs_f64();
    client.end(query).await.map_err(Failure::failed)?;
    let placed = client.placed(before).await.map_err(Failure::failed)?;
    let Announcement { accesses, .. } = announcement;
    let advice = Advice { accesses, forecast, placed, rows, seconds };
    arguments.output.print(&advice, text)
}

fn text(advice: &Advice) -> String {
    if advice.accesses.is_empty() {
        return "the statement reads nothing that lies in the volume\n".to_owned();
    }
    let mut table = Table::new(&["index", "object", "access", "pages", "bytes", "lies in"]);
    for (no, access) in advice.accesses.iter().enumerate() {
        let classes = advice.forecast.classes.get(no).map(Vec::as_slice).unwrap_or_default();
        let lies_in: Vec<String> =
            classes.iter().map(|(class, bytes)| format!("{class} {}", size(*bytes))).collect();
        table.add(vec![
            access.index.clone(),
            access.object.clone(),
            match access.pattern {
                Pattern::SequentialScan => "scan".to_owned(),
                Pattern::IndexRange => "range".to_owned(),
                Pattern::RandomLookUps { expected } => count(expected, "look-up"),
            },
            access.expected_pages.to_string(),
            size(access.extents.iter().map(|extent| extent.len).sum()),
            lies_in.join(", "),
        ]);
    }
    let forecast = &advice.forecast;
    let mut out = format!(
        "{table}\npolicy {}: {}, {} to copy",
        forecast.policy,
        count(u64::from(forecast.move_count), "move"),
        size(forecast.move_bytes)
    );
    if forecast.gain_s > 0.0 {
        out += &format!("; saves {:.3} s, costs {:.3} s", forecast.gain_s, forecast.cost_s);
    }
    out.push('\n');
    for planned in forecast.moves.iter().take(SHOWN_MOVES) {
        out +=
            &format!("  {} chunk {} of {}: {}\n", planned.order, planned.chunk, planned.object, planned.why);
    }
    if forecast.move_count as usize > SHOWN_MOVES {
        out += &format!("  and {} more\n", forecast.move_count as usize - SHOWN_MOVES);
    }
    let done: Vec<&Relocated> = advice.placed.iter().filter(|placed| placed.refusal.is_none()).collect();
    let bytes = done.iter().map(|placed| placed.bytes).sum();
    out += &match advice.rows {
        Some(rows) => format!(
            "{} in {:.3} s; meanwhile {} done, {} copied\n",
            count(rows, "row"),
            advice.seconds,
            count(done.len() as u64, "relocation"),
            size(bytes)
        ),
        None => format!(
            "{} done, {} copied, in {:.3} s\n",
            count(done.len() as u64, "relocation"),
            size(bytes),
            advice.seconds
        ),
    };
    if let Some(refusal) = advice.placed.iter().find_map(|placed| placed.refusal.as_ref()) {
        out += &format!("some were refused: {refusal}\n");
    }
    out
}
