//! `tanada volume check`.

use clap::Args;
use serde::Serialize;
use tanada_volume::directory::Directory;
use tanada_volume::{CheckReport, Severity};

use super::{Machine, VolumeFolder};
use crate::failure::{Failure, Outcome};
use crate::output::{OutputArguments, count};

/// Arguments of `tanada volume check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume check vol
  tanada volume check vol --repair

A check changes nothing. A repair rebuilds what follows from the rest, and never guesses: mirrors that cannot be right are dropped,
damaged copies of metadata written anew. Exit code 1 if anything is found (after a repair: is left).")]
pub struct CheckArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Repair what can be repaired without guessing
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Serialize)]
struct Report {
    is_sound: bool,
    was_clean: bool,
    objects: u64,
    chunks: u64,
    repaired: bool,
    findings: Vec<Found>,
}

#[derive(Debug, Serialize)]
struct Found {
    severity: &'static str,
    message: String,
}

pub(super) async fn run(machine: &Machine, arguments: CheckArguments) -> Outcome {
    let CheckArguments { folder, repair, output } = arguments;
    let mut found = Directory::check(&folder.volume, false, machine.settings()).await?;
    let mut repaired = false;
    if repair && !found.is_sound() {
        Directory::check(&folder.volume, true, machine.settings()).await?;
        // What a repair reports is what it found; what counts is what is left.
        found = Directory::check(&folder.volume, false, machine.settings()).await?;
        repaired = true;
    }
    let can_be_repaired = found.findings.iter().any(|finding| finding.severity() == Severity::Repairable);
    let report = report(&found, repaired);
    output.print(&report, text)?;
    if report.is_sound {
        return Ok(());
    }
    let left = count(report.findings.len() as u64, "finding");
    let volume = folder.volume.display();
    Err(Failure::failed(match (repaired, can_be_repaired) {
        (false, true) => {
            format!("{volume}: {left}; tanada volume check {volume} --repair repairs what can be")
        }
        _ => format!("{volume}: {left} that cannot be repaired from what is there"),
    }))
}

fn report(found: &CheckReport, repaired: bool) -> Report {
    let severity = |severity| match severity {
        Severity::NotRepairable => "not repairable",
        Severity::Repairable => "repairable",
        Severity::Outside => "outside",
    };
    let findings = found.findings.iter();
    Report {
        is_sound: found.is_sound(),
        was_clean: found.was_clean,
        objects: found.objects,
        chunks: found.chunks,
        repaired,
        findings: findings
            .map(|finding| Found { severity: severity(finding.severity()), message: finding.to_string() })
            .collect(),
    }
}

fn text(report: &Report) -> String {
    let mut text: String =
        report.findings.iter().map(|found| format!("{}: {}\n", found.severity, found.message)).collect();
    if report.is_sound {
        text += &format!(
            "sound: {}, {}{}{}\n",
            count(report.objects, "object"),
            count(report.chunks, "chunk"),
            if report.was_clean { "" } else { "; it was not stopped cleanly" },
            if report.repaired { "; repaired" } else { "" },
        );
    }
    text
}
