//! The stories, by name.

use super::teller::Teller;
use super::{busy, fixed, mirrored, transformed};

/// Names of all stories: `busy`, `mirrored`, `transformed` and `database` are random, the others are fixed.
pub fn story_names() -> &'static [&'static str] {
    &[
        "busy",
        "writing",
        "truncating",
        "punching",
        "naming",
        "moving",
        "mirroring",
        "changing-classes",
        "filling-the-journal",
        "adopting",
        "stopping",
        "filling-classes",
        "syncing-together",
        "giving-up",
        "attributes",
        "mirrored",
        "transformed",
        "pages",
        "altering",
        "database",
    ]
}

/// Tells the story `name` to its end; the teller that has the volume then, for a story may have opened it anew.
pub(crate) async fn tell(name: &str, teller: &Teller) -> Result<Teller, String> {
    let teller = &mut teller.clone();
    match name {
        "busy" => busy::tell(teller, 4, 30).await,
        "writing" => fixed::writing(teller).await,
        "truncating" => fixed::truncating(teller).await,
        "punching" => fixed::punching(teller).await,
        "naming" => fixed::naming(teller).await,
        "moving" => fixed::moving(teller).await,
        "mirroring" => fixed::mirroring(teller).await,
        "changing-classes" => fixed::changing_classes(teller).await,
        "filling-the-journal" => fixed::filling_the_journal(teller).await,
        "adopting" => *teller = fixed::adopting(teller).await,
        "stopping" => *teller = fixed::stopping(teller).await,
        "filling-classes" => fixed::filling_classes(teller).await,
        "syncing-together" => fixed::syncing_together(teller).await,
        "giving-up" => fixed::giving_up(teller).await,
        "attributes" => *teller = fixed::attributes(teller).await,
        "mirrored" => *teller = mirrored::tell(teller).await,
        "transformed" => transformed::busy(teller).await,
        "pages" => *teller = transformed::pages(teller).await,
        "altering" => *teller = transformed::altering(teller).await,
        "database" => transformed::database(teller).await,
        other => return Err(format!("there is no story {other:?}; there are: {}", story_names().join(", "))),
    }
    Ok(teller.clone())
}
