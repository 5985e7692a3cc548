//! The objects that a name on the command line means: the object of that name, or all in a folder of that name.

use tanada_volume::{Object, Volume};

use crate::failure::{Failure, Outcome};

/// The object `name`, else all objects below the folder `name`.
pub fn objects(volume: &Volume, name: &str) -> Outcome<Vec<Object>> {
    if let Ok(object) = volume.open_object(name) {
        return Ok(vec![object]);
    }
    let folder = format!("{}/", name.trim_end_matches('/'));
    let found: Vec<Object> =
        volume.objects().into_iter().filter(|object| object.name().starts_with(&folder)).collect();
    if found.is_empty() {
        let message = format!(
            "there is no object {name:?}, nor a folder of that name; tanada volume ls DIR lists what there is"
        );
        return Err(Failure::failed(message));
    }
    Ok(found)
}

/// Objects by names; all of them if none is given. None twice.
pub fn all_or(volume: &Volume, names: &[String]) -> Outcome<Vec<Object>> {
    if names.is_empty() {
        return Ok(volume.objects());
    }
    let mut all: Vec<Object> = Vec::new();
    for name in names {
        for object in objects(volume, name)? {
            if all.iter().all(|other| other.id() != object.id()) {
                all.push(object);
            }
        }
    }
    Ok(all)
}
