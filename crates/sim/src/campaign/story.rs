//! The stories, by name.

use super::busy;
use super::teller::Teller;

/// Names of all stories.
pub fn story_names() -> &'static [&'static str] {
    &["busy"]
}

/// Tells the story `name` to its end.
pub(crate) async fn tell(name: &str, teller: &Teller) -> Result<(), String> {
    match name {
        "busy" => busy::tell(teller, 4, 30).await,
        other => return Err(format!("there is no story {other:?}; there are: {}", story_names().join(", "))),
    }
    Ok(())
}
